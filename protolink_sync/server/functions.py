"""Calling what a user registered: plain functions, generators, and the ``async`` forms of both."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

__all__ = ["completed", "offered", "stepwise"]

# The longest single wait: a wait without end would keep Ctrl-C from getting through.
_LONGEST_WAIT = 60.0
_CATCH_ALL = inspect.Parameter.VAR_KEYWORD
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def offered(
    function: Callable[..., Any], names: tuple[str, ...]
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what chooses the arguments of a function from those it may have.

    The function gets those it takes. One that is not given is left to the function's default, and
    is None where it has none.

    Args:
        function: The function.
        names: What it may take.

    Raises:
        TypeError: It cannot be called, or asks for something else.
    """
    if not callable(function):
        raise TypeError(f"expected a function, got {type(function).__name__}")
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(parameter.kind is _CATCH_ALL for parameter in parameters)
    named = [p for p in parameters if p.kind in _BY_NAME and p.name in names]
    for parameter in parameters:
        is_open = parameter.kind in (_CATCH_ALL, inspect.Parameter.VAR_POSITIONAL)
        if not is_open and parameter.default is parameter.empty and parameter not in named:
            raise TypeError(
                f"{getattr(function, '__name__', function)} asks for {parameter.name!r}; "
                f"it can have {', '.join(names)} (by name)"
            )
    required = [p.name for p in named if p.default is p.empty]
    taken = set(names) if takes_all else {p.name for p in named}

    def choose(given: Mapping[str, Any]) -> dict[str, Any]:
        chosen: dict[str, Any] = dict.fromkeys(required)
        chosen.update((name, value) for name, value in given.items() if name in taken)
        return chosen

    return choose


def completed(value: Any) -> Any:
    """Return what a call came to; what an ``async def`` returned is run to its end first."""
    return _run(value) if hasattr(value, "__await__") else value


def stepwise(value: Any) -> Generator[Any, None, Any] | None:
    """Return the generator that a call came to, an ``async`` one in plain form; else None.

    An ``async`` one runs on a loop of its own, a step whenever the next piece is asked for, and
    to its end at once where this thread has a loop that runs.
    """
    if isinstance(value, AsyncGenerator):
        return _steps(value)
    return value if isinstance(value, Generator) else None


def _steps(pieces: AsyncGenerator[Any, None]) -> Generator[Any, None, None]:
    if _has_running_loop():
        yield from _run(_collected(pieces))
        return
    import asyncio

    loop = asyncio.new_event_loop()
    given: list[Any] = []
    goes_on = loop.create_future()

    async def work() -> None:
        nonlocal goes_on
        try:
            async for piece in pieces:
                given.append(piece)
                goes_on = loop.create_future()
                loop.stop()
                if not await goes_on:
                    break
        finally:
            await pieces.aclose()

    # One task for all steps: what is entered in one and left in another (a context variable, a
    # time-out, a group of tasks) belongs to the task that entered it.
    task = loop.create_task(work())
    task.add_done_callback(lambda _: loop.stop())
    try:
        while True:
            loop.run_forever()
            if task.done():
                try:
                    return task.result()
                except asyncio.CancelledError as error:
                    raise _cancelled() from error
            yield given.pop()
            goes_on.set_result(True)
    finally:
        try:
            if not task.done():
                if goes_on.done():  # interrupted in the middle of a step
                    task.cancel()
                else:
                    goes_on.set_result(False)
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            _end_tasks(loop)
        finally:
            loop.close()


async def _collected(pieces: AsyncGenerator[Any, None]) -> list[Any]:
    return [piece async for piece in pieces]


def _run(awaitable: Any) -> Any:
    """Run an awaitable on a loop of its own; in a thread of its own if this one has a loop."""
    import asyncio

    async def main() -> Any:
        return await awaitable

    def run() -> Any:
        # Not asyncio.run(): it would take the thread's current loop away from its owner, and
        # Ctrl-C from the main thread.
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(main())
        except asyncio.CancelledError as error:
            raise _cancelled() from error
        finally:
            try:
                _end_tasks(loop)
            finally:
                loop.close()

    return _in_a_thread(run) if _has_running_loop() else run()


def _cancelled() -> RuntimeError:
    """Return what a function's own cancellation is to the one who asked: a failure."""
    return RuntimeError("the agent's own work was cancelled in it")


def _has_running_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _end_tasks(loop: Any) -> None:
    """End what a function has left running on a loop."""
    import asyncio

    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


def _in_a_thread(run: Callable[[], Any]) -> Any:
    outcome: list[Any] = []
    failure: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(context.run(run))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="protolink-async-handler", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LONGEST_WAIT)
    try:
        if failure:
            raise failure[0]
        return outcome[0]
    finally:
        failure.clear()  # it leads to this frame
