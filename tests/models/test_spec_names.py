"""The names of operations: diagnostics, metrics and hooks know them by these."""

from __future__ import annotations

import pytest

from protolink_sync import specs
from protolink_sync.models import ClientRequestSpec

NAMES = {
    "TASK_REQUEST": "send_task",
    "TASK_STREAM_REQUEST": "send_task_stream",
    "TASK_CANCEL_REQUEST": "cancel_task",
    "COMPACT_HISTORY_REQUEST": "compact_history",
    "DESCRIBE_STATE_REQUEST": "describe_state",
    "RESET_STATE_REQUEST": "reset_state",
    "COMPACT_STATE_REQUEST": "compact_state",
    "AGENT_CARD_REQUEST": "get_agent_card",
    "REGISTRY_REGISTER_REQUEST": "register",
    "REGISTRY_UNREGISTER_REQUEST": "unregister",
    "REGISTRY_HEARTBEAT_REQUEST": "heartbeat",
    "REGISTRY_DISCOVER_REQUEST": "discover",
}


def test_every_operation_has_a_name():
    assert set(NAMES) == set(specs.__all__)


@pytest.mark.parametrize("constant", NAMES)
def test_the_name_is_the_method_of_the_client(constant):
    assert getattr(specs, constant).name == NAMES[constant]


@pytest.mark.parametrize("path", ["/ä", "/a\nb", "/a b", "/\x7f", "a", ""])
def test_a_path_is_one_printable_line_that_begins_with_a_slash(path):
    """Anything else could end the line of a request, and begin another."""
    with pytest.raises(ValueError, match="must begin with '/'"):
        ClientRequestSpec("x", path, "GET")
