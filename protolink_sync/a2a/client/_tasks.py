"""The part of A2AClient about tasks that an agent has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from protolink_sync._deadline import CancelToken, Deadline, seconds
from protolink_sync.a2a.client import _operations as ops
from protolink_sync.a2a.client._arguments import check_count, check_id, left
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._foundation import Foundation
from protolink_sync.a2a.client._operations import Operation
from protolink_sync.a2a.wire import Dialect, Task, TaskPage, TaskState
from protolink_sync.errors import (
    CallCancelledError,
    TransportProtocolError,
    TransportTimeoutError,
)

__all__ = ["Tasks"]


class Tasks(Foundation):
    """Look at tasks, cancel them, wait for them."""

    def get_task(
        self,
        id: str,
        history_length: int | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Return a task as it stands.

        Args:
            id: The task's id.
            history_length: How many messages of its history, the latest ones; 0 for none, None
                for what the agent gives.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.

        Raises:
            A2ATaskNotFoundError: The agent does not know it.
            ProtoLinkError: As for :meth:`send_message`.
        """
        check_id(id)
        check_count("history_length", history_length, least=0)
        task: Task = self._peer.run(
            ops.GET,
            lambda dialect, tenant: dialect.get_params(id, history_length, tenant),
            self._budget(timeout, cancel),
        )
        self._check_answered("get_task", task, id)
        if history_length is not None:
            # To a 0.3 agent 0 may mean all (B22).
            task.history = task.history[-history_length:] if history_length else []
        return task

    def cancel_task(
        self,
        id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Ask the agent to cancel a task, and return it as it stands then.

        Args:
            id: The task's id.
            metadata: Anything for the agent, for example ``{"reason": "..."}``.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends this request, not the task.

        Raises:
            A2ATaskNotFoundError: The agent does not know it.
            A2ATaskNotCancelableError: It has ended, or cannot be cancelled.
            ProtoLinkError: As for :meth:`send_message`.
        """
        check_id(id)
        told = dict(metadata) if metadata else None
        task: Task = self._peer.run(
            ops.CANCEL,
            lambda dialect, tenant: dialect.cancel_params(id, told, tenant),
            self._budget(timeout, cancel),
        )
        self._check_answered("cancel_task", task, id)
        return task

    def list_tasks(
        self,
        *,
        context_id: str = "",
        status: TaskState | None = None,
        page_size: int | None = None,
        history_length: int | None = None,
        status_timestamp_after: str = "",
        include_artifacts: bool | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Iterator[Task]:
        """Return the tasks the agent knows, page after page, as they are asked for (1.0 only).

        Args:
            context_id: Only those of one conversation.
            status: Only those in one state.
            page_size: How many the agent gives at a time, 1 to 100; None for its default.
            history_length: How many messages of each history.
            status_timestamp_after: Only those whose state changed after that (ISO 8601).
            include_artifacts: Whether their artifacts come too; None for the agent's default.
            timeout: Budget in seconds of each page; None for the client's.
            cancel: Token that ends the call.

        Raises:
            A2AClientError: The agent speaks 0.3, which has no such operation.
            ProtoLinkError: As for :meth:`send_message`.
        """
        if status is not None and not isinstance(status, TaskState):
            raise TypeError(f"status is {status!r}, must be a TaskState of protolink_sync.a2a")
        check_count("page_size", page_size, least=1)
        check_count("history_length", history_length, least=0)
        asked = {
            "context_id": context_id,
            "status": status,
            "page_size": page_size,
            "history_length": history_length,
            "status_timestamp_after": status_timestamp_after,
            "include_artifacts": include_artifacts,
        }
        self._budget(timeout, cancel)  # a wrong one is said here, not at the first page
        return self._listed(asked, timeout, cancel)

    def _listed(
        self, asked: dict[str, Any], timeout: float | None, cancel: CancelToken | None
    ) -> Iterator[Task]:
        page: TaskPage
        for page in self._paged(
            ops.LIST,
            lambda dialect, tenant, token: dialect.list_params(
                **asked, page_token=token, tenant=tenant
            ),
            lambda page: page.next_page_token,
            lambda: self._budget(timeout, cancel),
        ):
            yield from page.tasks

    def _paged(
        self,
        operation: Operation,
        params_of: Callable[[Dialect, str, str], Any],
        following: Callable[[Any], str],
        budget_of: Callable[[], Budget],
    ) -> Iterator[Any]:
        """Ask for one page after the other, until the agent names no further one."""
        seen: set[str] = set()
        token = ""
        while True:
            page = self._peer.run(
                operation, functools.partial(_of_page, params_of, token), budget_of()
            )
            yield page
            token = following(page)
            if not token:
                return
            if token in seen:
                raise TransportProtocolError(
                    f"{operation.name} from {self.endpoint_url}: the agent gives the page "
                    f"{token[:80]!r} a second time",
                    url=self.endpoint_url,
                )
            seen.add(token)

    def wait(
        self,
        id: str,
        timeout: float | None = None,
        *,
        poll_interval: float = 1.0,
        cancel: CancelToken | None = None,
    ) -> Task:
        """Wait until a task has ended or waits for the caller, and return it.

        Args:
            id: The task's id.
            timeout: Seconds to wait at most; None for the client's.
            poll_interval: Seconds between two looks.
            cancel: Token that ends the waiting, not the task.

        Raises:
            TransportTimeoutError: The time is over and the task still runs.
            ProtoLinkError: As for :meth:`get_task`.
        """
        pause = seconds("poll_interval", poll_interval)
        budget = self._budget(timeout, cancel)
        while True:
            task = self.get_task(id, timeout=left(budget), cancel=cancel)
            state = task.status.state
            if state.is_terminal or state.is_interrupted:
                return task
            self._pause(budget, pause, id, state)

    def _check_answered(self, call: str, task: Task, id: str) -> None:
        """Refuse a task that was not asked for."""
        if task.id != id:
            raise TransportProtocolError(
                f"{call} to {self.endpoint_url}: the agent answered with the task "
                f"{task.id[:80]!r}, not with {id[:80]!r}",
                url=self.endpoint_url,
            )

    def _pause(self, budget: Budget, pause: float, id: str, state: TaskState) -> None:
        deadline: Deadline = budget.deadline()
        try:
            deadline.begin()
            if deadline.wait(pause):
                return
        finally:
            deadline.finish()
        if deadline.ended == "cancelled":
            raise CallCancelledError(
                f"wait for task {id!r} at {self.base_url}: cancelled by its token",
                reason=deadline.reason,
                url=self.base_url,
                phase="wait",
            )
        raise TransportTimeoutError(
            f"wait for task {id!r} at {self.base_url}: timeout of {budget.timeout:g} s is over, "
            f"and the task is still {state.value}",
            url=self.base_url,
            phase="wait",
            elapsed=budget.elapsed(),
        )


def _of_page(
    params_of: Callable[[Dialect, str, str], Any], token: str, dialect: Dialect, tenant: str
) -> Any:
    return params_of(dialect, tenant, token)
