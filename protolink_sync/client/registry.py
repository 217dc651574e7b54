"""RegistryClient: where agents are entered and found."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from protolink_sync._deadline import CancelToken, seconds
from protolink_sync._threads import NoThreadError, start
from protolink_sync.client._foundation import Carried
from protolink_sync.errors import (
    ClientClosedError,
    TransportError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import AgentCard, ClientRequestSpec
from protolink_sync.specs import (
    REGISTRY_DISCOVER_REQUEST,
    REGISTRY_HEARTBEAT_REQUEST,
    REGISTRY_REGISTER_REQUEST,
    REGISTRY_UNREGISTER_REQUEST,
)
from protolink_sync.transport import Transport

__all__ = ["Registration", "RegistryClient"]

_log = logging.getLogger("protolink_sync.registry")

# What a registry compares as text; it answers "nothing fits" to any other name.
_ATTRIBUTES = ("description", "name", "protocol_version", "role", "transport", "url", "version")

_NOT_FOUND = "agent not found"


class RegistryClient(Carried):
    """Enter agents in a registry, keep them alive there, find them. Threads may share it.

    Every call has an idempotency key of its own, so a second heartbeat is a heartbeat and not
    the registry's memory of the first.

    Args:
        transport: A transport with the registry's address, which stays the caller's to close; or
            the name of one, which the client makes and closes.
        url: Address of the registry, for the named transport.
        timeout: Budget in seconds of calls that give none, for the named transport.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such transport, or it has no address.

    Source:
        ProtoLink 0.8.3, ``RegistryClient``; wire/protolink.md 18.

    >>> RegistryClient("http", url="http://localhost:9000").url
    'http://localhost:9000'
    """

    REGISTER_REQUEST: ClassVar[ClientRequestSpec] = REGISTRY_REGISTER_REQUEST
    UNREGISTER_REQUEST: ClassVar[ClientRequestSpec] = REGISTRY_UNREGISTER_REQUEST
    HEARTBEAT_REQUEST: ClassVar[ClientRequestSpec] = REGISTRY_HEARTBEAT_REQUEST
    DISCOVER_REQUEST: ClassVar[ClientRequestSpec] = REGISTRY_DISCOVER_REQUEST

    def __init__(
        self, transport: Transport | str, url: str | None = None, timeout: float | None = 300
    ) -> None:
        super().__init__(transport, url, timeout)
        if not self._transport.url:
            raise ValueError(
                "a RegistryClient needs the registry's address: give url= to its transport"
            )

    @property
    def url(self) -> str:
        """Address of the registry."""
        return str(self._transport.url)

    def register(
        self,
        card: AgentCard,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, Any]:
        """Enter an agent, in the place of one with the same address; never retried.

        Args:
            card: The agent's card.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.

        Returns:
            The registry's answer: its ``status`` as words.
        """
        if not isinstance(card, AgentCard):
            raise TypeError(f"card is a {type(card).__name__}, must be an AgentCard")
        return self._answer(REGISTRY_REGISTER_REQUEST, card, timeout, cancel)

    def unregister(
        self,
        agent_url: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, Any]:
        """Take an agent out; one that is not in it is no error.

        Args:
            agent_url: The address on its card.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.
        """
        data = _named(agent_url)
        return self._answer(REGISTRY_UNREGISTER_REQUEST, data, timeout, cancel)

    def heartbeat(
        self,
        agent_url: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, Any]:
        """Say that an agent is alive. :meth:`registered` does so again and again.

        Args:
            agent_url: The address on its card.
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.

        Raises:
            TransportRemoteError: The agent is not in the registry (it answers so with status
                200), or the registry failed.
        """
        data = _named(agent_url)
        answer = self._answer(REGISTRY_HEARTBEAT_REQUEST, data, timeout, cancel)
        if answer["status"] == _NOT_FOUND:
            raise TransportRemoteError(
                f"heartbeat to {self.url}: {agent_url!r} is not in the registry: register it again",
                url=self.url,
                error_message=_NOT_FOUND,
            )
        return answer

    def discover(
        self,
        filter_by: Mapping[str, str | Sequence[str]] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> list[AgentCard]:
        """Return the cards of the agents that fit.

        Args:
            filter_by: Attributes of a card and the text each must equal, case included;
                ``tags`` is a tag, or several which all must be there. None for all agents. (A
                0.8.3 registry forgets ``role``: each agent there is a ``worker``.)
            timeout: Budget in seconds.
            cancel: Token that ends the waiting.

        Raises:
            TypeError: A value is no text.
            ValueError: There is no such attribute to ask for.
        """
        asked = _checked_filter(filter_by)
        cards: list[AgentCard] = self._transport.send(
            REGISTRY_DISCOVER_REQUEST, None, asked or None, timeout=timeout, cancel=cancel
        )
        # Over HTTP a registry looks at the last of several tags only.
        return [card for card in cards if _fits(card, asked)]

    def registered(self, card: AgentCard, *, interval: float = 30.0) -> Registration:
        """Return a context manager that keeps an agent in the registry while it is open.

        Args:
            card: The agent's card.
            interval: Seconds from one heartbeat to the next, and the budget of each.
        """
        return Registration(self, card, interval=interval)

    def _answer(
        self,
        spec: ClientRequestSpec,
        data: Any,
        timeout: float | None,
        cancel: CancelToken | None,
    ) -> dict[str, Any]:
        answer = self._transport.send(spec, None, data, timeout=timeout, cancel=cancel)
        if not isinstance(answer, dict) or not isinstance(answer.get("status"), str):
            raise TransportProtocolError(
                f"{spec.name} to {self.url}: the answer has no status; is a registry there?",
                url=self.url,
            )
        return answer

    def __repr__(self) -> str:
        return f"<RegistryClient {self._transport!r}>"


class Registration:
    """An agent's place in a registry, for a ``with`` block: made by ``registry.registered``.

    Entering registers the agent and starts a thread that sends heartbeats; a registry that has
    forgotten the agent gets its card again. Leaving ends the thread and unregisters the agent. A
    heartbeat that fails, whatever it raises, is logged and kept in :attr:`error`, and the next one
    is sent.
    """

    def __init__(self, registry: RegistryClient, card: AgentCard, *, interval: float) -> None:
        if not isinstance(card, AgentCard):
            raise TypeError(f"card is a {type(card).__name__}, must be an AgentCard")
        self._registry = registry
        self._card = card
        self._interval = seconds("interval", interval)
        self._stop = CancelToken()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    @property
    def error(self) -> Exception | None:
        """Why the last heartbeat failed; None if it did not.

        It may be an error of yours, as one that a credentials callable raised.
        """
        return self._error

    def __enter__(self) -> Registration:
        if self._thread is not None:
            raise RuntimeError("this registration was entered before: make another one")
        self._registry.register(self._card)
        self._pid = os.getpid()
        thread = threading.Thread(target=self._beat, name="protolink-heartbeat", daemon=True)
        try:
            start(thread)
            self._thread = thread
        except NoThreadError as error:
            self.__exit__(type(error), error, None)  # nobody else will: the block is not entered
            self._thread = thread
            raise TransportError(
                f"no thread can start to send the heartbeats of {self._card.url} ({error}), so the "
                "agent is not registered. Where Python starts none at its exit (3.12), register it "
                "before"
            ) from error
        except BaseException:  # of a signal handler; the thread may run
            self._stop.cancel("the registration was interrupted")
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if os.getpid() != self._pid:
            return  # a forked child that leaves the block; the agent is its parent's
        self._stop.cancel("the registration has ended")
        if self._thread is not None:
            self._thread.join()
        try:
            self._registry.unregister(self._card.url)
        except Exception as failure:
            # What broke the block matters more.
            if kind is None:
                raise
            _log.warning("%s is still registered: %s", self._card.url, type(failure).__name__)

    def _beat(self) -> None:
        """Send heartbeats until the block is left (the thread)."""
        while not self._stop.wait(self._interval):
            try:
                self._beat_once()
                self._error = None
            except Exception as error:
                if self._stop.cancelled:
                    return
                self._error = error
                _log.warning("heartbeat of %s failed: %s", self._card.url, type(error).__name__)
                if isinstance(error, ClientClosedError):
                    return

    def _beat_once(self) -> None:
        try:
            self._registry.heartbeat(self._card.url, timeout=self._interval, cancel=self._stop)
        except TransportRemoteError as error:
            if error.error_message != _NOT_FOUND:
                raise
            self._registry.register(self._card, timeout=self._interval, cancel=self._stop)


def _named(agent_url: Any) -> dict[str, str]:
    if not isinstance(agent_url, str):
        raise TypeError(f"agent_url is a {type(agent_url).__name__}, must be a str")
    if not agent_url:
        raise ValueError("agent_url is empty, must be the address on the agent's card")
    return {"agent_url": agent_url}


def _checked_filter(filter_by: Any) -> dict[str, str | list[str]]:
    """Return a filter that means the same on every transport."""
    asked: dict[str, str | list[str]] = {}
    if filter_by is not None and not isinstance(filter_by, Mapping):
        raise TypeError(f"filter_by is a {type(filter_by).__name__}, must be a mapping")
    for name, value in (filter_by or {}).items():
        if name not in _ATTRIBUTES and name != "tags":
            known = ", ".join(sorted([*_ATTRIBUTES, "tags"]))
            raise ValueError(f"a registry cannot be asked for {name!r}; known: {known}")
        values = [value] if isinstance(value, str) or name != "tags" else list(value)
        for one in values:
            if not isinstance(one, str):
                raise TypeError(f"filter_by[{name!r}] holds {one!r}, must be text")
        if values:
            asked[name] = values[0] if len(values) == 1 else values
    return asked


def _fits(card: AgentCard, asked: Mapping[str, str | list[str]]) -> bool:
    for name, value in asked.items():
        if name == "tags":
            if not {*([value] if isinstance(value, str) else value)} <= {*card.tags}:
                return False
        elif getattr(card, name) != value:
            return False
    return True
