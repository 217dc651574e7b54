"""Objects to bytes and back: pure functions without sockets, clock or threads."""

from protolink_sync.wire.request import TransportRequestContext, WireReply, WireRequest, one_line
from protolink_sync.wire.sse import EventReader

__all__ = ["EventReader", "TransportRequestContext", "WireReply", "WireRequest", "one_line"]
