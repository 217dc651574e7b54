"""The dialect 1.0: PascalCase methods, no ``kind``, a version header, tenants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protolink_sync.a2a.wire._parsing import Parsing
from protolink_sync.a2a.wire._reading import absent, members_of, unexpected
from protolink_sync.a2a.wire._writing import extension_list, given, outgoing
from protolink_sync.a2a.wire.dialect import Operation
from protolink_sync.a2a.wire.params import (
    MessageSendParams,
    PushNotificationConfig,
    SendConfiguration,
)
from protolink_sync.a2a.wire.states import STATE_IN_1_0, Role, TaskState, WireDialect
from protolink_sync.models import jsonable

__all__ = ["V1_0", "Dialect1_0"]

VERSION = "1.0"

_METHODS: dict[Operation, str] = {
    "send": "SendMessage",
    "stream": "SendStreamingMessage",
    "get": "GetTask",
    "list": "ListTasks",
    "cancel": "CancelTask",
    "subscribe": "SubscribeToTask",
    "push_create": "CreateTaskPushNotificationConfig",
    "push_get": "GetTaskPushNotificationConfig",
    "push_list": "ListTaskPushNotificationConfigs",
    "push_delete": "DeleteTaskPushNotificationConfig",
    "extended_card": "GetExtendedAgentCard",
}


class Dialect1_0(Parsing):
    """How 1.0 is written and read.

    Source:
        wire/a2a.md 3, 4, 8.
    """

    __slots__ = ()

    wire = WireDialect.V1_0

    def headers(self, extensions: Sequence[str] = ()) -> dict[str, str]:
        """Return the version header, and that of the extensions if there are any.

        Raises:
            ValueError: An extension is no URI that a header can carry.
        """
        headers = {"A2A-Version": VERSION}
        if extensions:
            headers["A2A-Extensions"] = extension_list(extensions)
        return headers

    def method(self, operation: Operation) -> str:
        """Return the name of the JSON-RPC method."""
        return _METHODS[operation]

    def send_params(self, params: MessageSendParams, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``send`` and ``stream``.

        Raises:
            ValueError: The message has no parts, or one of them is empty.
            TypeError: Some content has no JSON form.
        """
        written = {**jsonable(params.extra), **given(tenant=tenant)}
        written["message"] = outgoing(params.message).to_dict()
        configuration = _configuration(params.configuration)
        if configuration:
            written["configuration"] = configuration
        if params.metadata:
            written["metadata"] = jsonable(params.metadata, "$.metadata")
        return written

    def get_params(
        self, id: str, history_length: int | None = None, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``get``; a history length of 0 is sent, None is not."""
        return given(tenant=tenant, id=id, historyLength=history_length)

    def cancel_params(
        self, id: str, metadata: dict[str, Any] | None = None, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``cancel``."""
        return given(tenant=tenant, id=id, metadata=jsonable(metadata or None, "$.metadata"))

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
        return given(
            tenant=tenant,
            contextId=context_id,
            status=None if status is None else STATE_IN_1_0[status],
            pageSize=page_size,
            pageToken=page_token,
            historyLength=history_length,
            statusTimestampAfter=status_timestamp_after,
            includeArtifacts=include_artifacts,
        )

    def subscribe_params(self, id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``subscribe``."""
        return given(tenant=tenant, id=id)

    def push_create_params(
        self, config: PushNotificationConfig, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``push_create``.

        Raises:
            ValueError: The configuration names no task, or more than one scheme.
        """
        if not config.task_id:
            raise ValueError("the push configuration names no task: set its task_id")
        return {**given(tenant=tenant), **_push(config)}

    def push_get_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_get``."""
        return given(tenant=tenant, taskId=task_id, id=config_id)

    def push_list_params(
        self,
        task_id: str,
        page_size: int | None = None,
        page_token: str = "",
        tenant: str = "",
    ) -> dict[str, Any]:
        """Write the parameters of ``push_list``."""
        return given(tenant=tenant, taskId=task_id, pageSize=page_size, pageToken=page_token)

    def push_delete_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_delete``."""
        return given(tenant=tenant, taskId=task_id, id=config_id)

    def extended_card_params(self, tenant: str = "") -> dict[str, Any] | None:
        """Write the parameters of ``extended_card``: the tenant, or none."""
        return given(tenant=tenant) or None

    def read_send_params(self, value: Any) -> MessageSendParams:
        """Read the parameters of a send, as an agent's host receives them.

        Raises:
            ModelError: They are not whole; ``path`` says what is missing or wrong.

        Source:
            wire/a2a.md 4, the members marked as required.
        """
        if members_of(value, "parameters", None).get("message") is None:
            raise absent("message", None)
        params = MessageSendParams.from_dict(value)
        place = (None, "message")
        if not params.message.message_id:
            raise absent("messageId", place)
        if params.message.role is Role.UNSPECIFIED:
            raise absent("role", place)
        if not params.message.parts:
            raise unexpected("at least one part", value["message"].get("parts"), (place, "parts"))
        return params


def _configuration(configuration: SendConfiguration | None) -> dict[str, Any]:
    if configuration is None:
        return {}
    written = given(
        acceptedOutputModes=list(configuration.accepted_output_modes) or None,
        historyLength=configuration.history_length,
        returnImmediately=configuration.return_immediately,
    )
    if configuration.push_config is not None:
        written["taskPushNotificationConfig"] = _push(configuration.push_config)
    return {**jsonable(configuration.extra), **written}


def _push(config: PushNotificationConfig) -> dict[str, Any]:
    if len(config.schemes) > 1:
        raise ValueError(
            f"A2A 1.0 takes one authentication scheme, not {len(config.schemes)}: "
            + ", ".join(config.schemes)
        )
    written = given(taskId=config.task_id, id=config.id, url=config.url, token=config.token)
    if config.schemes or config.credentials:
        written["authentication"] = given(
            scheme="".join(config.schemes), credentials=config.credentials
        )
    return {**jsonable(config.extra), **written}


V1_0 = Dialect1_0()
