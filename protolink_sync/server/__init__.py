"""Host agents: over HTTP, in any WSGI server, or inside the process.

:func:`runtime_agent`, :class:`RuntimeHost`, :class:`Execution` and :class:`RefusedError` are what
the runtime transport stands on.
"""

from protolink_sync.models import EndpointSpec
from protolink_sync.server.agent import Agent
from protolink_sync.server.execution import Execution
from protolink_sync.server.handle import AgentServer
from protolink_sync.server.refusal import RefusedError
from protolink_sync.server.runtime import RuntimeHost, runtime_agent

__all__ = [
    "Agent",
    "AgentServer",
    "EndpointSpec",
    "Execution",
    "RefusedError",
    "RuntimeHost",
    "runtime_agent",
]
