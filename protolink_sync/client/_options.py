"""What the calls of a client's view have in common, and how they get it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync._deadline import CancelToken, Deadline, seconds
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.models import ClientRequestSpec, Task
from protolink_sync.security import Credentials, refuse_secret_headers
from protolink_sync.streaming import EventStream
from protolink_sync.transport import CallOptions, Transport

__all__ = ["Options", "ViewedTransport", "joined"]


def _checked_timeout(value: Any) -> float | None:
    return None if value is None else seconds("timeout", value)


@attrs.frozen
class Options:
    """What the calls of a view have that are not given anything else.

    Args:
        timeout: Budget in seconds of each call; of a stream, from the call to its end.
        cancel: Token that ends the calls, beside one that a call is given.
        call: Headers, retries and request id.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is out of range.
    """

    timeout: float | None = attrs.field(default=None, converter=_checked_timeout)
    cancel: CancelToken | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(CancelToken))
    )
    call: CallOptions = attrs.field(factory=CallOptions)

    def with_more(
        self,
        timeout: float | None,
        headers: Mapping[str, str] | None,
        retry: RetryPolicy | None,
        cancel: CancelToken | None,
        request_id: str | None,
    ) -> Options:
        """Return options that have further ones; a new value wins, but tokens add up."""
        new = Options(timeout, cancel, CallOptions(headers or {}, retry, request_id))
        call = CallOptions(
            _without({**self.call.headers}, new.call.headers) | {**new.call.headers},
            self.call.retry if retry is None else retry,
            self.call.request_id if request_id is None else request_id,
        )
        budget = self.timeout if timeout is None else new.timeout
        return Options(budget, joined(self.cancel, cancel), call)

    def __str__(self) -> str:
        told = [
            "" if self.timeout is None else f"timeout={self.timeout:g}",
            f"headers {', '.join(self.call.headers)}" if self.call.headers else "",
            "" if self.call.retry is None else f"retry={self.call.retry}",
            "" if self.cancel is None else "a token",
            "" if self.call.request_id is None else f"request_id={self.call.request_id!r}",
        ]
        return ", ".join(filter(None, told))

    def __getstate__(self) -> tuple[Any, ...]:
        refuse_secret_headers(self.call.headers, what="headers= of this view of a client")
        return self.timeout, self.cancel, self.call

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(("timeout", "cancel", "call"), state, strict=True):
            object.__setattr__(self, name, value)


def _without(headers: dict[str, str], others: Mapping[str, str]) -> dict[str, str]:
    names = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in names}


class ViewedTransport:
    """A transport as the calls of one view see it: the same one, with the view's options.

    Args:
        transport: Carries the calls.
        options: What they have.
    """

    def __init__(self, transport: Transport, options: Options) -> None:
        self._transport = transport
        self._options = options
        self.transport_type = transport.transport_type
        self.address = transport.address

    @property
    def timeout(self) -> float:
        """Budget in seconds of a call that gives none."""
        given = self._options.timeout
        return self._transport.timeout if given is None else given

    @property
    def config(self) -> TransportConfig:
        """The transport's settings."""
        return self._transport.config

    @property
    def credentials(self) -> Credentials | None:
        """The transport's credentials."""
        return self._transport.credentials

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that go with each call: the transport's, and the view's."""
        return {**self._transport.headers, **self._options.call.headers}

    def send(
        self,
        request_spec: ClientRequestSpec,
        base_url: str | None = None,
        data: Any = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Carry out an operation; see ``Transport.send``."""
        return self._transport.send(
            request_spec,
            base_url,
            data,
            params,
            timeout=self.timeout if timeout is None else timeout,
            cancel=joined(self._options.cancel, cancel),
            idempotency_key=idempotency_key,
            options=self._options.call,
        )

    def send_as(self, *args: Any, cancel: CancelToken | None = None, **settings: Any) -> Any:
        """Carry out an operation of another protocol; see ``Transport.send_as``."""
        return self._transport.send_as(
            *args,
            cancel=joined(self._options.cancel, cancel),
            options=self._options.call,
            **settings,
        )

    def subscribe(
        self,
        agent_url: str,
        task: Task,
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> EventStream:
        """Open a stream; see ``Transport.subscribe``."""
        return self._transport.subscribe(
            agent_url,
            task,
            timeout=self._options.timeout if timeout is None else timeout,
            idle_timeout=idle_timeout,
            cancel=joined(self._options.cancel, cancel),
            options=self._options.call,
        )


def joined(first: CancelToken | None, second: CancelToken | None) -> CancelToken | None:
    """Return a token that is cancelled when one of two is; None if there is none."""
    if first is None or second is None or first is second:
        return first or second
    return _Joined(first, second)


class _Joined(CancelToken):
    """What two tokens are together. It keeps nothing: the two hold what must be ended."""

    __slots__ = ("_both",)

    def __init__(self, first: CancelToken, second: CancelToken) -> None:
        self._both = (first, second)

    @property
    def _first(self) -> tuple[str | None] | None:  # type: ignore[override]
        first, second = self._both
        return first._first or second._first

    def cancel(self, reason: str | None = None) -> None:
        """Cancel both."""
        first, second = self._both
        try:
            first.cancel(reason)
        finally:
            second.cancel(reason)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until one of them is cancelled; see ``CancelToken.wait``."""
        either = CancelToken()
        forget = self.on_cancel(either.cancel)
        try:
            return either.wait(timeout)
        finally:
            forget()

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Have a function called once, when the first of them is cancelled."""
        waiting = [callback]

        def call() -> None:
            try:
                # One operation of the interpreter: of two threads one gets it.
                due = waiting.pop()
            except IndexError:
                return
            due()

        takers = [token.on_cancel(call) for token in self._both]
        return functools.partial(_take_back, takers)

    def _add_call(self, call: Deadline) -> None:
        for token in self._both:
            token._add_call(call)

    def _remove_call(self, call: Deadline) -> None:
        for token in self._both:
            token._remove_call(call)


def _take_back(takers: list[Callable[[], object]]) -> None:
    for take_back in takers:
        take_back()
