"""Timestamps: making them, and comparing those that peers write in any form."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

__all__ = ["instant", "parse_datetime", "utc_now"]

_TIMESTAMP = r"""(\d{4})-(\d\d)-(\d\d)
        (?: [Tt\ ] (\d\d):(\d\d) (?: :(\d\d) (?: [.,](\d+) )? )?
            \s* ( [Zz] | [+-]\d\d (?: :?\d\d )? )? )?"""
# The longest text that is looked at: peers write them.
_LONGEST = 64
_EPOCH_DAY = datetime(1970, 1, 1).toordinal()
_SECOND = 1_000_000_000


def utc_now() -> str:
    """Return the present moment as UTC text, such as ``2026-11-29T23:23:44.228970+00:00``.

    Source:
        wire/protolink.md 14: ``datetime.isoformat()`` in UTC, never ``Z``.
    """
    return datetime.now(timezone.utc).isoformat()


def instant(text: object) -> int | None:
    """Return the moment that a timestamp names, in nanoseconds since 1970.

    It reads what ISO 8601 writers send: ``Z`` or an offset, any number of decimals (those beyond
    nanoseconds are cut), no fraction, no seconds, a date alone. Without an offset the time is
    taken as UTC. Nothing longer than 64 characters is a timestamp. ``datetime.fromisoformat`` of
    Python 3.10 refuses ``Z`` and nanoseconds.

    Args:
        text: The timestamp as it was read; any other value names no moment.

    Returns:
        The moment, or None if the text is not a timestamp.

    >>> instant("1970-01-01T00:00:01Z") == instant("1970-01-01T02:00:01.000+02:00") == 10**9
    True
    >>> instant("yesterday") is None
    True
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    # Compiled at the first use, and kept by re: many programs never compare two moments.
    match = re.fullmatch(_TIMESTAMP, text.strip(), re.VERBOSE | re.ASCII)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        days = datetime(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    # 60 is a leap second; 24:00 is the end of the day.
    if hours > 24 or minutes > 59 or seconds > 60:
        return None
    whole = days * 86_400 + hours * 3_600 + minutes * 60 + seconds - _offset(zone)
    return whole * _SECOND + int((fraction or "0")[:9].ljust(9, "0"))


def parse_datetime(text: str) -> datetime:
    """Return a timestamp as an aware ``datetime`` in UTC, cut to microseconds.

    Raises:
        ValueError: The text is not a timestamp, or ``datetime`` cannot hold it.
    """
    moment = instant(text)
    if moment is None:
        raise ValueError(f"expected a timestamp as in ISO 8601, found {text[:60]!r}")
    try:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=moment // 1_000)
    except OverflowError as exc:
        raise ValueError(f"the timestamp {text[:60]!r} is out of range") from exc


def _offset(zone: str | None) -> int:
    """Seconds by which a local time is ahead of UTC."""
    if zone is None or zone in "Zz":
        return 0
    seconds = int(zone[1:3]) * 3_600 + int(zone[3:].lstrip(":") or 0) * 60
    return -seconds if zone[0] == "-" else seconds
