"""What ``input.call`` of a case says, as rules from text to calls.

Most texts have the form ``client(words).method(arguments) tail``; each word, argument and
tail has a rule. Scenes with several actors have a rule for their whole text. A text without
a rule fails its test: :class:`NoRuleError`.
"""

from __future__ import annotations

import ast
import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from protolink_sync.a2a import A2AClient
from protolink_sync.client import AgentClient
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.models import ClientRequestSpec, Message, Task
from protolink_sync.security import BearerToken, origin
from protolink_sync.streaming import EventStream
from tests.cases.play import Play, eventually, new_task

_TRANSPORTS = ("http", "sse", "websocket", "grpc")
_STREAMS = ("send_task_streaming",)
_NUMBERS = {"two": 2, "three": 3, "five": 5}


class NoRuleError(AssertionError):
    """A case says what this runner does not understand yet."""


def play_call(play: Play) -> None:
    """Do what the case's call says; what came of it is in ``play.calls``."""
    text = " ".join(play.case.call.split())
    for pattern, scene in _SCENES:
        match = pattern.fullmatch(text)
        if match:
            scene(play, match)
            return
    raise NoRuleError(f"no rule for the call {play.case.call!r}")


_Scene = Callable[[Play, "re.Match[str]"], None]
_SCENES: list[tuple[re.Pattern[str], _Scene]] = []


def _scene(pattern: str) -> Callable[[_Scene], _Scene]:
    """Register a rule for a whole text (runs of blanks count as one)."""

    def register(function: _Scene) -> _Scene:
        _SCENES.append((re.compile(pattern), function))
        return function

    return register


# -- client(words).method(arguments) tail --------------------------------------------------


_CALL = r"client\((?P<words>[^()=]*(?:=[\d.]+)?[^()=]*)\)\.(?P<method>\w+)\((?P<args>{args})\)"
_ARGS = r"(?:[^()]|\([^()]*(?:\([^()]*\)[^()]*)*\))*"
_ONE_CALL = _CALL.format(args=_ARGS)


@_scene(_ONE_CALL + r"(?P<tail>.*)")
def _call(play: Play, match: re.Match[str]) -> None:
    tail = _tail(play, match["tail"])
    play.settings = _settings(match["words"], **tail.pop("settings", {}))
    client = play.client(**play.settings)
    method = getattr(client, match["method"])
    times, pause, first_prepares = tail["times"], tail["pause"], tail["first_prepares"]
    for number in range(times):
        args, kwargs = _arguments(play, match["args"], number)
        sent = next((value for value in args if isinstance(value, Task)), None)
        if number == 0 and first_prepares:
            play.prepare(lambda: method(*args, **kwargs))  # noqa: B023 - called at once
            time.sleep(pause)
        else:
            play.call(lambda: method(*args, **kwargs), sent=sent)  # noqa: B023


@_scene(r"list\(" + _ONE_CALL + r"\)")
def _stream(play: Play, match: re.Match[str]) -> None:
    if match["method"] not in _STREAMS:
        raise NoRuleError(f"no rule for a list of {match['method']}")
    client = play.client(**_settings(match["words"]))
    args, kwargs = _arguments(play, match["args"], 0)
    play.stream(lambda: getattr(client, match["method"])(*args, **kwargs))


@_scene(r"client\((?P<words>sse[^()]*)\)")
def _stream_in_short(play: Play, match: re.Match[str]) -> None:
    client = play.client(**_settings(match["words"]))
    play.stream(lambda: client.send_task_streaming(play.base, new_task()))


def _settings(words: str, **more: Any) -> dict[str, Any]:
    """Return what ``client(...)`` says as arguments for :meth:`Play.client`."""
    transport, *rest = (word.strip() for word in words.split(","))
    if transport not in _TRANSPORTS:
        raise NoRuleError(f"no rule for the transport {transport!r}")
    settings: dict[str, Any] = {"transport": transport, **more}
    config: dict[str, Any] = {}
    for word in rest:
        if word == "a2a":
            settings["a2a"] = True
        elif match := re.fullmatch(r"(?:timeout=|total )([\d.]+)", word):
            settings["timeout"] = float(match[1])
        elif match := re.fullmatch(r"retry max_attempts=(\d+)", word):
            config["retry"] = RetryPolicy(max_attempts=int(match[1]))
        elif match := re.fullmatch(r"connect timeout ([\d.]+)", word):
            config["connect_timeout"] = float(match[1])
        elif match := re.fullmatch(r"shutdown_timeout=([\d.]+)", word):
            config["shutdown_timeout"] = float(match[1])
        elif word == "bearer token and X-API-Key":
            settings["credentials"] = BearerToken("tok-123")
            settings["headers"] = {"X-API-Key": "key-123"}
        else:
            raise NoRuleError(f"no rule for the client setting {word!r}")
    if config:
        settings["config"] = TransportConfig(**config)
    return settings


def _arguments(play: Play, text: str, number: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call; ``number`` counts repeated calls."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in _split(text):
        match = re.fullmatch(r"(\w+)=(.+)", word)
        if match:
            kwargs[match[1]] = ast.literal_eval(match[2])
        else:
            args.append(_argument(play, word, number))
    return args, kwargs


def _split(text: str) -> Iterator[str]:
    """Split at the commas outside of brackets."""
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _argument(play: Play, word: str, number: int) -> Any:
    if word == "base":
        return play.base
    if word == "ws_base":
        return play.server.ws_base
    if word == "'https://127.0.0.1:PORT'":
        return play.base.replace("http://", "https://")
    if match := re.fullmatch(r"base \+ '([^']+)'", word):
        # "... + '/' ...; then base without it": the second call goes without the slash.
        return play.base + (match[1] if number == 0 else "")
    if word == "task":
        return new_task()
    if word == "task with metadata {'score': float('nan')}":
        task = new_task()
        task.metadata["score"] = float("nan")
        return task
    if match := re.fullmatch(r"Message\.user\('([^']*)'\)", word):
        return Message.user(match[1])
    if re.fullmatch(r"'[^']*'", word):
        return ast.literal_eval(word)
    raise NoRuleError(f"no rule for the argument {word!r}")


def _tail(play: Play, text: str) -> dict[str, Any]:
    """Return what follows a call: how often, with which pause, in which environment."""
    tail: dict[str, Any] = {"times": 1, "pause": 0.0, "first_prepares": False}
    text = text.strip()
    if text in ("", "with the default timeout", "at http://[::1]:PORT"):
        return tail
    if text in (
        # What these ask for beyond the one call stands with what is expected.
        "; and the A2A form TASK_STATE_PAUSED",
        "then with a2a_allow_cross_origin=True",
        "(three servers)",
    ):
        return tail
    if match := re.fullmatch(r"; (?:wait ([\d.]+) s; )?again", text):
        return {"times": 2, "pause": float(match[1] or 0), "first_prepares": True}
    if text in ("twice", "; then base without it"):
        return {**tail, "times": 2}
    if match := re.fullmatch(r"\((\w+) calls\)", text):
        return {**tail, "times": _NUMBERS[match[1]]}
    if match := re.fullmatch(
        r"with ((?:[A-Z_]+=\S+ ?)+)(and trust_env=False on the transport)?", text
    ):
        play.environ(**dict(word.split("=", 1) for word in match[1].split()))
        return {**tail, "settings": {"trust_env": False} if match[2] else {}}
    raise NoRuleError(f"no rule for {text!r} after a call")


# -- A2A streams ---------------------------------------------------------------------------


def a2a_client(base: str) -> A2AClient:
    """Return a client of an A2A agent, whose card says nothing of streams here."""
    return A2AClient(base, strict=False)


@_scene(r"list\(client\(http, a2a\)\.stream via SendStreamingMessage\)")
def _a2a_stream(play: Play, match: re.Match[str]) -> None:
    with a2a_client(play.base) as client:
        play.stream(lambda: client.stream_message("hi"))


@_scene(r"collect the A2A stream into a task")
def _a2a_task(play: Play, match: re.Match[str]) -> None:
    with a2a_client(play.base) as client:
        stream = client.stream_message("hi")
        call = play.stream(lambda: stream)
        call.value = stream.task


# -- scenes --------------------------------------------------------------------------------


@_scene(r"32 threads, each 20 times send_task\(base, task with its own text\)")
def _many_threads(play: Play, match: re.Match[str]) -> None:
    client = play.client()

    def work(thread: int) -> None:
        for number in range(20):
            task = new_task(f"text {thread}-{number}")
            play.call(lambda: client.send_task(play.base, task), sent=task)  # noqa: B023

    play.in_threads(32, work)


@_scene(r"16 threads start together on a fresh client")
def _fresh_client(play: Play, match: re.Match[str]) -> None:
    client = play.client()

    def work(thread: int) -> None:
        task = new_task(f"text {thread}")
        play.call(lambda: client.send_task(play.base, task), sent=task)

    play.in_threads(16, work)


@_scene(r"async def main\(\): return client\.send_task\(base, task\) under asyncio\.run")
def _inside_a_loop(play: Play, match: re.Match[str]) -> None:
    client = play.client()

    async def main() -> Task:
        return client.send_task(play.base, new_task())

    play.call(lambda: asyncio.run(main()))


@_scene(r"A in a silent call; main: client\.close\(\); then client\.send_task")
def _close_meanwhile(play: Play, match: re.Match[str]) -> None:
    client = play.client()
    thread = threading.Thread(
        target=lambda: play.call(lambda: client.send_task(play.base, new_task())), daemon=True
    )
    thread.start()
    play.server.wait_for_requests(1)
    client.close()
    thread.join(10)
    assert not thread.is_alive(), "the call in flight did not end"
    play.call(lambda: client.send_task(play.base, new_task()))


@_scene(r"client\((?P<words>websocket[^()]*)\): call, then client\.close\(\)")
def _close_after_a_call(play: Play, match: re.Match[str]) -> None:
    client = play.client(**_settings(match["words"]))
    play.prepare(lambda: client.send_task(play.server.ws_base, new_task()))
    play.call(client.close)


@_scene(r"thread A iterates; main cancel_task")
def _cancel_beside_a_stream(play: Play, match: re.Match[str]) -> None:
    client, task = play.client("websocket"), new_task()
    stream = client.send_task_streaming(play.server.ws_base, task)
    arrived = threading.Event()

    def read() -> None:
        for _ in stream:
            arrived.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert arrived.wait(10), "the first event did not come"
    play.call(lambda: client.cancel_task(play.server.ws_base, task.id))
    assert reader.is_alive(), "the stream ended with the request beside it"
    stream.close()
    reader.join(10)
    assert not reader.is_alive(), "the reader did not end"


@_scene(r"for e in " + _ONE_CALL + r": break")
def _break_after_the_first(play: Play, match: re.Match[str]) -> None:
    client = play.client(**_settings(match["words"]))
    args, kwargs = _arguments(play, match["args"], 0)

    def first() -> Iterator[Any]:
        for event in getattr(client, match["method"])(*args, **kwargs):
            yield event
            break

    play.stream(first)


@_scene(
    r"s = client\(sse\)\.send_task_streaming\(base, task\); thread A in next\(s\); "
    r"main thread s\.close\(\) .*"
)
def _close_from_another_thread(play: Play, match: re.Match[str]) -> None:
    stream = play.client("sse").send_task_streaming(play.base, new_task())
    reader = _reading(play, stream)
    assert eventually(lambda: stream.events == 2, 10.0), (
        "the events before the silence did not come"
    )
    play.call(stream.close)
    reader.join(1)
    assert not reader.is_alive(), "the reader did not leave next()"


@_scene(r"thread A iterates the stream; main: client\.cancel_task\(base, task\.id, reason='stop'\)")
def _cancel_while_a_stream_is_read(play: Play, match: re.Match[str]) -> None:
    client, task = play.client("sse"), new_task()
    stream = client.send_task_streaming(play.base, task)
    reader = _reading(play, stream)
    assert eventually(lambda: stream.events == 1, 10.0), "the first event did not come"
    play.call(lambda: client.cancel_task(play.base, task.id, reason="stop"))
    assert reader.is_alive(), "the stream ended with the request beside it"
    play.server.fire("cancelled")
    reader.join(10)
    assert not reader.is_alive(), "the reader did not end"


def _reading(play: Play, stream: EventStream) -> threading.Thread:
    """Read a stream in a thread of its own, as a call of the play."""
    reader = threading.Thread(target=lambda: play.stream(lambda: stream), daemon=True)
    reader.start()
    return reader


@_scene(r"client\.close\(\); client\.close\(\); client\.send_task\(\.\.\.\)")
def _use_after_close(play: Play, match: re.Match[str]) -> None:
    client = play.client()
    client.close()
    client.close()
    play.call(lambda: client.send_task(play.base, new_task()))


@_scene(r"client\(token=(?P<token>'.*')\)")
def _token(play: Play, match: re.Match[str]) -> None:
    token = ast.literal_eval(match["token"])

    def use() -> Task:
        client = play.client(credentials=BearerToken(token))
        return client.send_task(play.base, new_task())

    play.call(use)


@_scene(r"ClientRequestSpec\(headers=(?P<headers>\{.*\})\)")
def _spec_headers(play: Play, match: re.Match[str]) -> None:
    spec = ClientRequestSpec(
        name="send_task",
        path="/tasks/",
        method="POST",
        response_parser=Task.from_dict,
        idempotent=True,
        headers=ast.literal_eval(match["headers"]),
    )
    client = play.client(credentials=BearerToken("tok-123"))
    play.call(lambda: client.transport.send(spec, play.base, new_task()))


@_scene(r"(\d+) x send_task")
def _many_calls(play: Play, match: re.Match[str]) -> None:
    client = play.client()
    for _ in range(int(match[1])):
        play.call(lambda: client.send_task(play.base, new_task()))


@_scene(r"(?P<count>\d+) calls with timeout=(?P<timeout>[\d.]+): .*")
def _failing_calls(play: Play, match: re.Match[str]) -> None:
    client = play.client(timeout=float(match["timeout"]))
    for _ in range(int(match["count"])):
        play.call(lambda: client.send_task(play.base, new_task()))


@_scene(r"AgentClient\(transport='http', url=\.\.\., timeout=X\) for .*")
def _odd_timeouts(play: Play, match: re.Match[str]) -> None:
    for value in play.case.input["values"]:
        if value == "nan":
            value = float("nan")
        elif isinstance(value, str):
            value = ast.literal_eval(value)
        # The values go with the calls, so that what is expected can tell them apart.
        play.call(lambda: _made_and_closed(value), sent=value)  # noqa: B023


def _made_and_closed(timeout: Any) -> float:
    with AgentClient(transport="http", url="http://127.0.0.1:9", timeout=timeout) as client:
        return float(client.transport.timeout)


@_scene(r"same_origin\(a, b\) as the product decides it, or discovery with a stub transport")
def _same_origin(play: Play, match: re.Match[str]) -> None:
    for first, second in play.case.input["pairs_equal"]:
        assert origin(first) == origin(second), (first, second)
    for first, second in play.case.input["pairs_different"]:
        assert origin(first) != origin(second), (first, second)
