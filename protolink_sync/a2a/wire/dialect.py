"""The two dialects of A2A behind one interface: names of methods, parameters out, results in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from protolink_sync.a2a.wire.events import StreamEvent
from protolink_sync.a2a.wire.params import MessageSendParams, PushNotificationConfig, TaskPage
from protolink_sync.a2a.wire.states import TaskState, WireDialect
from protolink_sync.a2a.wire.task import Task

__all__ = ["Dialect", "Operation", "dialect_of"]

Operation: TypeAlias = Literal[
    "send",
    "stream",
    "get",
    "list",
    "cancel",
    "subscribe",
    "push_create",
    "push_get",
    "push_list",
    "push_delete",
    "extended_card",
]
"""What a client can ask an agent for."""


class Dialect(Protocol):
    """How one dialect writes calls and reads answers; pure functions without state.

    What builds parameters raises ``ValueError`` (a :class:`~protolink_sync.errors.ModelError` is
    one) for what the dialect cannot say, before anything is sent. What reads raises
    ``ModelError`` with the JSON path, and reads the forms of both dialects.

    Source:
        wire/a2a.md 3, 8; B26, B27.
    """

    def __hash__(self) -> int:
        """Hash it: what is made for a dialect may be kept by it."""

    @property
    def wire(self) -> WireDialect:
        """Which dialect it is."""

    def headers(self, extensions: Sequence[str] = ()) -> dict[str, str]:
        """Return the headers that go with every call: version and extensions."""

    def method(self, operation: Operation) -> str | None:
        """Return the name of the JSON-RPC method; None if the dialect has none."""

    def send_params(self, params: MessageSendParams, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``send`` and ``stream``."""

    def get_params(
        self, id: str, history_length: int | None = None, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``get``; a history length of 0 is sent, None is not."""

    def cancel_params(
        self, id: str, metadata: dict[str, Any] | None = None, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``cancel``."""

    def list_params(
        self,
        *,
        context_id: str = "",
        status: TaskState | None = None,
        page_size: int | None = None,
        page_token: str = "",
        history_length: int | None = None,
        status_timestamp_after: str = "",
        include_artifacts: bool | None = None,
        tenant: str = "",
    ) -> dict[str, Any]:
        """Write the parameters of ``list``; only what is given."""

    def subscribe_params(self, id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``subscribe``."""

    def push_create_params(
        self, config: PushNotificationConfig, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``push_create``; the configuration names its task."""

    def push_get_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_get``."""

    def push_list_params(
        self,
        task_id: str,
        page_size: int | None = None,
        page_token: str = "",
        tenant: str = "",
    ) -> dict[str, Any]:
        """Write the parameters of ``push_list``; 0.3 knows no pages."""

    def push_delete_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_delete``."""

    def extended_card_params(self, tenant: str = "") -> dict[str, Any] | None:
        """Write the parameters of ``extended_card``; None if there are none to send."""

    def parse_send(self, value: Any) -> Task:
        """Read the result of ``send``: a bare message becomes a completed task."""

    def parse_task(self, value: Any) -> Task:
        """Read the result of ``get`` and ``cancel``."""

    def parse_event(self, value: Any) -> StreamEvent:
        """Read one result of ``stream`` and ``subscribe``."""

    def parse_page(self, value: Any) -> TaskPage:
        """Read the result of ``list``."""

    def parse_push(self, value: Any) -> PushNotificationConfig:
        """Read the result of ``push_create`` and ``push_get``."""

    def parse_pushes(self, value: Any) -> tuple[list[PushNotificationConfig], str]:
        """Read the result of ``push_list``: the configurations, and the token of the next page."""


def dialect_of(wire: WireDialect) -> Dialect:
    """Return the dialect of that name.

    >>> dialect_of(WireDialect.V0_3).method("send")
    'message/send'
    """
    from protolink_sync.a2a.wire import v0_3, v1_0

    return v1_0.V1_0 if wire is WireDialect.V1_0 else v0_3.V0_3
