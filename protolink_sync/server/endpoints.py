"""What an agent serves: the table of its endpoints, and how a request to one is answered.

This is the part that all ways of serving share: from decoded data to the bytes of the answer.
"""

from __future__ import annotations

import hashlib
import html
import logging
from collections.abc import Callable, Generator, Hashable
from typing import Any

from protolink_sync.errors import words
from protolink_sync.models import (
    AgentCard,
    EndpointSpec,
    HistoryCompactionRequest,
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
    Task,
    TaskCancellationRequest,
)
from protolink_sync.server.engine import Engine
from protolink_sync.server.events import is_last
from protolink_sync.server.execution import Execution
from protolink_sync.server.idempotency import Claim
from protolink_sync.server.refusal import RefusedError
from protolink_sync.wire import json

__all__ = ["Endpoints"]

_log = logging.getLogger("protolink_sync.server")

_TASKS = "/tasks/"
_CANCEL = "/tasks/cancel"
_STREAM = "/tasks/stream"
# What only reads is answered anew each time: repeating it does no harm, and remembering it would
# push out the answers that matter.
_REMEMBERED = {_TASKS, _CANCEL, "/llm/history/compact", "/state/reset", "/state/compact"}

# Content of so many bytes tells calls with one key apart by itself; longer content by its digest.
_SHORT = 1024


class Endpoints:
    """The endpoints of one agent at one address.

    Args:
        engine: The agent.
        url: The address; None where only the card knows it.
        transport: How it is spoken to there.
        health: Gives the answer of ``/healthz`` and ``/readyz``.
        streaming: Serve streams too.

    Source:
        wire/protolink.md 2 and 3.
    """

    def __init__(
        self,
        engine: Engine,
        url: str | None,
        transport: str,
        health: Callable[[], Any],
        *,
        streaming: bool = False,
    ) -> None:
        self._engine = engine
        self._url = url
        self._transport = transport
        self._streaming = streaming
        self._largest = engine.config.limits.max_response_bytes
        self._largest_event = engine.config.limits.max_event_bytes
        specs = [
            self._post("task", _TASKS, engine.run_task, Task.from_dict),
            self._post("task_cancel", _CANCEL, self._cancel, TaskCancellationRequest.from_dict),
            self._post("compact_history", "/llm/history/compact", self._compact_history, _history),
            self._post("describe_state", "/state/describe", self._describe_state, _state),
            self._post("reset_state", "/state/reset", self._reset_state, _state),
            self._post("compact_state", "/state/compact", self._compact_state, _state),
            EndpointSpec("agent_card", "/.well-known/agent.json", "GET", self._card),
            EndpointSpec("health", "/healthz", "GET", lambda _data, _who: health()),
            EndpointSpec("readiness", "/readyz", "GET", lambda _data, _who: health()),
            EndpointSpec("status", "/status", "GET", self._status, "html"),
        ]
        if streaming:
            specs.append(self._post("task_stream", _STREAM, engine.stream_task, Task.from_dict))
        self._table: dict[tuple[str, str], EndpointSpec] = {
            (spec.method, spec.path): spec for spec in specs
        }

    @staticmethod
    def _post(
        name: str, path: str, handler: Callable[..., Any], parser: Callable[..., Any]
    ) -> EndpointSpec:
        return EndpointSpec(
            name,
            path,
            "POST",
            handler,
            streaming=path == _STREAM,
            request_parser=parser,
            request_source="body",
        )

    def find(self, method: str, path: str) -> EndpointSpec:
        """Return the endpoint of a request.

        Raises:
            RefusedError: There is none (404), or not for this method (405).
        """
        spec = self._table.get((method, path))
        if spec is not None:
            return spec
        if self.methods(path):
            message = f"{path} does not answer {method}"
            raise RefusedError(405, message, "MethodNotAllowed", told=False)
        raise RefusedError(404, f"there is no endpoint {method} {path}", "NotFound", told=False)

    def methods(self, path: str) -> list[str]:
        """Return the methods that a path answers; none if it is unknown."""
        return [method for method, known in self._table if known == path]

    def answer(
        self,
        spec: EndpointSpec,
        data: Any,
        *,
        principal: Hashable = None,
        key: str | None = None,
        content: bytes = b"",
    ) -> bytes:
        """Return the encoded answer to a request; see :meth:`begin`.

        Raises:
            RefusedError: There is no result; it says why.
        """
        encode = str.encode if spec.content_type == "html" else json.dump_data
        execution = self.begin(
            spec, data, principal=principal, key=key, content=content, encode=encode
        )
        try:
            execution.run()
            return execution.answer()
        finally:
            execution.give_up()

    def begin(
        self,
        spec: EndpointSpec,
        data: Any,
        *,
        principal: Hashable = None,
        key: str | None,
        content: bytes,
        encode: Callable[[Any], bytes],
    ) -> Execution:
        """Return what carries out a request.

        Args:
            spec: The endpoint, from :meth:`find`.
            data: The decoded body.
            principal: Who asks.
            key: The idempotency key, if any.
            content: What must be the same for two requests with one key to be the same.
            encode: Makes the bytes of the answer.

        Raises:
            RefusedError: The data is not what the endpoint takes.
        """
        answers = self._engine.answers
        parsed = _parsed(spec, data)
        claim: Claim | None = None
        if key is not None and spec.path in _REMEMBERED:
            # An answer is bytes of one form, which another way of serving cannot repeat.
            form = self._transport
            is_long = len(content) > _SHORT
            told = hashlib.sha256(content).digest() if is_long else content
            claim = Claim((principal, spec.path, key, form, is_long, told))
            if spec.path == _CANCEL and self._engine.runs.is_running(parsed.id, principal):
                # What was answered about an earlier run of the task does not hold for this one.
                answers.forget(claim.identity)
        return Execution(spec, parsed, principal, answers, claim, encode, self._largest)

    def stream(
        self,
        spec: EndpointSpec,
        data: Any,
        *,
        principal: Hashable = None,
        encode: Callable[[Any], bytes] = json.dump_data,
    ) -> Generator[tuple[bytes, bool], None, None]:
        """Give the encoded events of a stream, each with whether it is the last one.

        One thread, and one context, must take them all, and close the iterator.

        Args:
            spec: The endpoint, from :meth:`find`; its ``streaming`` is True.
            data: The decoded body.
            principal: Who asks.
            encode: Makes the bytes of an event.

        Raises:
            RefusedError: The stream breaks off; it says why.
        """
        events = spec.handler(_parsed(spec, data), principal)
        try:
            for event in events:
                encoded = encode(event)
                if len(encoded) > self._largest_event:
                    raise RefusedError(
                        500,
                        f"an event has {len(encoded)} bytes, limit is {self._largest_event}. Raise "
                        "TransportLimits.max_event_bytes of the agent",
                        "TransportLimitError",
                    )
                last = is_last(event)
                yield encoded, last
                if last:
                    return
        except RefusedError:
            raise
        except Exception as error:
            _log.exception("%s failed", spec.name)
            raise RefusedError(500, words(error), type(error).__name__, told=False) from error
        finally:
            events.close()
        # The peer's closing envelope, for a handler that has told no end.
        yield encode(None), True

    # ---- handlers ----

    def _cancel(self, request: TaskCancellationRequest, principal: Hashable) -> Any:
        return self._engine.runs.cancel(request, principal)

    def _compact_history(self, request: HistoryCompactionRequest, principal: Hashable) -> Any:
        if not self._engine.has_model:
            raise RefusedError(
                501, "Agent has no LLM but received a history compaction request", "RuntimeError"
            )
        return self._engine.conversations.compact_history(request, principal)

    def _describe_state(self, request: StateOperationRequest, principal: Hashable) -> Any:
        if not self._engine.has_model:
            return _nothing_kept("describe", request, request.stores)
        return self._engine.conversations.describe(request, principal)

    def _reset_state(self, request: StateOperationRequest, principal: Hashable) -> Any:
        if not self._engine.has_model:
            return _nothing_kept("reset", request, request.stores)
        return self._engine.conversations.reset(request, principal)

    def _compact_state(self, request: StateOperationRequest, principal: Hashable) -> Any:
        if not self._engine.has_model:
            return _nothing_kept("compact", request, ("conversation",))
        return self._engine.conversations.compact(request, principal)

    def _card(self, _data: Any, _principal: Hashable) -> Any:
        return self._served_card()

    def _served_card(self) -> AgentCard:
        return self._engine.served_card(self._url, self._transport, streaming=self._streaming)

    def _status(self, _data: Any, _principal: Hashable) -> str:
        card = self._served_card()
        rows = {
            "Description": card.description,
            "Address": card.url,
            "Version": card.version,
            "Protocol": card.protocol_version,
            "Can": ", ".join(card.capabilities.enabled()),
            "Skills": ", ".join(str(skill.id) for skill in card.skills) or "none",
        }
        table = "".join(
            f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in rows.items()
        )
        name = html.escape(card.name)
        return (
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
            f"<h1>{name}</h1><table>{table}</table></html>"
        )


def _parsed(spec: EndpointSpec, data: Any) -> Any:
    if spec.request_parser is None:
        return data
    try:
        return spec.request_parser(data)
    except ValueError as error:
        raise RefusedError(400, words(error), type(error).__name__) from error


def _history(data: Any) -> HistoryCompactionRequest:
    return HistoryCompactionRequest.from_dict({} if data is None else data)


def _state(data: Any) -> StateOperationRequest:
    return StateOperationRequest.from_dict({} if data is None else data)


def _nothing_kept(operation: Any, request: StateOperationRequest, stores: Any) -> Any:
    """Return the result of an agent that keeps no state: nothing, or what was asked is missing."""
    reports = tuple(StateStoreReport(name, error="state store is not enabled") for name in stores)
    return StateOperationResult(
        operation, request.session_id, reports, missing=tuple(report.name for report in reports)
    )
