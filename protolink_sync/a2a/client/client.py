"""A2AClient: one agent that speaks A2A, called and waited for."""

from __future__ import annotations

import copy
from typing import Any

from protolink_sync._deadline import CancelToken
from protolink_sync.a2a.client import _operations as ops
from protolink_sync.a2a.client._arguments import check_switch
from protolink_sync.a2a.client._messages import Messages
from protolink_sync.a2a.client._pushing import Pushing
from protolink_sync.a2a.wire import AgentCard, WireDialect
from protolink_sync.errors import ModelError, TransportProtocolError

__all__ = ["A2AClient"]


class A2AClient(Messages, Pushing):
    """Call one agent that speaks A2A, in 1.0 or 0.3, and block until it answers.

    The agent's card, fetched before the first call, says where and in which dialect to call it.
    An agent without a card is tried in 1.0, then in 0.3. Any number of threads may share a
    client; what is set takes effect for later calls only. Nothing is ever sent twice but what
    only looks, and what an agent has said not to have understood.

    No time limits an exchange unless one is set: an agent may think for minutes. Ending a call
    (by ``timeout``, token or Ctrl-C) ends the waiting, not the task; :meth:`cancel_task` ends
    the task.

    Args:
        base_url: Address of the agent; the card's path may stand behind it.
        credentials: What the agent asks for: a ``str`` (bearer token), ``BearerToken``,
            ``APIKey``, ``BasicAuth``, a mapping from origin to one of these, a callable
            ``(origin, refresh) -> headers``, or ``SchemeCredentials`` by the card's names. They
            go with the request for the card too, and to another origin only with
            ``send_credentials_cross_origin``.
        headers: Headers for every request, with the same limits.
        tls: Certificates; None for the system's authorities.
        proxy: URL of a proxy; None for what the environment says.
        trust_env: False ignores the environment's proxies and CA bundles.
        config: Sizes, retries, connections.
        timeout: Budget in seconds of a call that gives none; None for no bound.
        connect_timeout: Seconds for resolving, connecting and TLS of each request; None or
            ``math.inf`` for no bound.
        dialect: The only dialect to speak; None for what the card says, or the agent understands.
        allow_cross_origin: Follow a card that names an address of another origin. Without it such
            an address is ignored, and calls go to ``base_url``.
        send_credentials_cross_origin: Show ``credentials`` and ``headers`` there too.
        strict: Refuse, before anything is sent, what the card says the agent cannot do.
        extensions: URIs of the extensions that are used.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The address is no ``http`` or ``https`` URL, or an argument is out of range.

    Source:
        neograph ``a2a::A2AClient``; A2A 1.0 and 0.3.

    >>> client = A2AClient("https://agent.example.com")
    >>> client.endpoint_url, client.wire_dialect
    ('https://agent.example.com', None)
    """

    # --- the card ----------------------------------------------------------------------------

    def fetch_agent_card(
        self,
        force: bool = False,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> AgentCard:
        """Return the agent's card, fetched once for all threads.

        Args:
            force: Ask for it again; with the tag of the one that is held, so that the agent may
                answer that it is still good. The next call selects its address anew.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.

        Returns:
            A copy, which the caller may change.

        Raises:
            A2AClientError: What is there is no card, or lies at another origin.
            TransportError: There is none, or no answer.
            CallCancelledError: The token was cancelled.
        """
        check_switch("force", force)
        return copy.deepcopy(self._peer.card(self._budget(timeout, cancel), force=force))

    def get_extended_card(
        self, *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> AgentCard:
        """Return the card that the agent shows to callers it knows.

        Args:
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.

        Raises:
            A2AClientError: The agent's card says that there is none (``strict=True``).
            A2ARpcError: The agent refused.
        """
        budget = self._budget(timeout, cancel)
        self._check_offered("an extended card", lambda c: c.supports_extended_card, budget)
        value = self._peer.run(
            ops.EXTENDED_CARD, lambda dialect, tenant: dialect.extended_card_params(tenant), budget
        )
        try:
            return AgentCard.from_dict(value)
        except ModelError as error:
            raise TransportProtocolError(
                f"get_extended_card from {self.endpoint_url}: the answer is no card: {error}",
                url=self.endpoint_url,
            ) from error

    # --- anything else -----------------------------------------------------------------------

    def rpc_call(
        self,
        method: str,
        params: Any = None,
        dialect: WireDialect | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Any:
        """Call any JSON-RPC method at :attr:`endpoint_url`, as it is given; no card is fetched.

        Args:
            method: Name of the method.
            params: Its params, JSON values; None sends none.
            dialect: ``WireDialect.V1_0`` sends the version header too.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.

        Returns:
            The result, decoded JSON.

        Raises:
            A2ARpcError: The agent answered with an error.
            ProtoLinkError: As for :meth:`send_message`.
        """
        if not isinstance(method, str) or not method:
            raise ValueError(f"method is {method!r}, must be the name of a method")
        if dialect is not None and not isinstance(dialect, WireDialect):
            raise TypeError(f"dialect is {dialect!r}, must be a WireDialect or None")
        return self._peer.verbatim(method, params, dialect, self._budget(timeout, cancel))
