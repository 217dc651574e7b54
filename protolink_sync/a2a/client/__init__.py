"""The blocking A2A client, and what a client of ProtoLink needs to call A2A agents."""

from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._flight import Flight
from protolink_sync.a2a.client.bridge import Bridge
from protolink_sync.a2a.client.client import A2AClient
from protolink_sync.a2a.client.id_map import A2AMemory, Choice
from protolink_sync.a2a.client.push import PushReceiver
from protolink_sync.a2a.client.schemes import SchemeCredentials
from protolink_sync.a2a.client.stream import A2AEventStream

__all__ = [
    "A2AClient",
    "A2AEventStream",
    "A2AMemory",
    "Bridge",
    "Budget",
    "Choice",
    "Flight",
    "PushReceiver",
    "SchemeCredentials",
]
