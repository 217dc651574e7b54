"""A2A for a client of many agents: their cards, and ProtoLink tasks sent to them and cancelled."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from protolink_sync import models
from protolink_sync.a2a.client import _operations as ops
from protolink_sync.a2a.client._access import Access
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._calls import Calls, Settings
from protolink_sync.a2a.client._codec import CardReply
from protolink_sync.a2a.client._discovery import Target
from protolink_sync.a2a.client._operations import Operation
from protolink_sync.a2a.client._peer import read_card
from protolink_sync.a2a.client.adapter import RemoteIds, answered, named_ids, sent_message
from protolink_sync.a2a.client.id_map import A2AMemory, RemoteTask
from protolink_sync.a2a.wire import (
    AgentCard,
    MessageSendParams,
    SendConfiguration,
    Task,
    WireDialect,
    card_url,
    dialect_of,
    origin_of,
    select,
)
from protolink_sync.errors import A2AClientError, TransportProtocolError, TransportRemoteError
from protolink_sync.transport import Transport
from protolink_sync.wire import one_line

__all__ = ["Bridge", "Discovered"]

# Messages of errors name the call that the caller has made.
_SEND = attrs.evolve(ops.SEND, name="send_task")

_ID_HEADER = "X-Protolink-Request-ID"


@attrs.frozen
class Discovered:
    """A card and what follows from it.

    Args:
        card: The card.
        target: Where and how the agent is called.
        max_age: Seconds for which the card is good; None if that is not told.
    """

    card: AgentCard
    target: Target
    max_age: float | None = None


class Bridge:
    """ProtoLink tasks for A2A agents, over the transport of a client.

    Stricter than ``A2AClient``: an agent without a card is not called, nor is one whose card
    names an address of another origin, unless that is allowed. The transport's credentials go to
    no origin that the caller has not named.

    Args:
        transport: Carries the calls.
        allow_cross_origin: Follow a card to another origin.

    Source:
        wire/a2a.md 19; design.md 11.
    """

    # By these statuses an agent says that it has no such thing as what was asked for.
    NOT_THERE: ClassVar[tuple[int, ...]] = (404, 405)

    def __init__(self, transport: Transport, *, allow_cross_origin: bool = False) -> None:
        self.memory = A2AMemory()
        self._transport = transport
        self._calls = Calls(transport, id_header=_ID_HEADER)
        # Of a mapping an origin gets what the caller wrote beside its name, and nothing else.
        access = Access(
            transport.credentials, cross_origin=isinstance(transport.credentials, Mapping)
        )
        self._settings = Settings(transport.timeout, None, access, allow_cross_origin)

    def address(self, agent_url: str) -> str:
        """Return an agent's address in the form by which it is remembered.

        Raises:
            TypeError: It is no text.
            ValueError: It is no base URL.
        """
        return card_url(self._transport.address(agent_url))[0]

    def remember_in(self, memory: A2AMemory) -> None:
        """Remember in another memory from now on.

        Raises:
            TypeError: It is none.
        """
        if not isinstance(memory, A2AMemory):
            raise TypeError(f"a2a_memory is a {type(memory).__name__}, must be an A2AMemory")
        self.memory = memory

    # --- the card ----------------------------------------------------------------------------

    def discover(self, agent_url: str, budget: Budget) -> Discovered:
        """Ask for an agent's card and choose where it is called.

        Raises:
            A2AClientError: There is no card, it cannot be used, or it names another origin.
            TransportError: There is no answer, or an error.
        """
        base, url = card_url(self._transport.address(agent_url))
        reply = self._card_reply(url, budget)
        card = read_card(reply.value, url)
        chosen = select(card, base, allow_cross_origin=True)
        if chosen.unusable_url is not None or not chosen.interface.url:
            raise A2AClientError(
                f"the A2A card of {base} names {one_line(chosen.interface.url[:200])!r} as the "
                "agent's address, which is no http or https URL"
            )
        target = Target(chosen.url, chosen.dialect, chosen.tenant, chosen.is_cross_origin)
        self._check(target, base)
        return Discovered(card, target, reply.max_age)

    def _card_reply(self, url: str, budget: Budget) -> CardReply:
        version = WireDialect.V1_0.value
        of_caller: list[int] = []
        try:
            return self._calls.card(
                url, self._settings, budget, of_caller, etag=None, version=version
            )
        except TransportRemoteError as error:
            if error.status_code not in self.NOT_THERE or id(error) in of_caller:
                raise
            raise _no_card(url, error) from error
        except TransportProtocolError as error:
            if error.status_code is None or id(error) in of_caller:  # what came is no HTTP
                raise
            raise _no_card(url, error) from error

    def _check(self, target: Target, agent_url: str) -> None:
        """Refuse to call an address of another origin, or to show it what is not for it."""
        if not target.is_cross_origin:
            return
        if not self._settings.allow_cross_origin:
            raise A2AClientError(
                f"the A2A card of {agent_url} names an address at {origin_of(target.url)}, which "
                "is of another origin and is not called. If the agent is to be trusted with "
                "that, make the client with a2a_allow_cross_origin=True"
            )
        headers = sorted(self._transport.headers)
        if headers:
            raise A2AClientError(
                f"the A2A card of {agent_url} names an address at {origin_of(target.url)}, and "
                f"headers= of the transport or of with_options() ({', '.join(headers)}) would go "
                "there too. Leave them out for this agent: credentials= go to no origin that a "
                "card names"
            )

    # --- tasks -------------------------------------------------------------------------------

    def send(
        self, agent_url: str, task: models.Task, budget: Budget, target: Target | None = None
    ) -> models.Task:
        """Send a task's last message of the user and return the task with the answer in it.

        Args:
            agent_url: The agent's address.
            task: The task; it is not changed.
            budget: Of the call, the card included.
            target: Where the agent is called; None to ask for its card.

        Raises:
            A2AClientError: The agent cannot be called.
            A2ARpcError: It answered with an error.
            TransportError: There is no answer, or none that can be read.
            ValueError: The task has no message to send.
            TypeError: It holds what is no JSON.
        """
        base = self.address(agent_url)
        sent = sent_message(task, self._ids(base, task))
        # Before anything is sent: what has no JSON form must not come to light after the answer.
        copied = models.Task.from_dict(task.to_dict())
        if target is None:
            target = self.discover(agent_url, budget).target
        params = MessageSendParams(sent, SendConfiguration(return_immediately=False))
        dialect = dialect_of(_spoken(target))
        answer = self._call(_SEND, target, base, dialect.send_params(params, target.tenant), budget)
        done = answered(copied, answer, base, dialect.wire, sent)
        self._remember(base, target, done)
        return done

    def cancel(
        self,
        agent_url: str,
        task_id: Any,
        budget: Budget,
        *,
        reason: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> models.Task:
        """Ask an agent to cancel a task that was sent to it, and return it as it stands then.

        Args:
            agent_url: The agent's address.
            task_id: Our id of the task.
            budget: Of the call.
            reason: Why; it goes into the metadata, unless one is there.
            metadata: Goes with the request.

        Raises:
            A2AClientError: No answer to a task of this id is known from this agent: nothing is
                sent.
            A2ARpcError: The agent refused.
            TransportError: There is no answer, or none that can be read.
        """
        base = self.address(agent_url)
        remote = self.memory.task(base, task_id)
        if remote is None:
            raise self.unknown_task(base, task_id)
        about = {**({"reason": reason} if reason else {}), **(metadata or {})}
        dialect = dialect_of(_spoken(remote.target))
        params = dialect.cancel_params(remote.task_id, about, remote.target.tenant)
        answer = self._call(ops.CANCEL, remote.target, base, params, budget)
        if answer.id != remote.task_id:
            raise TransportProtocolError(
                f"cancel_task to {remote.target.url}: the answer is about the task "
                f"{answer.id!r:.80}, asked was for {remote.task_id!r:.80}",
                url=remote.target.url,
            )
        task = models.Task.from_dict(copy.deepcopy(remote.task))
        done = answered(task, answer, base, dialect.wire, None)
        self._remember(base, remote.target, done)
        return done

    @staticmethod
    def unknown_task(agent_url: str, task_id: Any) -> A2AClientError:
        """Return the error for a task of which it is not known what the agent calls it."""
        return A2AClientError(
            f"cancel_task to {agent_url}: it is not known what this A2A agent calls the task "
            f"{task_id!r:.100}, so it was not asked. That is known once the agent has answered "
            "send_task of this client, for an hour"
        )

    def _call(
        self, operation: Operation, target: Target, agent_url: str, params: Any, budget: Budget
    ) -> Task:
        # Also what was remembered: the memory may be shared with a client that is allowed more.
        self._check(target, agent_url)
        dialect = dialect_of(_spoken(target))
        answer: Task = self._calls.call(operation, dialect, target, params, self._settings, budget)
        return answer

    def _ids(self, agent_url: str, task: models.Task) -> RemoteIds:
        """Return what the agent calls the task, if it is one that it can go on with."""
        named = named_ids(task, agent_url)
        if named is not None:
            return named
        remote = self.memory.task(agent_url, task.id)
        if remote is None:
            return RemoteIds()
        before = models.Task.from_dict(remote.task)
        # The same task once more, without a word added, is no continuation of it.
        heard = {message.id for message in before.messages}
        if before.is_terminal or all(message.id in heard for message in task.messages):
            return RemoteIds()
        return RemoteIds(remote.task_id, remote.context_id)

    def _remember(self, agent_url: str, target: Target, done: models.Task) -> None:
        ids = named_ids(done, agent_url)
        if ids is not None and ids.task_id:
            value = done.to_dict()
            if done.is_terminal:  # nothing can go on with it
                value["messages"] = value["artifacts"] = []
            kept = RemoteTask(target, ids.task_id, ids.context_id, value)
            self.memory.keep_task(agent_url, done.id, kept)


def _spoken(target: Target) -> WireDialect:
    # Of a card that was read the dialect is always known.
    assert target.dialect is not None
    return target.dialect


def _no_card(url: str, error: Exception) -> A2AClientError:
    return A2AClientError(f"there is no A2A card at {url}: {error}")
