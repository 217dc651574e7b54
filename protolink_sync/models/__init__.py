"""What is exchanged with agents: tasks, messages, parts, artifacts, cards, state, events.

Every class reads its JSON form with ``from_dict``, writes it with ``to_dict``, and loses nothing:
members that a peer sends and this library does not know are kept in ``extra`` and written back.
Values are taken as they are or refused with a :class:`~protolink_sync.errors.ModelError`, which
names the place. Read more leniently are:

* null where an object or a list is expected: it is an empty one;
* null for optional text, such as a timestamp or a role: it is kept;
* ids: any JSON scalar is kept, for peers do not check theirs;
* words of a peer that are not in :mod:`protolink_sync.types`: kept, the state of a task in
  ``Task.state_text``.
"""

from protolink_sync.errors import TaskExecutionError

# For the room `wire`, which turns any data into JSON: not listed, for users have to_dict().
from protolink_sync.models._json import jsonable as jsonable

# For the room `a2a.wire`, whose readers say what they found as ours do.
from protolink_sync.models._readers import described as described

# For the room `client`, which looks for the newest message.
from protolink_sync.models._time import instant as instant
from protolink_sync.models.artifact import Artifact
from protolink_sync.models.cancellation import TaskCancellationRequest
from protolink_sync.models.card import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from protolink_sync.models.compaction import HistoryCompactionRequest, HistoryCompactionResult
from protolink_sync.models.endpoint_spec import EndpointSpec
from protolink_sync.models.events import InMemoryEventSink, RunEvent
from protolink_sync.models.history import ConversationHistory
from protolink_sync.models.llm import LLMMessage
from protolink_sync.models.message import Message
from protolink_sync.models.part import Part
from protolink_sync.models.request_spec import ClientRequestSpec
from protolink_sync.models.state import (
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
)
from protolink_sync.models.task import Task
from protolink_sync.models.task_state import TaskState
from protolink_sync.models.tools import RouteDecision, ToolCall, ToolOutput

__all__ = [
    "AgentCapabilities",
    "AgentCard",
    "AgentInterface",
    "AgentSkill",
    "Artifact",
    "ClientRequestSpec",
    "ConversationHistory",
    "EndpointSpec",
    "HistoryCompactionRequest",
    "HistoryCompactionResult",
    "InMemoryEventSink",
    "LLMMessage",
    "Message",
    "Part",
    "RouteDecision",
    "RunEvent",
    "StateOperationRequest",
    "StateOperationResult",
    "StateStoreReport",
    "Task",
    "TaskCancellationRequest",
    "TaskExecutionError",
    "TaskState",
    "ToolCall",
    "ToolOutput",
]
