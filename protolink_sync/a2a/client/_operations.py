"""The operations of A2A, as data."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from protolink_sync.a2a.wire import Dialect
from protolink_sync.a2a.wire import Operation as Key
from protolink_sync.models import ClientRequestSpec

__all__ = [
    "CANCEL",
    "CARD",
    "EXTENDED_CARD",
    "GET",
    "LIST",
    "PUSH_CREATE",
    "PUSH_DELETE",
    "PUSH_GET",
    "PUSH_LIST",
    "SEND",
    "STREAM",
    "SUBSCRIBE",
    "Operation",
    "spec_of",
]


@attrs.frozen
class Operation:
    """One operation.

    Args:
        name: What messages call it: the method of the client.
        key: What a dialect calls it.
        parser: The dialect's function for its result; None leaves the JSON.
        is_repeatable: Whether it may be sent twice: it only looks.
        submits: Whether the agent is given something to work on.
        result_optional: Whether an answer may have neither result nor error.
    """

    name: str
    key: Key
    parser: str | None = None
    is_repeatable: bool = False
    submits: bool = False
    result_optional: bool = False


SEND = Operation("send_message", "send", "parse_send", submits=True)
STREAM = Operation("stream_message", "stream", submits=True)
SUBSCRIBE = Operation("subscribe", "subscribe")
GET = Operation("get_task", "get", "parse_task", is_repeatable=True)
CANCEL = Operation("cancel_task", "cancel", "parse_task")
LIST = Operation("list_tasks", "list", "parse_page", is_repeatable=True)
PUSH_CREATE = Operation("create_push_config", "push_create", "parse_push")
PUSH_GET = Operation("get_push_config", "push_get", "parse_push", is_repeatable=True)
PUSH_LIST = Operation("list_push_configs", "push_list", "parse_pushes", is_repeatable=True)
# A 0.3 agent answers with neither result nor error (Q1).
PUSH_DELETE = Operation("delete_push_config", "push_delete", result_optional=True)
EXTENDED_CARD = Operation("get_extended_card", "extended_card", is_repeatable=True)

CARD = ClientRequestSpec("fetch_agent_card", "/", "GET", None, "none", idempotent=True)


@functools.lru_cache(maxsize=64)
def spec_of(operation: Operation, dialect: Dialect) -> ClientRequestSpec:
    """Return an operation in one dialect as a request spec."""
    parser: Any = None if operation.parser is None else getattr(dialect, operation.parser)
    return ClientRequestSpec(
        operation.name, "/", "POST", parser, idempotent=operation.is_repeatable
    )
