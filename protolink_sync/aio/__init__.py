"""The clients for code inside an event loop; everywhere else the blocking ones do."""

from protolink_sync.aio.a2a import AsyncA2AClient
from protolink_sync.aio.client import AsyncAgentClient
from protolink_sync.aio.peer import AsyncAgentPeer
from protolink_sync.aio.stream import AsyncEventStream

__all__ = ["AsyncA2AClient", "AsyncAgentClient", "AsyncAgentPeer", "AsyncEventStream"]
