"""Objects to bytes and back: pure functions without sockets, clock or threads."""

from protolink_sync.wire.request import TransportRequestContext, WireReply, WireRequest

__all__ = ["TransportRequestContext", "WireReply", "WireRequest"]
