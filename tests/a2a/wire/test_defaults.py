"""What the A2A values are where nothing was given, in the order in which they take it."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.a2a.wire import (
    Artifact,
    Message,
    MessageSendParams,
    Part,
    PushNotificationConfig,
    Role,
    SendConfiguration,
    StreamEvent,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
)
from protolink_sync.a2a.wire.agent_card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
)
from protolink_sync.a2a.wire.events import TaskArtifactUpdate, TaskStatusUpdate
from protolink_sync.a2a.wire.security_scheme import SecurityScheme

MADE = object()  # another one for each object
STATUS = TaskStatus(TaskState.SUBMITTED)

# What has to be given, then what may be given by position, then what may be given by name only.
FIELDS: dict[type, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    AgentCapabilities: (
        {},
        {
            "streaming": False,
            "push_notifications": False,
            "extended_agent_card": False,
            "state_transition_history": False,
            "extensions": [],
        },
        {},
    ),
    AgentCard: (
        {},
        {
            "name": "",
            "description": "",
            "version": "",
            "interfaces": (),
            "capabilities": AgentCapabilities(),
            "skills": [],
            "provider": None,
            "default_input_modes": [],
            "default_output_modes": [],
            "security_schemes": {},
            "security_requirements": [],
            "documentation_url": "",
            "icon_url": "",
            "signatures": [],
            "is_legacy": False,
            "raw": {},
        },
        {},
    ),
    AgentExtension: ({"uri": "u"}, {"description": "", "required": False, "params": {}}, {}),
    AgentInterface: (
        {"url": "u"},
        {"protocol_binding": "JSONRPC", "protocol_version": "", "tenant": ""},
        {},
    ),
    AgentProvider: ({}, {"organization": "", "url": ""}, {}),
    AgentSkill: (
        {"id": "i"},
        {
            "name": "",
            "description": "",
            "tags": [],
            "examples": [],
            "input_modes": [],
            "output_modes": [],
            "security_requirements": [],
        },
        {},
    ),
    SecurityScheme: (
        {"kind": "k"},
        {
            "description": "",
            "location": "",
            "name": "",
            "scheme": "",
            "bearer_format": "",
            "flows": {},
            "oauth2_metadata_url": "",
            "open_id_connect_url": "",
            "raw": {},
        },
        {},
    ),
    StreamEvent: (
        {},
        {
            "task": None,
            "message": None,
            "status_update": None,
            "artifact_update": None,
            "raw": None,
        },
        {},
    ),
    TaskArtifactUpdate: (
        {"task_id": "t", "context_id": "c", "artifact": Artifact([], "a")},
        {"append": False, "last_chunk": False, "metadata": {}},
        {"extra": {}},
    ),
    TaskStatusUpdate: (
        {"task_id": "t", "context_id": "c", "status": STATUS},
        {"metadata": {}, "final": None},
        {"extra": {}},
    ),
    Message: (
        {},
        {
            "parts": [],
            "role": Role.USER,
            "message_id": MADE,
            "context_id": "",
            "task_id": "",
            "metadata": {},
            "extensions": [],
            "reference_task_ids": [],
        },
        {"extra": {}},
    ),
    MessageSendParams: (
        {"message": Message(message_id="m")},
        {"configuration": None, "metadata": None},
        {"extra": {}},
    ),
    PushNotificationConfig: (
        {"url": "u"},
        {"id": "", "task_id": "", "token": "", "schemes": (), "credentials": ""},
        {"extra": {}},
    ),
    SendConfiguration: (
        {},
        {
            "accepted_output_modes": (),
            "history_length": None,
            "return_immediately": None,
            "push_config": None,
        },
        {"extra": {}},
    ),
    TaskPage: (
        {},
        {"tasks": [], "next_page_token": "", "page_size": None, "total_size": None},
        {"extra": {}},
    ),
    Part: (
        {},
        {
            "text": None,
            "raw": None,
            "url": None,
            "data": None,
            "filename": "",
            "media_type": "",
            "metadata": {},
        },
        {"null_data": False, "extra": {}},
    ),
    Artifact: (
        {},
        {
            "parts": [],
            "artifact_id": MADE,
            "name": "",
            "description": "",
            "metadata": {},
            "extensions": [],
        },
        {"extra": {}},
    ),
    Task: (
        {"id": "t"},
        {"context_id": "", "status": STATUS, "artifacts": [], "history": [], "metadata": {}},
        {"from_message": False, "extra": {}},
    ),
    TaskStatus: (
        {"state": TaskState.WORKING},
        {"message": None, "timestamp": "", "state_text": None},
        {"extra": {}},
    ),
}
EACH = pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)


@EACH
def test_what_is_not_given_is_as_documented(kind):
    needed, optional, by_name = FIELDS[kind]

    made = kind(*needed.values())

    for name, expected in {**needed, **optional, **by_name}.items():
        value = getattr(made, name)
        if expected is MADE:
            assert value
        else:
            assert value == expected, name
            assert type(value) is type(expected), name


@EACH
def test_two_objects_share_nothing_that_can_change(kind):
    needed, optional, by_name = FIELDS[kind]
    one, other = kind(*needed.values()), kind(*needed.values())

    for name, expected in {**optional, **by_name}.items():
        if expected is MADE:
            assert getattr(one, name) != getattr(other, name)
        elif isinstance(expected, (list, dict, TaskStatus, AgentCapabilities)):
            assert getattr(one, name) is not getattr(other, name), name


@EACH
def test_positions_end_where_names_are_needed(kind):
    needed, optional, by_name = FIELDS[kind]
    values = [*needed.values()]
    values += [getattr(kind(*values), name) for name in optional]

    made = kind(*values)

    assert [getattr(made, name) for name in (*needed, *optional)] == values
    with pytest.raises(TypeError, match="positional"):
        kind(*values, next(iter(by_name.values()), None))


@EACH
def test_objects_compare_by_their_fields(kind):
    needed, optional, by_name = FIELDS[kind]
    made = kind(*needed.values())
    for name in optional:
        if optional[name] is MADE:
            needed = {**needed, name: getattr(made, name)}

    assert kind(**needed) == made
    for name in {**optional, **by_name}:
        if (kind, name) != (StreamEvent, "raw"):
            assert kind(**{**needed, name: ["other"]} if name != "history_length" else
                        {**needed, name: 7}) != made, name  # fmt: skip


@pytest.mark.parametrize(
    ("made", "hidden"),
    [
        (PushNotificationConfig("u", token="hidden"), "hidden"),
        (PushNotificationConfig("u", credentials="hidden"), "hidden"),
        (AgentCard(raw={"hidden": 1}), "hidden"),
        (StreamEvent(raw={"hidden": 1}), "hidden"),
        (SecurityScheme("k", raw={"hidden": 1}), "hidden"),
    ],
    ids=["token", "credentials", "card", "event", "scheme"],
)
def test_a_repr_shows_neither_secrets_nor_all_that_came(made, hidden):
    assert hidden not in repr(made)
