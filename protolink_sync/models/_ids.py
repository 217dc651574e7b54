"""Identifiers of tasks, messages, artifacts, events and calls."""

from __future__ import annotations

import os

__all__ = ["new_id"]

# A version-4 UUID has the two top bits 10 in its ninth byte: 8, 9, a or b as a digit.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_id() -> str:
    """Make an identifier of the form of ``str(uuid.uuid4())``, at half its price.

    The bits come from the system at every call: no state that a forked child would share with
    its parent, and no lock.

    Source:
        ProtoLink, Models reference, the defaults of ``id``; RFC 9562, 5.4.
    """
    digits = os.urandom(16).hex()
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
        f"-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
    )
