"""The dialect 0.3: methods with slashes, ``kind`` on everything, no tenant, no version header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protolink_sync.a2a.wire._parsing import Parsing
from protolink_sync.a2a.wire._reading import Place, path_of
from protolink_sync.a2a.wire._writing import extension_list, given, outgoing
from protolink_sync.a2a.wire.dialect import Operation
from protolink_sync.a2a.wire.message import Message
from protolink_sync.a2a.wire.params import (
    MessageSendParams,
    PushNotificationConfig,
    SendConfiguration,
)
from protolink_sync.a2a.wire.part import Part, encoded
from protolink_sync.a2a.wire.states import ROLE_IN_0_3, TaskState, WireDialect
from protolink_sync.errors import A2AClientError, ModelError
from protolink_sync.models import jsonable

__all__ = ["V0_3", "Dialect0_3"]

_METHODS: dict[Operation, str] = {
    "send": "message/send",
    "stream": "message/stream",
    "get": "tasks/get",
    "cancel": "tasks/cancel",
    "subscribe": "tasks/resubscribe",
    "push_create": "tasks/pushNotificationConfig/set",
    "push_get": "tasks/pushNotificationConfig/get",
    "push_list": "tasks/pushNotificationConfig/list",
    "push_delete": "tasks/pushNotificationConfig/delete",
    "extended_card": "agent/getAuthenticatedExtendedCard",
}


class Dialect0_3(Parsing):
    """How 0.3 is written and read. It has no tenant: one that is given is not sent.

    Source:
        wire/a2a.md 3, 4, 8, B16.
    """

    __slots__ = ()

    wire = WireDialect.V0_3

    def headers(self, extensions: Sequence[str] = ()) -> dict[str, str]:
        """Return the header of the extensions, if there are any; 0.3 sends no version.

        Raises:
            ValueError: An extension is no URI that a header can carry.
        """
        return {"X-A2A-Extensions": extension_list(extensions)} if extensions else {}

    def method(self, operation: Operation) -> str | None:
        """Return the name of the JSON-RPC method; None for ``list``."""
        return _METHODS.get(operation)

    def send_params(self, params: MessageSendParams, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``send`` and ``stream``.

        Raises:
            ValueError: The message has no parts, an empty one, or data that is no object.
            TypeError: Some content has no JSON form.
        """
        written = {"message": _message(outgoing(params.message))}
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
        return given(id=id, historyLength=history_length)

    def cancel_params(
        self, id: str, metadata: dict[str, Any] | None = None, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``cancel``."""
        return given(id=id, metadata=jsonable(metadata or None, "$.metadata"))

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
        """Say that 0.3 cannot list tasks.

        Raises:
            A2AClientError: Always.
        """
        raise A2AClientError("A2A 0.3 has no method that lists tasks; the agent has to speak 1.0")

    def subscribe_params(self, id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``subscribe``."""
        return {"id": id}

    def push_create_params(
        self, config: PushNotificationConfig, tenant: str = ""
    ) -> dict[str, Any]:
        """Write the parameters of ``push_create``.

        Raises:
            ValueError: The configuration names no task.
        """
        if not config.task_id:
            raise ValueError("the push configuration names no task: set its task_id")
        return {"taskId": config.task_id, "pushNotificationConfig": _push(config)}

    def push_get_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_get``."""
        return given(id=task_id, pushNotificationConfigId=config_id)

    def push_list_params(
        self,
        task_id: str,
        page_size: int | None = None,
        page_token: str = "",
        tenant: str = "",
    ) -> dict[str, Any]:
        """Write the parameters of ``push_list``: 0.3 sends all at once, without pages."""
        return {"id": task_id}

    def push_delete_params(self, task_id: str, config_id: str, tenant: str = "") -> dict[str, Any]:
        """Write the parameters of ``push_delete``."""
        return {"id": task_id, "pushNotificationConfigId": config_id}

    def extended_card_params(self, tenant: str = "") -> dict[str, Any] | None:
        """Return None: the method takes no parameters."""
        return None


def _message(message: Message) -> dict[str, Any]:
    """Write a message.

    Raises:
        ModelError: A part has data that is no object; ``path`` says which.
    """
    parts = ((None, "message"), "parts")
    written = {
        **jsonable(message.extra),
        "kind": "message",
        "messageId": message.message_id,
        "role": ROLE_IN_0_3[message.role],
        "parts": [_part(part, (parts, index)) for index, part in enumerate(message.parts)],
    }
    written |= given(contextId=message.context_id, taskId=message.task_id)
    if message.metadata:
        written["metadata"] = jsonable(message.metadata)
    if message.extensions:
        written["extensions"] = list(message.extensions)
    if message.reference_task_ids:
        written["referenceTaskIds"] = list(message.reference_task_ids)
    return written


def _part(part: Part, place: Place) -> dict[str, Any]:
    """Write a part. What 0.3 has no member for, the media type of text and data, is left out."""
    written: dict[str, Any] = {**jsonable(part.extra), "kind": part.kind}
    if part.kind == "text":
        written["text"] = part.text
    elif part.kind == "data":
        data = jsonable(part.data, path_of((place, "data")))
        if type(data) is not dict:
            path = path_of((place, "data"))
            raise ModelError(
                f"data that is no object cannot be sent to an A2A 0.3 agent @ {path}: "
                "put it into an object",
                path=path,
            )
        written["data"] = data
    elif part.kind in ("raw", "url"):
        raw = None if part.raw is None else encoded(part.raw)
        file = given(uri=part.url, name=part.filename, mimeType=part.media_type)
        written["kind"] = "file"
        written["file"] = file if raw is None else {"bytes": raw, **file}
    else:
        path = path_of(place)
        raise ModelError(f"a part without content @ {path}", path=path)
    if part.metadata:
        written["metadata"] = jsonable(part.metadata)
    return written


def _configuration(configuration: SendConfiguration | None) -> dict[str, Any]:
    """Write a configuration that says anything.

    Some agents read one without ``blocking`` as if it were false, so it is always there.
    """
    if configuration is None:
        return {}
    written = given(
        acceptedOutputModes=list(configuration.accepted_output_modes) or None,
        historyLength=configuration.history_length,
    )
    if configuration.push_config is not None:
        written["pushNotificationConfig"] = _push(configuration.push_config)
    if not (written or configuration.extra) and configuration.return_immediately is None:
        return {}
    blocking = not configuration.return_immediately
    return {**jsonable(configuration.extra), **written, "blocking": blocking}


def _push(config: PushNotificationConfig) -> dict[str, Any]:
    written = given(id=config.id, url=config.url, token=config.token)
    if config.schemes or config.credentials:
        written["authentication"] = {
            "schemes": list(config.schemes),
            **given(credentials=config.credentials),
        }
    return {**jsonable(config.extra), **written}


V0_3 = Dialect0_3()
