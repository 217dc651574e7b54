"""Host agents: over HTTP, in any WSGI server, or inside the process.

:class:`RuntimeHost` and :func:`runtime_agent` are what the runtime transport stands on.
"""

from protolink_sync.models import EndpointSpec
from protolink_sync.server.agent import Agent
from protolink_sync.server.handle import AgentServer
from protolink_sync.server.runtime import RuntimeHost, runtime_agent

__all__ = ["Agent", "AgentServer", "EndpointSpec", "RuntimeHost", "runtime_agent"]
