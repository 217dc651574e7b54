"""What an agent is shown of its caller, and what it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from protolink_sync.a2a.client.schemes import SchemeCredentials
from protolink_sync.a2a.wire import AgentCard
from protolink_sync.security import Credentials, credential_headers

__all__ = ["Access", "Shown"]


@attrs.frozen(repr=False)
class Shown:
    """What goes with one request.

    Args:
        credentials: As ``check_credentials`` returns them.
        headers: The caller's headers.
        query: A credential that stands behind the address.
    """

    credentials: Credentials | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    query: str = ""


NOTHING = Shown()


@attrs.frozen(repr=False)
class Access:
    """What a caller has for one agent.

    Args:
        credentials: As ``check_credentials`` returns them, or by the card's security schemes.
        headers: Headers for every request.
        authorization: The ``Authorization`` of calls, in the place of the credentials' own; empty
            for none.
        cross_origin: Whether an agent of another origin, which a card names, is shown them too.
    """

    credentials: Credentials | SchemeCredentials | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    authorization: str = ""
    cross_origin: bool = False

    @property
    def is_given(self) -> bool:
        """Whether the caller has anything to show with calls."""
        return self.credentials is not None or bool(self.authorization)

    def for_card(self, of_caller: list[int]) -> Shown:
        """Return what goes with the request for a card, which is at the agent's own origin.

        Args:
            of_caller: Gets the ``id`` of each exception that the credentials raise.
        """
        own = self.credentials
        if isinstance(own, SchemeCredentials):
            return Shown(None, self.headers)
        return Shown(_noting(own, of_caller) if callable(own) else own, self.headers)

    def for_call(self, card: AgentCard | None, *, is_cross_origin: bool) -> Shown:
        """Return what goes with a call.

        Args:
            card: The agent's card, if it has one.
            is_cross_origin: Whether the address that is called was named by a card and is of
                another origin than the agent the caller knows.

        Raises:
            A2AClientError: The card asks for credentials that the caller does not have.
            ValueError: A credential cannot be sent.
        """
        if is_cross_origin and not self.cross_origin:
            return NOTHING
        own, query = self.credentials, ""
        if isinstance(own, SchemeCredentials):
            headers, query = own.shown(card)
            own = _fixed(headers)
        if self.authorization:
            own = _with_authorization(own, self.authorization)
        return Shown(own, self.headers, query)


def _noting(
    credentials: Callable[[str, bool], Mapping[str, str] | None], of_caller: list[int]
) -> Callable[[str, bool], Mapping[str, str] | None]:
    """Return the same credentials, which note what they raise."""

    def noted(origin: str, refresh: bool) -> Mapping[str, str] | None:
        try:
            return credentials(origin, refresh)
        except BaseException as error:
            of_caller.append(id(error))  # not itself: through its frames it leads to the list
            raise

    return noted


def _fixed(headers: Mapping[str, str]) -> Callable[[str, bool], Mapping[str, str]] | None:
    return (lambda origin, refresh: headers) if headers else None


def _with_authorization(
    credentials: Any, authorization: str
) -> Callable[[str, bool], Mapping[str, str]]:
    """Return credentials that have another ``Authorization``."""

    def shown(origin: str, refresh: bool) -> Mapping[str, str]:
        own = credential_headers(credentials, origin, refresh=refresh) or {}
        kept = {name: own[name] for name in own if name.lower() != "authorization"}
        return {**kept, "Authorization": authorization}

    return shown
