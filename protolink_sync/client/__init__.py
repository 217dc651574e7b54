"""What an application calls agents with."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from protolink_sync.client.agent import AgentClient, SyncAgentClient
from protolink_sync.client.peer import AgentPeer, connect
from protolink_sync.client.registry import Registration, RegistryClient

if TYPE_CHECKING:
    from protolink_sync.client._check import CheckReport, CheckStep
    from protolink_sync.client._map import MapResults

__all__ = [
    "AgentClient",
    "AgentPeer",
    "CheckReport",
    "CheckStep",
    "MapResults",
    "Registration",
    "RegistryClient",
    "SyncAgentClient",
    "connect",
]

# Imported when they are used: most programs do not need them.
_LATER = {"CheckReport": "_check", "CheckStep": "_check", "MapResults": "_map"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"protolink_sync.client.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
