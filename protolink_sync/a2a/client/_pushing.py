"""The part of A2AClient about push notifications."""

from __future__ import annotations

import attrs

from protolink_sync._deadline import CancelToken
from protolink_sync.a2a.client import _operations as ops
from protolink_sync.a2a.client._arguments import check_id
from protolink_sync.a2a.client._budget import Budget
from protolink_sync.a2a.client._tasks import Tasks
from protolink_sync.a2a.wire import PushNotificationConfig
from protolink_sync.errors import TransportProtocolError

__all__ = ["Pushing"]


class Pushing(Tasks):
    """Have an agent report the events of a task to an address."""

    def create_push_config(
        self,
        task_id: str,
        config: PushNotificationConfig,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> PushNotificationConfig:
        """Have the agent report the events of a task to an address.

        Args:
            task_id: The task.
            config: Where and how; :class:`PushReceiver` is the other side.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.

        Returns:
            The configuration as the agent keeps it, with its id.

        Raises:
            A2AClientError: The agent's card says that it does not push (``strict=True``).
            ProtoLinkError: As for :meth:`send_message`.
        """
        check_id(task_id)
        named = attrs.evolve(config, task_id=task_id)
        budget = self._pushing(timeout, cancel)
        kept: PushNotificationConfig = self._peer.run(
            ops.PUSH_CREATE,
            lambda dialect, tenant: dialect.push_create_params(named, tenant),
            budget,
        )
        return kept

    def get_push_config(
        self,
        task_id: str,
        id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> PushNotificationConfig:
        """Return one push configuration of a task.

        Args:
            task_id: The task.
            id: Id of the configuration.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.
        """
        check_id(task_id)
        check_id(id)
        budget = self._pushing(timeout, cancel)
        kept: PushNotificationConfig = self._peer.run(
            ops.PUSH_GET,
            lambda dialect, tenant: dialect.push_get_params(task_id, id, tenant),
            budget,
        )
        if kept.task_id not in ("", task_id):
            raise TransportProtocolError(
                f"get_push_config from {self.endpoint_url}: the agent answered with a "
                f"configuration of the task {kept.task_id[:80]!r}, not of {task_id[:80]!r}",
                url=self.endpoint_url,
            )
        return kept

    def list_push_configs(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> list[PushNotificationConfig]:
        """Return all push configurations of a task.

        Args:
            task_id: The task.
            timeout: Budget in seconds of each page; None for the client's.
            cancel: Token that ends the call.
        """
        check_id(task_id)
        found: list[PushNotificationConfig] = []
        for page in self._paged(
            ops.PUSH_LIST,
            lambda dialect, tenant, token: dialect.push_list_params(
                task_id, page_token=token, tenant=tenant
            ),
            lambda page: page[1],
            lambda: self._pushing(timeout, cancel),
        ):
            found += page[0]
        return found

    def delete_push_config(
        self,
        task_id: str,
        id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Take a push configuration back; one that is not there is no error of the agent.

        Args:
            task_id: The task.
            id: Id of the configuration.
            timeout: Budget in seconds; None for the client's.
            cancel: Token that ends the call.
        """
        check_id(task_id)
        check_id(id)
        self._peer.run(
            ops.PUSH_DELETE,
            lambda dialect, tenant: dialect.push_delete_params(task_id, id, tenant),
            self._pushing(timeout, cancel),
        )

    def _pushing(self, timeout: float | None, cancel: CancelToken | None) -> Budget:
        budget = self._budget(timeout, cancel)
        self._check_offered(
            "push notifications", lambda card: card.capabilities.push_notifications, budget
        )
        return budget
