"""What an application calls agents with."""

from protolink_sync.client.agent import AgentClient, SyncAgentClient
from protolink_sync.client.peer import AgentPeer, connect

__all__ = ["AgentClient", "AgentPeer", "SyncAgentClient", "connect"]
