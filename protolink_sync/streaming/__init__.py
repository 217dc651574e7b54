"""Streams: what transports feed and callers read, and the relay between them."""

from protolink_sync.streaming.source import EventSource
from protolink_sync.streaming.stream import EventStream

__all__ = ["EventSource", "EventStream"]
