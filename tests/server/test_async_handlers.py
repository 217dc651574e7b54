"""``async def`` handlers, also where the thread that runs them has a loop already."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import weakref

import pytest

from protolink_sync.server.functions import _in_a_thread, completed, offered, stepwise
from tests.transport.scenes import no_garbage_collected

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("WHERE", default="nowhere")


async def answer(fails: bool = False) -> str:
    await asyncio.sleep(0)
    if fails:
        raise LookupError("not there")
    return WHERE.get()


async def pieces(ends=lambda: None):
    try:
        for number in range(3):
            await asyncio.sleep(0)
            yield number
    finally:
        ends()


def inside_a_loop(work):
    """Do something as a notebook cell would: in a thread whose loop runs."""

    async def main():
        return work()

    return asyncio.run(main())


@pytest.mark.parametrize("do", [lambda work: work(), inside_a_loop], ids=["plain", "in a loop"])
class TestWithAndWithoutALoop:
    def test_a_coroutine_is_run_to_its_end_in_the_callers_context(self, do):
        WHERE.set("here")

        assert do(lambda: completed(answer())) == "here"
        assert do(lambda: completed("plain")) == "plain"

    def test_its_error_is_raised(self, do):
        with pytest.raises(LookupError, match="not there"):
            do(lambda: completed(answer(fails=True)))

    def test_its_own_cancellation_is_a_failure(self, do):
        async def gives_up():
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="was cancelled in it"):
            do(lambda: completed(gives_up()))

    def test_an_async_generator_gives_its_pieces(self, do):
        ended = []

        assert do(lambda: list(stepwise(pieces(lambda: ended.append(1))))) == [0, 1, 2]
        assert ended == [1]

    def test_what_is_left_running_is_ended(self, do):
        ended = []

        async def lingers():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append(1)
                raise

        async def leaves():
            task = asyncio.ensure_future(lingers())
            await asyncio.sleep(0)
            return task is not None

        assert do(lambda: completed(leaves()))
        assert ended == [1]


def test_a_failure_in_the_thread_beside_a_loop_leaves_nothing_behind():
    """Also where garbage is not collected."""

    class Payload:
        pass

    def call():
        payload = Payload()

        def fails():
            raise LookupError(str(payload))

        with contextlib.suppress(LookupError):
            _in_a_thread(fails)
        return weakref.ref(payload)

    with no_garbage_collected():
        assert call()() is None


def test_a_generator_that_is_left_ends_at_once():
    ended = []
    steps = stepwise(pieces(lambda: ended.append(1)))
    assert steps is not None

    assert next(steps) == 0
    steps.close()

    assert ended == [1]


def test_an_error_between_pieces_is_raised_behind_them():
    async def breaks():
        yield 1
        raise LookupError("not there")

    steps = stepwise(breaks())
    assert steps is not None

    assert next(steps) == 1
    with pytest.raises(LookupError, match="not there"):
        next(steps)


def test_an_async_generator_that_cancels_itself_fails():
    async def gives_up():
        yield 1
        raise asyncio.CancelledError

    steps = stepwise(gives_up())
    assert steps is not None

    assert next(steps) == 1
    with pytest.raises(RuntimeError, match="was cancelled in it"):
        next(steps)


def test_what_is_no_generator_is_none():
    assert stepwise("text") is None
    assert stepwise([1]) is None


def test_a_function_gets_what_it_takes():
    def takes(prompt, user=None, *, metadata): ...

    choose = offered(takes, ("prompt", "user", "metadata"))

    assert choose({"prompt": "p", "other": 1}) == {"prompt": "p", "metadata": None}
    assert offered(lambda **all: all, ("a", "b"))({"a": 1, "c": 2}) == {"a": 1}
    with pytest.raises(TypeError, match="asks for 'wish'"):
        offered(lambda wish: wish, ("prompt",))
