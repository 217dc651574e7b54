"""Settings of a transport: sizes, retries, connections. Frozen values, safe to share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

__all__ = ["RetryPolicy", "TransportConfig", "TransportLimits"]

_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def _number(kind: type, *, above: float | None = None, least: float | None = None) -> Any:
    """Make a validator for a number; it names the field, the value and what is allowed."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        where = f"{type(instance).__name__}.{attribute.name}"
        allowed = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise TypeError(f"{where} is {value!r}, must be of type {kind.__name__}")
        if above is not None and not value > above:
            raise ValueError(f"{where} is {value!r}, must be more than {above:g}")
        if least is not None and not value >= least:
            raise ValueError(f"{where} is {value!r}, must be {least:g} or more")

    return check


def _optional(validator: Any) -> Any:
    return attrs.validators.optional(validator)


def _size(default: int) -> Any:
    return attrs.field(default=default, validator=_number(int, above=0))


def _mapping(settings: Any) -> dict[str, Any]:
    """Return the fields by name, settings in settings as mappings too."""
    return {
        field.name: _mapping(value) if attrs.has(type(value)) else _plain(value)
        for field in attrs.fields(type(settings))
        for value in (getattr(settings, field.name),)
    }


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data as keyword arguments, or name the keys that are no fields."""
    names = [field.name for field in attrs.fields(cls)]
    unknown = sorted(set(data) - set(names))
    if unknown:
        raise TypeError(
            f"{cls.__name__} has no {', '.join(map(repr, unknown))}; known: {', '.join(names)}"
        )
    return dict(data)


@attrs.frozen
class TransportLimits:
    """How large messages may be and how many calls may run at the same time.

    Args:
        max_request_bytes: Size of an encoded request, checked before it is sent.
        max_response_bytes: Size of an answer, inflated, checked while it is read.
        max_event_bytes: Size of one event of a stream.
        max_concurrent_requests: Calls of one transport in one process; further ones wait.
        max_concurrent_streams: Streams of one transport in one process; further ones wait.

    Raises:
        TypeError: A value is no integer.
        ValueError: A value is not above 0.

    Source:
        ProtoLink 0.8.3, ``TransportLimits``: the same fields and defaults.
    """

    max_request_bytes: int = _size(16 * 1024 * 1024)
    max_response_bytes: int = _size(16 * 1024 * 1024)
    max_event_bytes: int = _size(4 * 1024 * 1024)
    max_concurrent_requests: int = _size(100)
    max_concurrent_streams: int = _size(100)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as :meth:`from_dict` takes them."""
        return _mapping(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TransportLimits:
        """Build the limits from their fields by name.

        Raises:
            TypeError: A key is no field.
        """
        return cls(**_known(cls, data))


def _members(value: Iterable[Any], name: str, kind: str) -> Iterable[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"RetryPolicy.{name} is {value!r}, must be a set of {kind}")
    return value


def _methods(value: Iterable[str]) -> frozenset[str]:
    members = _members(value, "retryable_methods", "methods")
    return frozenset(str(method).upper() for method in members)


def _statuses(value: Iterable[int]) -> frozenset[int]:
    return frozenset(_members(value, "retryable_statuses", "HTTP statuses"))


def _only_methods(_instance: Any, _attribute: Any, value: frozenset[str]) -> None:
    unknown = sorted(value - set(_METHODS))
    if unknown:
        raise ValueError(
            f"RetryPolicy.retryable_methods has {', '.join(unknown)}; known: {', '.join(_METHODS)}"
        )


def _only_statuses(_instance: Any, _attribute: Any, value: frozenset[int]) -> None:
    for status in value:
        if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
            raise ValueError(
                f"RetryPolicy.retryable_statuses has {status!r}; HTTP error statuses are 400 to 599"
            )


@attrs.frozen
class RetryPolicy:
    """Whether and when a failed call is sent once more.

    A call is sent again only if its request spec is idempotent and allows it, its method is one
    of :attr:`retryable_methods` and the error says ``retryable``. Every attempt sends the same
    bytes, the same request id and the same idempotency key. Streams are never retried.

    Args:
        max_attempts: How often a call is sent at most, the first time included.
        initial_backoff: Seconds before the second attempt; doubled for each further one.
        max_backoff: Longest such pause in seconds.
        jitter: Up to so many seconds are added at random, so that many clients which failed
            together do not return together.
        retryable_methods: HTTP methods that may be sent again.
        retryable_statuses: HTTP statuses whose errors are retryable.
        max_retry_after: The longest ``Retry-After`` that is waited for, in seconds; a longer one
            raises the error at once.
        attempt_timeout: Seconds for one attempt; None for no bound but the call's budget.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is out of range.

    Source:
        ProtoLink 0.8.3, ``RetryPolicy``, for the first five fields and the formula.
    """

    max_attempts: int = attrs.field(default=1, validator=_number(int, least=1))
    initial_backoff: float = attrs.field(default=0.1, validator=_number(float, least=0))
    max_backoff: float = attrs.field(default=2.0, validator=_number(float, least=0))
    jitter: float = attrs.field(default=0.1, validator=_number(float, least=0))
    retryable_methods: frozenset[str] = attrs.field(
        default=frozenset(("DELETE", "GET", "POST", "PUT")),
        converter=_methods,
        validator=_only_methods,
    )
    retryable_statuses: frozenset[int] = attrs.field(
        default=frozenset((429, 502, 503, 504)),
        converter=_statuses,
        validator=_only_statuses,
        kw_only=True,
    )
    max_retry_after: float = attrs.field(
        default=30.0, validator=_number(float, least=0), kw_only=True
    )
    attempt_timeout: float | None = attrs.field(
        default=None, validator=_optional(_number(float, above=0)), kw_only=True
    )

    def __attrs_post_init__(self) -> None:
        if self.max_backoff < self.initial_backoff:
            raise ValueError(
                f"RetryPolicy.max_backoff is {self.max_backoff!r}, must not be below "
                f"initial_backoff, which is {self.initial_backoff!r}"
            )

    def delay_before(self, retry: int, *, luck: Callable[[], float] | None = None) -> float:
        """Return how long to wait before one retry.

        The delay doubles with each retry up to :attr:`max_backoff`. Jitter is added after the
        cap, so many clients that failed together do not return together.

        Args:
            retry: Number of the coming retry; 1 is the second attempt.
            luck: Gives the share of :attr:`jitter` to add, from 0 to 1; None for a random one.

        Returns:
            Delay in seconds, at most ``max_backoff + jitter``.

        Raises:
            ValueError: ``retry`` is below 1.

        Source:
            ProtoLink, Transport reference, RetryPolicy, "Retry formula".

        >>> RetryPolicy(initial_backoff=0.1, max_backoff=0.3).delay_before(2, luck=lambda: 0)
        0.2
        >>> RetryPolicy(initial_backoff=0.1, max_backoff=0.3).delay_before(9, luck=lambda: 0)
        0.3
        """
        if retry < 1:
            raise ValueError(
                f"retry is {retry}, must be 1 or more: the first attempt is not a retry"
            )
        if luck is None:
            import random  # not at import: most programs never retry

            luck = random.random
        # 2.0 ** 1024 overflows; the cap is reached long before.
        doubled = self.initial_backoff * 2.0 ** min(retry - 1, 64)
        return min(doubled, self.max_backoff) + luck() * self.jitter

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as :meth:`from_dict` takes them."""
        return _mapping(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RetryPolicy:
        """Build the policy from its fields by name.

        Raises:
            TypeError: A key is no field.
        """
        return cls(**_known(cls, data))


def _is_a(kind: type) -> Any:
    def check(instance: Any, attribute: Any, value: Any) -> None:
        if not isinstance(value, kind):
            raise TypeError(
                f"{type(instance).__name__}.{attribute.name} is {value!r}, "
                f"must be a {kind.__name__}"
            )

    return check


@attrs.frozen
class TransportConfig:
    """Everything about a transport that is not its address, its credentials or its TLS.

    Args:
        limits: Sizes and concurrency.
        retry: Retries.
        keepalive_interval: Seconds after which an idle connection counts as old: it is not used
            again after three quarters of them. None: idle connections do not age.
        keepalive_timeout: Of an agent hosted here: seconds after which an idle connection is
            closed. Clients send no pings of their own; a WebSocket peer's are answered.
        shutdown_timeout: Seconds ``close()`` waits at most for worker threads.
        idempotency_ttl: Seconds for which a peer remembers an idempotency key. No attempt begins
            later than this after the first.
        idempotency_cache_size: How many keys an agent hosted here remembers.
        collect_metrics: False switches the counters off.
        connect_timeout: Seconds to resolve, connect and negotiate TLS, for each attempt.
        max_idle_connections: Idle connections kept for each peer; further ones are closed after
            one idle second.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is out of range.

    Source:
        ProtoLink 0.8.3, ``TransportConfig``, for the first eight fields.
    """

    limits: TransportLimits = attrs.field(factory=TransportLimits, validator=_is_a(TransportLimits))
    retry: RetryPolicy = attrs.field(factory=RetryPolicy, validator=_is_a(RetryPolicy))
    keepalive_interval: float | None = attrs.field(
        default=20.0, validator=_optional(_number(float, above=0))
    )
    keepalive_timeout: float = attrs.field(default=20.0, validator=_number(float, above=0))
    shutdown_timeout: float = attrs.field(default=5.0, validator=_number(float, above=0))
    idempotency_ttl: float = attrs.field(default=300.0, validator=_number(float, above=0))
    idempotency_cache_size: int = attrs.field(default=1024, validator=_number(int, above=0))
    collect_metrics: bool = attrs.field(default=True, validator=_is_a(bool))
    connect_timeout: float = attrs.field(
        default=30.0, validator=_number(float, above=0), kw_only=True
    )
    max_idle_connections: int = attrs.field(
        default=10, validator=_number(int, least=0), kw_only=True
    )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as :meth:`from_dict` takes them."""
        return _mapping(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TransportConfig:
        """Build the settings from their fields by name; limits and retry may be mappings.

        Raises:
            TypeError: A key is no field.
        """
        fields = _known(cls, data)
        for name, kind in (("limits", TransportLimits), ("retry", RetryPolicy)):
            if isinstance(fields.get(name), Mapping):
                fields[name] = kind.from_dict(fields[name])
        return cls(**fields)
