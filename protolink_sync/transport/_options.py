"""What one call may have instead of what its transport has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from protolink_sync.config import RetryPolicy
from protolink_sync.security import caller_headers, check_header

__all__ = ["CallOptions"]

_LONGEST_ID = 200


def _checked_id(_instance: Any, _attribute: Any, value: Any) -> None:
    if value is None:
        return
    check_header("X-Protolink-Request-ID", value, what="request_id")
    if not 0 < len(value) <= _LONGEST_ID:
        raise ValueError(
            f"request_id has {len(value)} characters, must be 1 to {_LONGEST_ID}; leave it out "
            "for an id of our own"
        )


@attrs.frozen
class CallOptions:
    """What a call has instead of, or beside, what its transport has.

    Args:
        headers: Headers of this call, beside the transport's; of one name these win.
        retry: When the call is sent again; None for the transport's policy. Its
            ``retryable_statuses`` count for answers over HTTP.
        request_id: By this the call is known in the peer's log; None for a fresh one. It is no
            idempotency key: two calls that have the same one are still two calls.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A header is not allowed, or an id is no header value.
    """

    headers: Mapping[str, str] = attrs.field(factory=dict, converter=caller_headers, repr=False)
    retry: RetryPolicy | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(RetryPolicy))
    )
    request_id: str | None = attrs.field(default=None, validator=_checked_id)
