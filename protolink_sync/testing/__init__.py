"""For tests of programs that call agents: scripted answers, fake agents, recorded exchanges."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protolink_sync.testing.fake import FakeAgent
    from protolink_sync.testing.recorder import Recorder
    from protolink_sync.testing.replay import ReplayTransport
    from protolink_sync.testing.scripted import ScriptedTransport
    from protolink_sync.testing.steps import SentCall, events, refused, reply, silence

__all__ = [
    "FakeAgent",
    "Recorder",
    "ReplayTransport",
    "ScriptedTransport",
    "SentCall",
    "events",
    "refused",
    "reply",
    "silence",
]

# pytest imports this room for its plugin at every start; what the room has is imported when it is
# used.
_MODULES = {
    "FakeAgent": "fake",
    "Recorder": "recorder",
    "ReplayTransport": "replay",
    "ScriptedTransport": "scripted",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'steps')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
