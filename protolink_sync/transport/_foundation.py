"""What a transport is between calls: settings, addresses, counters, its process, its end."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar

from protolink_sync._deadline import seconds
from protolink_sync._version import __version__
from protolink_sync.config import TransportConfig
from protolink_sync.errors import ClientClosedError
from protolink_sync.security import (
    Credentials,
    TLSConfig,
    caller_headers,
    check_credentials,
    check_header,
    refuse_secret_headers,
)
from protolink_sync.transport._addresses import Addresses
from protolink_sync.transport._codec import Codec, TransportCapabilities
from protolink_sync.transport._hooks import Hooks
from protolink_sync.transport._keywords import explaining
from protolink_sync.transport._metrics import Metrics, TransportMetricsSnapshot
from protolink_sync.transport._slots import Slots
from protolink_sync.wire import http as http_codec

__all__ = ["Foundation"]

_DEFAULT_TIMEOUT = 300.0

_DEFAULTS = TransportConfig()


class Foundation:
    """What :class:`~protolink_sync.transport.Transport` stands on; see there."""

    transport_type: ClassVar[str] = ""
    schemes: ClassVar[tuple[str, ...]] = ()
    capabilities: ClassVar[TransportCapabilities] = TransportCapabilities()
    _codec: ClassVar[Codec] = http_codec
    _host_and_port: ClassVar[bool] = False
    # Whether a single call can have headers of its own.
    _headers_per_call: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explaining(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        url: str | None = None,
        timeout: float | None = None,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TLSConfig | None = None,
        config: TransportConfig | None = None,
        hooks: Hooks | None = None,
        user_agent: str | None = None,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Hooks):
            raise TypeError(f"hooks is a {type(hooks).__name__}, must be Hooks(...)")
        if tls is not None and not isinstance(tls, TLSConfig):
            raise TypeError(f"tls is a {type(tls).__name__}, must be a TLSConfig")
        if config is not None and not isinstance(config, TransportConfig):
            raise TypeError(f"config is a {type(config).__name__}, must be a TransportConfig")
        self._timeout = _DEFAULT_TIMEOUT if timeout is None else seconds("timeout", timeout)
        self._config = config or _DEFAULTS
        self._tls = tls
        self._credentials = check_credentials(credentials)
        self._headers = caller_headers(headers)
        self._hooks = hooks
        self._agent_suffix = _checked_suffix(user_agent)
        self._addresses = Addresses(
            self.transport_type, self.schemes, host_and_port=self._host_and_port
        )
        self._url = None if url is None else self._addresses.own(url)
        self._closed = False
        self._begin_process()
        _transports.add(self)

    def _begin_process(self) -> None:
        """Set up what belongs to one process; a forked child begins anew."""
        self._pid = os.getpid()
        self._metrics = Metrics()
        self._slots = Slots(self._config.limits.max_concurrent_requests)
        self._stream_slots = Slots(self._config.limits.max_concurrent_streams)

    # --- what a user reads ------------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """Address for calls that name none."""
        return self._url

    @property
    def timeout(self) -> float:
        """Budget in seconds of a call that gives none."""
        return self._timeout

    @property
    def config(self) -> TransportConfig:
        """The settings."""
        return self._config

    @property
    def credentials(self) -> Credentials | None:
        """What peers are asked to accept, as ``check_credentials`` returned it."""
        return self._credentials

    @property
    def headers(self) -> Mapping[str, str]:
        """The caller's headers, which go with every call."""
        return dict(self._headers)

    @property
    def user_agent(self) -> str:
        """As what the transport makes itself known."""
        ours = f"protolink-sync/{__version__}"
        return ours if self._agent_suffix is None else f"{ours} {self._agent_suffix}"

    @property
    def supports_streaming(self) -> bool:
        """Whether :meth:`subscribe` works."""
        return self.capabilities.streaming

    @property
    def metrics(self) -> TransportMetricsSnapshot:
        """The counters at this moment, of this process."""
        return self._metrics.snapshot(lambda: self._slots.calls() | self._stream_slots.calls())

    def health(self) -> dict[str, Any]:
        """Return a report as plain values.

        Returns:
            ``status`` (``ready`` or ``stopped``), ``ready``, ``transport``, ``url``,
            ``capabilities`` and ``metrics``.
        """
        return {
            "status": "stopped" if self._closed else "ready",
            "ready": not self._closed,
            "transport": self.transport_type,
            "url": self._url,
            "capabilities": self.capabilities.to_dict(),
            "metrics": self.metrics.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} url={self._url!r} timeout={self._timeout:g}>"

    # --- what a client of another protocol needs ----------------------------------

    def address(self, url: str) -> str:
        """Return an agent's address as calls take it: checked, without a slash at its end.

        Args:
            url: The address.

        Raises:
            TypeError: It is no text.
            ValueError: It is no base URL of this transport.
        """
        return self._addresses.checked(url)

    # --- its end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """End what is in flight, close every connection; later calls raise.

        A call that runs raises ``ClientClosedError``. Closing again is silent.
        """
        self._closed = True
        self._check_process()
        for call in self._slots.calls() | self._stream_slots.calls():
            call.abort("closed")
        # The workers of streams end by themselves now.
        self._stream_slots.wait_until_empty(self._config.shutdown_timeout)
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _close(self) -> None:
        """Give back connections; may be called again (hook)."""
        raise NotImplementedError

    # --- addresses, processes, pickles ------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosedError(f"this {type(self).__name__} is closed: make a new one")
        if self._pid != os.getpid():
            self._check_process()

    def _check_process(self) -> None:
        # Some servers (uWSGI) fork without running the hooks of os.register_at_fork.
        if self._pid != os.getpid():
            self._after_fork()

    def _after_fork(self) -> None:
        """Forget, in a forked child, what belongs to the parent."""
        self._begin_process()

    def _peer(self, base_url: str | None) -> str:
        if type(base_url) is str:
            return self._addresses[base_url]
        if base_url is not None:
            return self._addresses.checked(base_url)
        if self._url is None:
            raise ValueError(
                f"this {type(self).__name__} has no url: give one to it or to the call"
            )
        return self._addresses.checked(self._url)

    def __reduce__(self) -> Any:
        refuse_secret_headers(self._headers, what=f"headers= of this {type(self).__name__}")
        return _rebuild, (type(self), self._settings())

    def _settings(self) -> dict[str, Any]:
        """Return the constructor's arguments, for a copy in another process."""
        return {
            "url": self._url,
            "timeout": self._timeout,
            "credentials": self._credentials,
            "headers": dict(self._headers),
            "tls": self._tls,
            "config": self._config,
            "hooks": self._hooks,
            "user_agent": self._agent_suffix,
        }


def _checked_suffix(user_agent: str | None) -> str | None:
    if user_agent is None:
        return None
    check_header("User-Agent", user_agent, what="user_agent=")
    if not user_agent.strip():
        raise ValueError("user_agent is empty; leave it out")
    return user_agent.strip()


def _rebuild(cls: type[Foundation], settings: dict[str, Any]) -> Foundation:
    return cls(**settings)


_transports: weakref.WeakSet[Foundation] = weakref.WeakSet()


def _forget_parents() -> None:
    for transport in list(_transports):
        transport._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
