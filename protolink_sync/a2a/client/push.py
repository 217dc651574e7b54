"""PushReceiver: where agents report the events of tasks."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Any

from protolink_sync.a2a.wire import StreamEvent, read_notification
from protolink_sync.errors import ModelError, words
from protolink_sync.wire import json

__all__ = ["PushReceiver"]

_log = logging.getLogger("protolink_sync.a2a.push")

# How many reports are remembered, to know one that comes again.
_REMEMBERED = 1024


class PushReceiver:
    """A WSGI application that takes the push notifications of agents, in both dialects' forms.

    A report that cannot be read, has the wrong token or is of a task nobody expects is refused. A
    report that comes a second time is answered and not given out again, unless it is a piece of
    an artifact, of which the same one may rightly come twice.

    Args:
        on_event: Called with each event, in the thread of the request. What it raises is logged
            and answered with status 500, so that the agent tries again; what ends the request
            itself, such as ``SystemExit`` or a time-out of gevent, is passed on. Nothing ``async``.
        token: What ``PushNotificationConfig.token`` was; None asks for none.
        authorization: The ``Authorization`` that agents show, such as ``Bearer ...``; None asks
            for none.
        expects: Ids of the tasks that are expected, or a function that tells; None takes all.
        max_bytes: Size of one report.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A token or an authorization is empty, or ``max_bytes`` is less than 1.

    Source:
        wire/a2a.md 11, B73 to B75.
    """

    def __init__(
        self,
        on_event: Callable[[StreamEvent], object],
        *,
        token: str | None = None,
        authorization: str | None = None,
        expects: Collection[str] | Callable[[str], bool] | None = None,
        max_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        if not callable(on_event):
            raise TypeError(f"on_event is a {type(on_event).__name__}, must be a function")
        for name, value in (("token", token), ("authorization", authorization)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} is a {type(value).__name__}, must be a str or None")
            if value == "":
                raise ValueError(f"{name} is empty, so anybody has it; None asks for none")
        if isinstance(expects, str):
            raise TypeError("expects is a str, must be a collection of ids: expects={'...'}")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ValueError(f"max_bytes is {max_bytes!r}, must be an int of 1 or more")
        self._on_event = on_event
        self._token = token
        self._authorization = authorization
        self._expects = expects
        self._max_bytes = max_bytes
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._begin_process()

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._own_lock = threading.Lock()

    @property
    def _lock(self) -> threading.Lock:
        # A server that forks may do so while another thread holds the parent's.
        if self._pid != os.getpid():
            self._begin_process()
        return self._own_lock

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one request (WSGI)."""
        status, words = self._answer(environ)
        body = words.encode()
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
        ]
        if status.startswith("405"):
            headers.append(("Allow", "POST"))
        start_response(status, headers)
        return [body]

    def _answer(self, environ: dict[str, Any]) -> tuple[str, str]:
        if environ.get("REQUEST_METHOD") != "POST":
            return "405 Method Not Allowed", "push notifications are posted\n"
        if not self._is_known(environ):
            return "401 Unauthorized", "token or authorization is wrong\n"
        length = environ.get("CONTENT_LENGTH") or ""
        if not (length.isascii() and length.isdigit()):
            return "411 Length Required", "the request has no Content-Length\n"
        size = _size(length, self._max_bytes)
        if size > self._max_bytes:
            return "413 Content Too Large", f"a report has at most {self._max_bytes} bytes\n"
        body = environ["wsgi.input"].read(size)
        if len(body) < size:
            return "400 Bad Request", "the report was cut\n"
        try:
            event = read_notification(json.loads(body))
        except (ValueError, ModelError) as error:
            return "400 Bad Request", f"this is no push notification: {words(error)}\n"
        if not self._is_expected(event.task_id):
            return "404 Not Found", "nobody expects reports of this task\n"
        return self._take(event, body)

    def _is_known(self, environ: dict[str, Any]) -> bool:
        token = environ.get("HTTP_X_A2A_NOTIFICATION_TOKEN", "")
        shown = environ.get("HTTP_AUTHORIZATION", "")
        # Both compared in any case, in a time that tells nothing of them.
        return _is_same(self._token, token) & _is_same(self._authorization, shown)

    def _is_expected(self, task_id: str) -> bool:
        expects = self._expects
        if expects is None:
            return True
        if callable(expects):
            return bool(_of_plain("expects", expects(task_id)))
        return task_id in expects

    def _take(self, event: StreamEvent, body: bytes) -> tuple[str, str]:
        piece = event.artifact_update is not None
        digest = hashlib.sha256(body).digest()
        if not piece and self._was_seen(digest):
            return "200 OK", "known\n"
        try:
            _of_plain("on_event", self._on_event(event))
        except Exception:
            self._forget(digest)
            _log.exception("the receiver of a push notification failed")
            return "500 Internal Server Error", "the receiver failed\n"
        except BaseException:
            # The agent gets no answer and tries again: that must not be told to be known.
            self._forget(digest)
            raise
        return "200 OK", "taken\n"

    def _was_seen(self, digest: bytes) -> bool:
        with self._lock:
            if digest in self._seen:
                return True
            self._seen[digest] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            return False

    def _forget(self, digest: bytes) -> None:
        with self._lock:
            self._seen.pop(digest, None)


def _of_plain(name: str, result: Any) -> Any:
    """Return what a function returned, unless it only promises to do something."""
    if not (
        hasattr(result, "__await__") or inspect.isgenerator(result) or inspect.isasyncgen(result)
    ):
        return result
    if hasattr(result, "close"):  # a coroutine or a generator, which nobody will run
        result.close()
    raise TypeError(f"{name} is async or yields, and nothing runs it here: give a plain function")


def _size(length: str, limit: int) -> int:
    """Return the number in a length, or one above the limit for any that is too large."""
    digits = length.lstrip("0") or "0"
    # int() refuses texts of thousands of digits.
    return limit + 1 if len(digits) > len(str(limit)) else int(digits)


def _is_same(wanted: str | None, shown: str) -> bool:
    if wanted is None:
        return True
    return hmac.compare_digest(wanted.encode(), shown.encode("utf-8", "surrogateescape"))
