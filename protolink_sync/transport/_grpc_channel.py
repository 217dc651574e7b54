"""Channels of grpcio: one for each peer and process, made when they are needed.

This is the one module that imports grpcio.

grpcio and ``fork`` do not go well together. A child makes channels of its own, never touches what
it inherited (dropping an inherited channel can hang), and is refused where its calls would hang.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from protolink_sync._threads import NoThreadError, before_bare_fork, leave_none, start
from protolink_sync.config import TransportConfig
from protolink_sync.errors import TransportConnectionError, TransportError
from protolink_sync.transport._call import Call
from protolink_sync.transport._grpc_health import CHECK
from protolink_sync.wire import TransportRequestContext

__all__ = ["Channel", "Channels", "Rpc", "RpcError", "ssl_credentials"]

RpcError = grpc.RpcError

_SERVICE = "protolink.transport.v1.ProtolinkTransport"
_INVOKE = f"/{_SERVICE}/Invoke"
_STREAM = f"/{_SERVICE}/Stream"

_READY = grpc.ChannelConnectivity.READY.value[0]
_FAILED = grpc.ChannelConnectivity.TRANSIENT_FAILURE.value[0]
_SETTLED = (_READY, _FAILED)

# How long a wait inside grpcio may take before the call looks whether it was ended.
_SLICE = 0.02

# How long a forked child waits for a sign that grpcio works in it.
_SIGN_OF_LIFE = 4.0

# How many channels a transport keeps; beyond that the oldest unused one goes.
_KEPT_CHANNELS = 100

_LARGEST_INT = 2**31 - 1

_NO = ("0", "false", "f", "no", "n", "off")


# --- processes -------------------------------------------------------------------------------


class _Process:
    """What grpcio was used for in one process."""

    def __init__(self, parent: _Process | None = None) -> None:
        self.pid = os.getpid()
        self.channels: dict[Channel, None] = {}
        # Kept for good: what happens when a child drops it is undefined.
        self.parent = parent
        self.made_channels: bool = parent is not None and parent.made_channels
        self.is_proved = parent is None
        self.broken = self._inherited_trouble() if self.made_channels else None

    def _inherited_trouble(self) -> str | None:
        """Return why no call of this forked process would come back, as far as one can know."""
        assert self.parent is not None
        if self.parent.broken is not None:
            return self.parent.broken
        if os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "1").strip().lower() in _NO:
            return "GRPC_ENABLE_FORK_SUPPORT switches grpcio's support of forks off"
        if any(channel.is_used() for channel in list(self.parent.channels)):
            return "a call or a stream was under way when the process was forked"
        return None


_process = _Process()


def _this_process() -> _Process:
    global _process
    # Compared, not hooked: some servers (uWSGI) fork without running Python's hooks.
    if _process.pid != os.getpid():
        _process = _Process(_process)
    return _process


def _check_process(where: str) -> None:
    broken = _this_process().broken
    if broken is not None:
        raise TransportConnectionError(
            f"{where}: grpcio cannot be used in this forked process, because the parent had used "
            f"it before and {broken}. Make the first gRPC call after the fork, or start the "
            "process anew (multiprocessing: the start method 'spawn')"
        )


def _make_way_for_greenlets() -> None:
    """Have grpcio wait as gevent does, where that has replaced threads: else it stops them all."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        from grpc.experimental import gevent

        gevent.init_gevent()


# --- one channel -----------------------------------------------------------------------------


class Channel:
    """One channel to one peer.

    Args:
        target: Host and port.
        credentials: For TLS; None for a plain connection.
        options: grpcio's channel arguments.

    Attributes:
        invoke: Make a blocking call.
        invoke_with_handle: The same as an iterator of one reply, which can be cancelled. Both are
            the same on the wire, and this costs half of grpcio's own ``future``.
        check: Like ``invoke``, of the health check.
        check_with_handle: Like ``invoke_with_handle``, of the health check.
        stream: Call with a stream of replies.
        users: The calls that use it; where an interrupt came between, some that have ended too.
        is_retired: Whether no further call may use it.
    """

    def __init__(self, target: str, credentials: Any, options: Sequence[tuple[str, Any]]) -> None:
        _make_way_for_greenlets()
        self._channel: Any = (
            grpc.insecure_channel(target, options=options)
            if credentials is None
            else grpc.secure_channel(target, credentials, options=options)
        )
        self.invoke: Callable[..., bytes] = self._channel.unary_unary(_INVOKE)
        self.invoke_with_handle: Callable[..., Any] = self._channel.unary_stream(_INVOKE)
        self.check: Callable[..., bytes] = self._channel.unary_unary(CHECK.path)
        self.check_with_handle: Callable[..., Any] = self._channel.unary_stream(CHECK.path)
        self.stream: Callable[..., Any] = self._channel.unary_stream(_STREAM)
        self.users: dict[Call, None] = {}
        self.is_retired = False
        # The public way to learn the state (subscribe) starts two threads, which make a fork in
        # the next 0.2 s unsafe. Without this one, calls find out themselves.
        inner = getattr(self._channel, "_channel", None)
        self._state: Callable[[bool], int] | None = getattr(inner, "check_connectivity_state", None)
        self._watch: Callable[[int, float], Any] | None = getattr(
            inner, "watch_connectivity_state", None
        )
        process = _this_process()
        process.made_channels = True
        process.channels[self] = None

    def leave(self, call: Call) -> None:
        """Say that a call does not use it any more; any number of times."""
        self.users.pop(call, None)
        if self.is_retired and not self.is_used():
            self.close()

    def retire(self) -> None:
        """Close the channel as soon as nobody uses it."""
        self.is_retired = True
        if not self.is_used():
            self.close()

    def is_used(self) -> bool:
        """Return whether a call uses it that has not ended."""
        return any(not call.over for call in [*self.users])

    def close(self) -> None:
        """End what is under way; any number of times."""
        self.is_retired = True
        self._channel.close()
        _process.channels.pop(self, None)

    # --- its connection ---

    def is_ready(self) -> bool:
        """Return whether there is a connection now."""
        if self._state is None or self._watch is None:
            return True
        try:
            return self._state(False) == _READY  # to begin one as well takes several times as long
        except ValueError:  # closed: the call will say so
            return True

    def has_failed(self) -> bool:
        """Return whether the last attempt to connect failed, and grpcio pauses; else begin one."""
        return self._settled_state() == _FAILED

    def _settled_state(self) -> int:
        if self._state is None or self._watch is None:
            return _READY
        try:
            return self._state(True)
        except ValueError:  # closed: the call will say so
            return _READY

    def connect(self, call: Call, where: str) -> None:
        """Wait until the channel is connected, connecting has failed, or the call is ended.

        Not in the caller's thread. An interrupt of grpcio's wait would leave behind what close()
        waits for, for ever; and in a forked process calls into grpcio may never return.

        Raises:
            TransportConnectionError: grpcio cannot work in this process.
            TransportError: No thread can start.
        """
        process = _this_process()
        settled: list[bool] = []
        left: list[bool] = []

        def settle() -> None:
            self._wait_until_settled(call, left)
            settled.append(True)
            call.notify()

        thread = threading.Thread(target=settle, name="protolink-grpc-connect", daemon=True)
        try:
            start(thread)
        except NoThreadError as error:
            raise TransportError(
                f"{where}: no thread can start to connect ({error}), and nothing was sent. Where "
                "Python starts none at its exit (3.12), make a first call before"
            ) from error
        try:
            call.wait(math.inf if process.is_proved else _SIGN_OF_LIFE, until=lambda: settled)
        finally:
            left.append(True)
        if settled:
            leave_none(thread)
            process.is_proved = True
        elif call.ended is None:
            process.broken = "grpcio gives no sign of life here"
            _check_process(where)

    def _wait_until_settled(self, call: Call, left: list[bool]) -> None:
        state = self._settled_state()
        while state not in _SETTLED and not left and call.may_go_on():
            assert self._watch is not None
            try:
                self._watch(state, time.time() + _SLICE)
            except ValueError:  # closed meanwhile
                return
            state = self._settled_state()


class Rpc:
    """A running call that can be cancelled: an iterator over its replies.

    Args:
        channel: Its channel.
        call: The call it is for.
        replies: What grpcio returned.
    """

    __slots__ = ("_call", "channel", "replies")

    def __init__(self, channel: Channel, call: Call, replies: Any) -> None:
        self.channel = channel
        self._call = call
        self.replies = replies

    def cut(self) -> None:
        """Cancel it; any thread, any number of times."""
        self.replies.cancel()

    def take_back(self) -> None:
        """Cancel it unless it has ended, and let go of its channel."""
        self.replies.cancel()
        self.channel.leave(self._call)

    def finish(self) -> None:
        """End it and take what grpcio still has of it (the thread that reads it)."""
        self.replies.cancel()
        # cancel() leaves events undelivered that nobody asks for any more, and a call with such
        # events lives on, and with it its connection, even after its channel was closed.
        due = getattr(getattr(self.replies, "_state", None), "due", None)
        consume = getattr(self.replies, "_consume_next_event", None)
        with contextlib.suppress(KeyError):  # an interrupted wait has dropped them already
            while due and consume is not None:
                consume()

    def finish_later(self) -> None:
        """Do so in another thread: an interrupt can lose what grpcio would wait for in this one."""
        self.replies.cancel()
        if before_bare_fork():
            return  # its connection stays until the process ends
        thread = threading.Thread(target=self.finish, name="protolink-grpc-finish", daemon=True)
        with contextlib.suppress(NoThreadError):
            start(thread)


# --- the channels of a transport -------------------------------------------------------------


class Channels:
    """The channels of one transport in one process, by the peer's address.

    Args:
        config: Sizes, keep-alive, connect timeout.
        user_agent: Who is calling.
        credentials: Makes the credentials of ``grpcs`` peers.
    """

    def __init__(
        self, config: TransportConfig, user_agent: str, credentials: Callable[[], Any]
    ) -> None:
        self._options = _options(config, user_agent)
        self._make_credentials = credentials
        self._credentials: Any = None
        self._channels: dict[str, Channel] = {}
        self._lock = threading.RLock()
        # A dropped channel keeps its connection.
        weakref.finalize(self, _close_all, self._channels, os.getpid()).atexit = False

    def enter(self, url: str, call: Call, context: TransportRequestContext) -> Channel:
        """Return the channel to a peer, with the call entered as its user.

        Raises:
            TransportConnectionError: grpcio cannot work in this process.
            ValueError: The files of ``TLSConfig`` cannot be used.
        """
        while True:
            channel = self._channels.get(url)
            if channel is None:
                # One line, as in Deadline.lend(): an interrupt must not leave the lock behind.
                with self._lock: channel = self._make(url, context)  # fmt: skip  # noqa: E701
            # First in, then looked: of this and retire() at least one sees the other.
            channel.users[call] = None
            if not channel.is_retired:
                return channel
            channel.leave(call)
            self.retire(url, channel)

    def _make(self, url: str, context: TransportRequestContext) -> Channel:
        channel = self._channels.get(url)
        if channel is None:
            _check_process(context.where)
            scheme, _, target = url.partition("://")
            channel = Channel(target, self._for(scheme), self._options)
            self._channels[url] = channel
            self._forget_oldest()
        return channel

    def _for(self, scheme: str) -> Any:
        if scheme != "grpcs":
            return None
        if self._credentials is None:
            self._credentials = self._make_credentials()
        return self._credentials

    def _forget_oldest(self) -> None:
        if len(self._channels) > _KEPT_CHANNELS:
            for url, channel in list(self._channels.items())[:-1]:
                if not channel.is_used():
                    self.retire(url, channel)
                    break

    def retire(self, url: str, channel: Channel) -> None:
        """Have the next call to a peer make a new channel."""
        if self._channels.get(url) is channel:
            self._channels.pop(url, None)
        channel.retire()

    def close(self) -> None:
        """Close all channels and end what is under way in them."""
        _close_all(self._channels, os.getpid())


def _close_all(channels: dict[str, Channel], pid: int) -> None:
    while pid == os.getpid():
        try:
            _, channel = channels.popitem()
        except KeyError:
            break
        channel.close()


def _options(config: TransportConfig, user_agent: str) -> list[tuple[str, Any]]:
    limits = config.limits
    largest = min(max(limits.max_response_bytes, limits.max_event_bytes), _LARGEST_INT)
    limit_of = {"Invoke": limits.max_response_bytes, "Stream": limits.max_event_bytes}
    service = {
        "methodConfig": [
            {
                "name": [{"service": _SERVICE, "method": method}],
                "maxResponseMessageBytes": min(limit, _LARGEST_INT),
            }
            for method, limit in limit_of.items()
        ]
    }
    # No pings: servers end the connection of who sends one more often than each five minutes. (A
    # ProtoLink agent did so in the third minute of a silent call, at the default of 20 s.)
    return [
        # The thread that reads a stream drives it: nothing is handed over inside grpcio.
        ("SingleThreadedUnaryStream", 1),
        # Retries are ours.
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        # Connections are the transport's own: closed with it, and not shared over a fork.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", largest),
        ("grpc.service_config", json.dumps(service)),
        ("grpc.primary_user_agent", user_agent),
        # The name is misleading: it is the least time an attempt to connect is given.
        ("grpc.min_reconnect_backoff_ms", _milliseconds(config.connect_timeout)),
    ]


def _milliseconds(seconds: float) -> int:
    return max(1, int(min(seconds * 1000, _LARGEST_INT)))


def ssl_credentials(roots: bytes | None, key: bytes | None, certificate: bytes | None) -> Any:
    """Return credentials for TLS; without roots, those that come with grpcio are trusted."""
    return grpc.ssl_channel_credentials(roots, key, certificate)
