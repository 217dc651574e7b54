"""The check keys of the cases, each as a function of the play and the value asked for."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from typing import Any

from protolink_sync import errors
from protolink_sync.models import Artifact, Message
from tests.cases.play import Play, eventually, open_descriptors
from tests.cases.records import Frame, Request

_OUTCOMES = ("returns", "raises", "yields", "yields-then-raises", "any")
FAMILIES: dict[str, tuple[type[BaseException], ...]] = {
    "connection": (errors.TransportConnectionError,),
    "timeout": (errors.TransportTimeoutError,),
    "protocol": (errors.TransportProtocolError,),
    "remote": (errors.TransportRemoteError, errors.A2ARpcError),
    "limit": (errors.TransportLimitError,),
    "value": (ValueError, TypeError),
    "a2a": (errors.A2AClientError,),
    "tls": (errors.TLSVerificationError,),
    "runtime": (RuntimeError,),
    "http": (errors.TransportRemoteError,),
}
# What reaches a caller: the library's own errors, and the built-in ones for a caller's mistake.
_ALLOWED = (errors.ProtoLinkError, ValueError, TypeError)

_Check = Callable[[Play, Any], None]
CHECKS: dict[str, _Check] = {}


def run_checks(play: Play) -> None:
    """Try every check of the case; a key without a function fails.

    Checks of what must end by itself come first, while the client still lives.
    """
    checks = play.case.checks
    unknown = set(checks) - set(CHECKS)
    assert not unknown, f"no rule for the checks {sorted(unknown)}"
    for call in play.calls:
        assert call.error is None or isinstance(call.error, _ALLOWED), (
            f"an exception of another library reached the caller: {call.error!r}"
        )
    first = [key for key in ("peer_close_within_s", "threads_back") if key in checks]
    for key in [*first, *(key for key in checks if key not in first)]:
        CHECKS[key](play, checks[key])


def _check(function: _Check) -> _Check:
    CHECKS[function.__name__.strip("_")] = function
    return function


# -- how calls ended -----------------------------------------------------------------------


@_check
def _outcome(play: Play, outcome: str) -> None:
    assert outcome in _OUTCOMES, f"no rule for the outcome {outcome!r}"
    assert play.calls, "no call was made"
    for call in play.calls:
        streams = outcome.startswith("yields")
        if streams:
            assert call.events, f"nothing was yielded; error: {call.error!r}"
        if outcome in ("returns", "yields") and call.error is not None:
            raise AssertionError(f"the call raised {call.error!r}") from call.error
        if outcome in ("raises", "yields-then-raises"):
            assert call.error is not None, f"no error; returned {call.value!r}"
        if outcome == "raises":
            assert not call.events, f"events came before the error: {call.events}"


@_check
def _error(play: Play, families: list[str]) -> None:
    unknown = set(families) - set(FAMILIES)
    assert not unknown, f"no rule for the error families {sorted(unknown)}"
    classes = tuple(cls for family in families for cls in FAMILIES[family])
    for call in play.calls:
        assert isinstance(call.error, classes), f"{call.error!r} is none of {families}"


@_check
def _status(play: Play, status: int) -> None:
    for call in play.calls:
        assert getattr(call.error, "status_code", None) == status, repr(call.error)


@_check
def _code(play: Play, code: int) -> None:
    for call in play.calls:
        assert getattr(call.error, "code", None) == code, repr(call.error)


@_check
def _error_mentions(play: Play, texts: list[str]) -> None:
    for call in play.calls:
        missing = [text for text in texts if text not in str(call.error)]
        assert not missing, f"the error does not say {missing}: {call.error}"


@_check
def _not_raised(play: Play, name: str) -> None:
    for call in play.calls:
        assert name not in [cls.__name__ for cls in type(call.error).__mro__]


@_check
def _count_calls(play: Play, count: int) -> None:
    assert len(play.calls) + len(play.prepared) == count


@_check
def _min_s(play: Play, seconds: float) -> None:
    assert _duration(play) >= seconds


@_check
def _max_s(play: Play, seconds: float) -> None:
    assert _duration(play) <= seconds


def _duration(play: Play) -> float:
    calls = [*play.prepared, *play.calls]
    return max(call.ended for call in calls) - min(call.began for call in calls)


# -- what came back ------------------------------------------------------------------------


@_check
def _text(play: Play, text: str) -> None:
    for call in play.calls:
        assert last_text(call.value) == text


@_check
def _state(play: Play, state: str) -> None:
    for call in play.calls:
        assert call.value.state.value == state


@_check
def _never_state(play: Play, state: str) -> None:
    for call in play.calls:
        assert call.value.state.value != state


@_check
def _attrs(play: Play, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        assert getattr(play.result, name) == value


@_check
def _metadata(play: Play, entries: dict[str, Any]) -> None:
    for name, value in entries.items():
        found = play.result.metadata[name]
        assert (type(found), found) == (type(value), value)


@_check
def _own_id(play: Play, _: bool) -> None:
    for call in play.calls:
        assert call.value.id == call.sent.id


@_check
def _data_parts(play: Play, values: list[Any]) -> None:
    found = [part.content for part in _artifact_parts(play) if part.type != "text"]
    assert [(type(value), value) for value in found] == [(type(v), v) for v in values]


@_check
def _bytes_hex(play: Play, digits: str) -> None:
    contents = [part.content for part in _artifact_parts(play) if isinstance(part.content, dict)]
    encoded = [value for content in contents for value in content.values()]
    expected = base64.b64encode(bytes.fromhex(digits)).decode()
    assert expected in encoded, f"no part has these bytes: {contents}"


def _artifact_parts(play: Play) -> list[Any]:
    return [part for artifact in play.result.artifacts for part in artifact.parts]


def last_text(value: Any) -> str | None:
    """Return the last text part of a message, or of a task's messages, else of its artifacts."""
    holders: list[Message | Artifact] = (
        [value] if isinstance(value, Message) else [*value.messages] or [*value.artifacts]
    )
    texts = [part.content for holder in holders for part in holder.parts if part.type == "text"]
    return texts[-1] if texts else None


# -- streams -------------------------------------------------------------------------------


def _contents_of(play: Play) -> list[str]:
    events = play.calls[-1].events
    assert events is not None, "the call was no stream"
    return [e["content"] for e in events if e.get("type") == "task_llm_stream"]


@_check
def _contents(play: Play, contents: list[str]) -> None:
    assert _contents_of(play) == contents


@_check
def _content_lengths(play: Play, lengths: list[int]) -> None:
    assert [len(content) for content in _contents_of(play)] == lengths


@_check
def _count(play: Play, count: int) -> None:
    assert len(play.calls[-1].events or ()) == count


@_check
def _in_order(play: Play, _: bool) -> None:
    contents = _contents_of(play)
    assert contents == [str(number) for number in range(len(contents))]


@_check
def _first_event_within_s(play: Play, seconds: float) -> None:
    after = play.calls[-1].first_event_after
    assert after is not None
    assert after <= seconds


@_check
def _artifact_text(play: Play, text: str) -> None:
    (artifact,) = play.result.artifacts
    assert artifact.text == text


# -- what the server saw -------------------------------------------------------------------


@_check
def _requests(play: Play, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        found = _named(play, name)
        assert len(found) == count, f"{name} came {len(found)} times: {_names(play)}"


@_check
def _max_requests(play: Play, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        assert len(_named(play, name)) <= count, _names(play)


def _named(play: Play, name: str) -> list[Request]:
    method, path = name.split(" ", 1)
    return [r for r in play.server.requests if r.method == method and path in ("*", r.path)]


def _names(play: Play) -> list[str]:
    return [request.name for request in play.server.requests]


@_check
def _same_headers(play: Play, names: list[str]) -> None:
    for name in names:
        values = [request.header(name) for request in play.server.requests]
        assert values[0], f"{name} was not sent"
        assert set(values) == {values[0]}, f"{name} changed: {values}"


@_check
def _different_headers(play: Play, names: list[str]) -> None:
    for name in names:
        values = [request.header(name) for request in play.server.requests]
        assert all(values), f"{name} was not sent: {values}"
        assert len(set(values)) == len(values), f"{name} is the same: {values}"


@_check
def _same_body(play: Play, _: bool) -> None:
    assert len({request.body for request in play.server.requests}) == 1


@_check
def _header(play: Play, headers: dict[str, str]) -> None:
    # A card request may go without what a call has to carry.
    posts = [request for request in play.server.requests if request.method == "POST"]
    for request in posts or play.server.requests:
        for name, value in headers.items():
            assert request.all(name) == [value], f"{request.name}: {request.headers}"


@_check
def _header_prefix(play: Play, headers: dict[str, str]) -> None:
    for request in play.server.requests:
        for name, prefix in headers.items():
            assert (request.header(name) or "").startswith(prefix), request.headers


@_check
def _header_once(play: Play, names: list[str]) -> None:
    assert play.server.requests
    for request in play.server.requests:
        for name in names:
            assert len(request.all(name)) == 1, request.headers


@_check
def _body_has(play: Play, entries: dict[str, Any]) -> None:
    body = next(r for r in reversed(play.server.requests) if r.method == "POST").json()
    for path, value in entries.items():
        found = body
        for name in path.split("."):
            found = found[name]
        assert found == value


@_check
def _peer_requests(play: Play, count: int) -> None:
    found = [request.name for peer in play.peers for request in peer.requests]
    assert len(found) == count, found
    if not count:
        assert not any(peer.connections for peer in play.peers), "a peer got a connection"


@_check
def _peer_never_gets(play: Play, texts: list[str]) -> None:
    got = b"".join(bytes(c.received) for peer in play.peers for c in peer.connections)
    assert not [text for text in texts if text.lower().encode() in got.lower()]


@_check
def _peer_close_within_s(play: Play, seconds: float) -> None:
    end = max(call.ended for call in play.calls)

    assert play.server.connections, "no connection came"
    for connection in list(play.server.connections):
        left = max(0.0, end + seconds - time.monotonic())
        assert play.server.wait_for_end(connection.number, left), "a connection stayed open"
        assert connection.closed_at is not None
        assert connection.closed_at - end <= seconds


@_check
def _pong(play: Play, payload: str) -> None:
    assert eventually(lambda: _pongs_of(play), 2.0), "no pong came"
    pongs = _pongs_of(play)
    assert [frame.payload for frame in pongs] == [payload.encode()]
    assert all(frame.masked for frame in pongs)


@_check
def _pongs(play: Play, count: int) -> None:
    assert len(_pongs_of(play)) == count


def _pongs_of(play: Play) -> list[Frame]:
    return [f for c in play.server.connections for f in c.frames if f.opcode == 10]


@_check
def _connections_min(play: Play, count: int) -> None:
    assert len(play.server.connections) >= count


# -- what is left --------------------------------------------------------------------------


@_check
def _threads_back(play: Play, _: bool) -> None:
    def others() -> list[str]:
        new = set(threading.enumerate()) - play.threads
        # The process has one deadline thread, which may stay; the servers' are not ours.
        kept = ("protolink-deadline", "scripted-server")
        return [thread.name for thread in new if not thread.name.startswith(kept)]

    assert eventually(lambda: not others(), 2.0), f"threads stayed: {others()}"


@_check
def _fd_growth_max(play: Play, growth: int) -> None:
    first = play.descriptors_after_first
    assert first is not None
    # The server's side of a closed connection is in this process too, and takes a moment.
    assert eventually(lambda: open_descriptors() - first <= growth, 2.0), (
        f"{first} descriptors after the first call, {open_descriptors()} at the end"
    )


@_check
def _exit_code(play: Play, code: int) -> None:
    assert play.process is not None, "no process was run"
    assert play.process.returncode == code, play.process.stderr


@_check
def _stderr_empty(play: Play, _: bool) -> None:
    assert play.process is not None, "no process was run"
    assert play.process.stderr == ""


# -- what must not happen ------------------------------------------------------------------


@_check
def _never(play: Play, what: str) -> None:
    assert what in _NEVER, f"no rule for the check never {what!r}"
    _NEVER[what](play)


def _no_task_without_text(play: Play) -> None:
    for call in play.calls:
        assert last_text(call.value), f"a task without text: {call.value!r}"


def _no_other_path_or_host(play: Play) -> None:
    allowed = {"GET /.well-known/agent.json", "GET /.well-known/agent-card.json", "POST /rpc"}
    assert set(_names(play)) <= allowed
    assert all(r.header("Host") == play.server.address for r in play.server.requests)


def _no_token_in_an_error(play: Play) -> None:
    for call in play.calls:
        for error in chain(call.error):
            assert "s3cr3t" not in f"{error} {error!r}"


def _no_basic_credentials(play: Play) -> None:
    for request in play.server.requests:
        assert not any(v.startswith("Basic") for v in request.all("Authorization"))


def _no_secret_in_texts(play: Play) -> None:
    assert play.texts, "nothing was collected"
    for text in play.texts:
        assert "tok-123" not in text, text
        assert "key-123" not in text, text


_NEVER: dict[str, Callable[[Play], None]] = {
    "a returned task with no text": _no_task_without_text,
    "a request to another path or host": _no_other_path_or_host,
    "the token in an error text": _no_token_in_an_error,
    "Authorization: Basic": _no_basic_credentials,
    "tok-123 or key-123": _no_secret_in_texts,
}


def chain(error: BaseException | None) -> list[BaseException]:
    """Return an error and all that it was raised from."""
    errors_: list[BaseException] = []
    while error is not None and error not in errors_:
        errors_.append(error)
        error = error.__cause__ or error.__context__
    return errors_
