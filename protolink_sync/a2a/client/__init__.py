"""The blocking A2A client."""

from protolink_sync.a2a.client.client import A2AClient
from protolink_sync.a2a.client.push import PushReceiver
from protolink_sync.a2a.client.schemes import SchemeCredentials
from protolink_sync.a2a.client.stream import A2AEventStream

__all__ = ["A2AClient", "A2AEventStream", "PushReceiver", "SchemeCredentials"]
