"""Budget, token and deadline thread: how a call is ended early, and that nothing stays behind."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync._deadline import Deadline, Timer, forget, seconds, watch

LONG = 30.0  # seconds in which a test that hangs fails


class Blocked:
    """Something a call blocks on, until it is cut."""

    def __init__(self, error: Exception | None = None) -> None:
        self.cuts = 0
        self.taken_back = 0
        self.was_cut = threading.Event()
        self._error = error

    def cut(self) -> None:
        self.cuts += 1
        self.was_cut.set()
        if self._error is not None:
            raise self._error

    def take_back(self) -> None:
        self.taken_back += 1


def begun(timeout: float = math.inf, cancel: CancelToken | None = None) -> Deadline:
    deadline = Deadline(timeout, cancel=cancel)
    deadline.begin()
    return deadline


def in_thread(function: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def wait_until(condition: Callable[[], Any], limit: float = LONG) -> bool:
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return bool(condition())


# --- durations ----------------------------------------------------------------------------------


def test_a_duration_is_a_positive_number_of_seconds():
    assert [seconds("timeout", v) for v in (1, 0.5, math.inf)] == [1.0, 0.5, math.inf]
    assert all(type(seconds("timeout", v)) is float for v in (1, 2.5))


def test_a_duration_beyond_all_floats_is_a_value_error():
    with pytest.raises(ValueError, match="timeout"):
        seconds("timeout", 10**400)


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, math.nan, -math.inf])
def test_a_duration_that_is_none_is_a_value_error(value):
    with pytest.raises(ValueError, match=rf"idle_timeout is {value!r}.*math\.inf"):
        seconds("idle_timeout", value)


@pytest.mark.parametrize("value", [None, True, False, "5", b"5", [5], 1j])
def test_a_duration_that_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"timeout is .* positive number of seconds"):
        seconds("timeout", value)


# --- tokens -------------------------------------------------------------------------------------


def test_a_token_is_cancelled_once_and_the_first_reason_stays():
    token = CancelToken()
    assert (token.cancelled, token.reason) == (False, None)

    token.cancel("first")
    token.cancel("second")
    token.cancel()

    assert (token.cancelled, token.reason) == (True, "first")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [("x", TypeError), (True, TypeError), (math.nan, ValueError), (10**400, ValueError)],
)
def test_a_wait_for_no_number_of_seconds_says_so(wrong, kind):
    with pytest.raises(kind, match="timeout is"):
        CancelToken().wait(wrong)


def test_a_cancel_without_a_reason_is_the_first_too():
    token = CancelToken()

    token.cancel()
    token.cancel("later")

    assert (token.cancelled, token.reason) == (True, None)


def test_every_callback_is_called_once():
    token, called = CancelToken(), []
    for number in range(100):
        token.on_cancel(lambda number=number: called.append(number))

    token.cancel()
    token.cancel()

    assert sorted(called) == list(range(100))


def test_a_callback_of_a_cancelled_token_is_called_at_once():
    token, called = CancelToken(), []
    token.cancel("why")

    undo = token.on_cancel(lambda: called.append(token.reason))
    undo()

    assert called == ["why"]


def test_a_registration_is_taken_back_any_number_of_times():
    token, called = CancelToken(), []
    undo = token.on_cancel(lambda: called.append("undone"))
    token.on_cancel(lambda: called.append("kept"))

    undo()
    undo()
    token.cancel()
    undo()

    assert called == ["kept"]


def test_the_same_function_may_be_registered_twice():
    token, called = CancelToken(), []

    def callback():
        called.append(1)

    undo = token.on_cancel(callback)
    token.on_cancel(callback)
    undo()
    token.cancel()

    assert called == [1]


def test_a_callback_that_fails_keeps_none_of_the_others_from_running():
    token, called = CancelToken(), []
    token.on_cancel(lambda: called.append("a"))
    token.on_cancel(lambda: 1 / 0)
    token.on_cancel(lambda: called.append("b"))

    with pytest.raises(ZeroDivisionError):
        token.cancel("why")

    assert sorted(called) == ["a", "b"]
    assert (token.cancelled, token.reason) == (True, "why")
    token.cancel()  # the failed one is not called again


def test_a_callback_may_cancel_again_and_register_more():
    token, called = CancelToken(), []

    def callback():
        token.cancel("inner")
        token.on_cancel(lambda: called.append("late"))
        called.append("outer")

    token.on_cancel(callback)
    token.cancel("outer reason")

    assert called == ["late", "outer"]
    assert token.reason == "outer reason"


def test_a_callback_may_take_back_another():
    token, called = CancelToken(), []
    undo: list[Any] = []
    for number in range(2):
        undo.append(token.on_cancel(lambda n=number: (called.append(n), [take() for take in undo])))

    token.cancel()

    assert len(called) == 1


def test_waiting_ends_when_the_token_is_cancelled():
    token, waiting = CancelToken(), threading.Event()
    results: list[bool] = []

    def wait():
        waiting.set()
        results.append(token.wait(LONG))

    threads = [in_thread(wait) for _ in range(5)]
    waiting.wait(LONG)
    token.cancel()
    for thread in threads:
        thread.join(LONG)

    assert results == [True] * 5


def test_waiting_ends_when_the_time_is_over():
    token = CancelToken()

    assert token.wait(0.01) is False
    assert token.wait(0) is False
    assert token.wait(-1) is False


def test_waiting_for_a_cancelled_token_does_not_wait():
    token = CancelToken()
    token.cancel()

    assert token.wait() is True
    assert token.wait(0) is True
    assert token.wait(math.inf) is True


def test_a_token_is_of_one_process():
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="make one where the calls are made"):
            carry(CancelToken())


def test_registrations_from_many_threads_are_each_called_once():
    """A callback is registered before, at or after the cancel: it is called in any case."""
    token, called, start = CancelToken(), [], threading.Barrier(9)

    def register():
        start.wait(LONG)
        for _ in range(200):
            token.on_cancel(lambda: called.append(1))

    threads = [in_thread(register) for _ in range(8)]
    start.wait(LONG)
    token.cancel()
    for thread in threads:
        thread.join(LONG)

    assert len(called) == 1600


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals as Unix has them")
def test_a_signal_handler_may_cancel_whatever_the_thread_is_doing():
    """A plain lock would deadlock here: the handler runs in the thread that holds it.

    In a process of its own, whose alarms are not the test runner's.
    """
    code = """
        import signal
        from protolink_sync._deadline import CancelToken, Deadline

        class Blocked:
            def cut(self): pass
            def take_back(self): pass

        tokens, hits = [CancelToken()], 0

        def handler(number, frame):
            global hits
            hits += 1
            tokens[-1].cancel("signal")

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while hits < 300:
            token = CancelToken()
            tokens.append(token)
            call = Deadline(30.0, cancel=token)
            call.begin()
            token.on_cancel(lambda: None)()
            call.lend(Blocked())
            call.notify()
            call.release()
            call.finish()
            token.cancel("own")
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(all(token.cancelled for token in tokens[1:]))
    """

    assert run(code) == "True"


# --- one call -----------------------------------------------------------------------------------


def test_a_call_knows_how_long_it_lasts():
    call = begun(100.0)

    assert 99 < call.remaining() <= 100
    assert 0 <= call.elapsed() < 1
    assert call.may_go_on()
    call.finish()


def test_a_call_without_a_budget_has_no_end():
    call = begun(math.inf)

    assert call.remaining() == math.inf
    assert call.may_go_on()
    call.finish()


def test_a_spent_budget_ends_the_call_and_cuts_what_it_blocks_on():
    call, blocked = begun(0.05), Blocked()
    call.lend(blocked)

    assert blocked.was_cut.wait(LONG)

    assert call.ended == "timeout"
    assert not call.may_go_on()
    assert call.remaining() == 0
    assert 0.05 <= call.elapsed() < 5
    call.finish()
    assert (blocked.cuts, blocked.taken_back) == (1, 1)


def test_a_budget_ends_within_a_tenth_of_a_second_of_its_time():
    late = []
    for _ in range(5):
        call, blocked = begun(0.03), Blocked()
        call.lend(blocked)
        blocked.was_cut.wait(LONG)
        late.append(call.elapsed() - 0.03)
        call.finish()

    assert min(late) < 0.1


def test_a_budget_spent_before_anybody_looks_is_noticed_by_the_call():
    call = Deadline(1e-9)  # not begun: nobody else watches it

    assert not call.may_go_on()
    assert call.ended == "timeout"


def test_a_cancel_ends_every_call_of_its_token():
    token = CancelToken()
    calls = [(begun(LONG, token), Blocked()) for _ in range(20)]
    for call, blocked in calls:
        call.lend(blocked)

    token.cancel("enough")

    assert [(c.ended, c.reason, b.cuts) for c, b in calls] == [("cancelled", "enough", 1)] * 20
    for call, _ in calls:
        call.finish()


def test_a_call_with_a_cancelled_token_does_not_begin():
    token = CancelToken()
    token.cancel("before")

    call = begun(LONG, token)

    assert not call.may_go_on()
    assert call.lend(Blocked()) is False
    assert (call.ended, call.reason) == ("cancelled", "before")
    call.finish()


def test_a_finished_call_is_not_ended_by_its_token():
    token, blocked = CancelToken(), Blocked()
    call = begun(LONG, token)
    call.lend(blocked)
    call.finish()

    token.cancel()

    assert (call.ended, blocked.cuts) == (None, 0)


def test_what_is_released_is_not_cut():
    """The pool has lent it to the next call by then."""
    call, blocked = begun(LONG), Blocked()
    call.lend(blocked)

    assert call.release() is True
    call.abort("closed")

    assert blocked.cuts == 0
    call.finish()
    assert blocked.taken_back == 0


def test_releasing_tells_that_the_call_was_ended_meanwhile():
    call, blocked = begun(LONG), Blocked()
    call.lend(blocked)
    call.abort("cancelled")

    assert call.release() is False
    call.finish()


def test_the_first_end_counts():
    call, blocked = begun(LONG), Blocked()
    call.lend(blocked)

    call.abort("closed", "first")
    call.abort("timeout", "second")

    assert (call.ended, call.reason, blocked.cuts) == ("closed", "first", 1)
    call.finish()


def test_the_end_of_the_call_goes_before_that_of_an_attempt():
    """Otherwise a cancel at that moment would be forgotten by the next attempt."""
    call = begun(LONG)

    call.abort("attempt")
    call.abort("cancelled", "enough")
    call.renew()

    assert (call.ended, call.reason) == ("cancelled", "enough")
    call.finish()


def test_finishing_is_done_any_number_of_times():
    call, blocked = begun(LONG, CancelToken()), Blocked()
    call.lend(blocked)

    for _ in range(3):
        call.finish()

    assert blocked.taken_back == 1


def test_the_phase_is_what_the_call_says():
    call = begun(LONG)
    assert call.phase == "slot"

    call.phase = "connect"
    call.abort("timeout")

    assert call.phase == "connect"
    call.finish()


# --- bounds of a part ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["connect", "attempt", "idle"])
def test_a_bound_inside_the_budget_ends_the_call_under_its_name(name):
    call, blocked = begun(LONG), Blocked()
    call.lend(blocked)

    call.limit(name, 0.02)

    assert call.limit_seconds(name) == 0.02
    assert call.limit_seconds("timeout") == LONG
    assert blocked.was_cut.wait(LONG)
    assert call.ended == name
    call.finish()


def test_a_bound_that_is_lifted_ends_nothing():
    call = begun(LONG)
    call.limit("connect", 0.02)

    call.limit("connect", math.inf)

    assert call.wait(0.1)
    assert call.ended is None
    call.finish()


def test_the_shortest_of_several_bounds_ends_the_call():
    call, blocked = begun(LONG), Blocked()
    call.lend(blocked)
    call.limit("attempt", LONG)
    call.limit("connect", 0.02)
    call.limit("idle", LONG)

    assert blocked.was_cut.wait(LONG)
    assert call.ended == "connect"
    call.finish()


def test_a_bound_longer_than_the_budget_does_not_lengthen_it():
    call, blocked = begun(0.02), Blocked()
    call.lend(blocked)

    call.limit("attempt", LONG)

    assert blocked.was_cut.wait(LONG)
    assert call.ended == "timeout"
    call.finish()


@pytest.mark.parametrize("name", ["connect", "attempt"])
def test_a_call_goes_on_after_the_bound_of_one_attempt(name):
    call, first, second = begun(LONG), Blocked(), Blocked()
    call.lend(first)
    call.limit(name, 0.02)
    assert first.was_cut.wait(LONG)

    call.renew()

    assert call.ended is None
    assert call.may_go_on()
    assert first.taken_back == 1
    call.lend(second)
    call.limit(name, 0.02)
    assert second.was_cut.wait(LONG)
    assert call.ended == name
    call.finish()


@pytest.mark.parametrize("how", ["timeout", "idle", "cancelled", "closed"])
def test_a_call_does_not_go_on_after_any_other_end(how):
    call = begun(LONG)
    call.abort(how)

    call.renew()

    assert call.ended == how
    call.finish()


def test_renewing_does_not_renew_the_budget():
    call = begun(0.05)
    call.limit("attempt", 0.01)
    assert wait_until(lambda: call.ended == "attempt")
    call.renew()

    assert call.wait(LONG) is False
    assert call.ended == "timeout"
    call.finish()


# --- waiting ------------------------------------------------------------------------------------


def test_waiting_lasts_as_long_as_asked():
    call = begun(LONG)
    before = time.monotonic()

    assert call.wait(0.05) is True

    assert 0.05 <= time.monotonic() - before < 5
    call.finish()


def test_waiting_ends_when_the_condition_holds():
    call, seen = begun(LONG), []
    thread = in_thread(
        lambda: (wait_until(lambda: call.phase == "go"), seen.append(1), call.notify())
    )

    call.phase = "go"
    assert call.wait(LONG, until=lambda: seen) is True

    thread.join(LONG)
    call.finish()


def test_a_condition_that_holds_already_needs_no_waiting():
    call = begun(LONG)

    assert call.wait(LONG, until=lambda: True) is True
    call.finish()


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_waiting_ends_with_the_call(how):
    call = begun(LONG)
    thread = in_thread(lambda: call.abort(how))

    assert call.wait(math.inf) is False

    thread.join(LONG)
    assert call.ended == how
    call.finish()


def test_waiting_ends_with_the_budget():
    call = begun(0.03)

    assert call.wait(math.inf) is False
    assert call.ended == "timeout"
    call.finish()


# --- the deadline thread ------------------------------------------------------------------------


def deadline_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "protolink-deadline"]


def test_a_process_has_one_deadline_thread():
    calls = [begun(LONG) for _ in range(50)]

    threads = deadline_threads()

    assert len(threads) == 1
    assert threads[0].daemon
    for call in calls:
        call.finish()
    assert deadline_threads() == threads


def test_calls_without_a_budget_need_no_thread():
    code = """
        import math, threading
        from protolink_sync._deadline import CancelToken, Deadline
        call = Deadline(math.inf, cancel=CancelToken())
        call.begin(); call.finish()
        print([t.name for t in threading.enumerate()])
    """

    assert run(code) == "['MainThread']"


def test_the_thread_survives_what_goes_wrong_in_one_call(caplog):
    """Else no other call of the process would have a time limit any more."""
    bad = begun(0.01)
    bad.lend(Blocked(RuntimeError("cannot be cut")))
    failing = Timer(0.01, lambda: 1 / 0)
    watch(failing)

    assert wait_until(lambda: bad.ended == "timeout")
    assert wait_until(lambda: "ZeroDivisionError" in caplog.text)
    good, blocked = begun(0.01), Blocked()
    good.lend(blocked)

    assert blocked.was_cut.wait(LONG)
    assert len(deadline_threads()) == 1
    for call in (bad, good):
        call.finish()


def test_one_call_that_cannot_be_cut_does_not_keep_the_others_alive():
    token = CancelToken()
    calls = []
    for error in (RuntimeError("cannot be cut"), None, None):
        call = begun(LONG, token)
        call.lend(Blocked(error))
        calls.append(call)

    with pytest.raises(RuntimeError, match="cannot be cut"):
        token.cancel()

    assert [call.ended for call in calls] == ["cancelled"] * 3
    for call in calls:
        call.finish()


def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one():
    late, early, blocked = begun(LONG), begun(0.02), Blocked()
    early.lend(blocked)

    assert blocked.was_cut.wait(5)

    late.finish()
    early.finish()


def test_many_deadlines_end_each_in_its_time():
    calls = [(begun(0.01 + 0.002 * (n % 20)), Blocked()) for n in range(200)]
    # What is lent to a call that has ended already is not taken, and not cut.
    taken = [blocked for call, blocked in calls if call.lend(blocked)]

    assert taken
    assert all(blocked.was_cut.wait(LONG) for blocked in taken)
    for call, _ in calls:
        assert call.ended == "timeout"
        call.finish()


def test_ten_thousand_finished_calls_leave_nothing():
    """Their budgets of 300 s are far from over."""
    token, made = CancelToken(), weakref.WeakSet()
    for _ in range(10_000):
        call = begun(300.0, token)
        call.limit("connect", 30.0)
        call.lend(Blocked())
        call.release()
        call.finish()
        made.add(call)
    del call
    gc.collect()

    assert len(made) == 0
    assert not token.cancelled


def test_calls_that_ran_together_leave_nothing_either():
    made: weakref.WeakSet[Deadline] = weakref.WeakSet()
    calls = [begun(300.0) for _ in range(1000)]
    trigger = begun(0.01)  # has the thread look at all of them
    assert wait_until(lambda: trigger.ended)
    made.update(calls)

    for call in calls:
        call.finish()
    del call, calls
    trigger.finish()

    # The deadline thread may still be on its way through all of them.
    assert wait_until(lambda: gc.collect() >= 0 and not made)


def test_a_call_is_let_go_by_a_token_that_lives_on():
    token = CancelToken()
    call = begun(LONG, token)
    reference = weakref.ref(call)

    call.finish()
    del call
    gc.collect()

    assert reference() is None


def test_a_timer_acts_once():
    done: list[int] = []
    timer = Timer(0.01, lambda: done.append(1))
    watch(timer)

    assert wait_until(lambda: done)
    call = begun(0.02)
    assert wait_until(lambda: call.ended)

    assert done == [1]
    call.finish()


def test_a_timer_that_is_taken_back_does_not_act():
    done: list[int] = []
    timer = Timer(0.02, lambda: done.append(1))
    watch(timer)

    forget(timer)
    forget(timer)

    call = begun(0.05)
    assert wait_until(lambda: call.ended)
    assert done == []
    call.finish()


# --- other processes ----------------------------------------------------------------------------


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@needs_fork
def test_a_forked_child_has_deadlines_of_its_own():
    code = """
        import os, threading, time
        from protolink_sync._deadline import Deadline

        parents = Deadline(300.0); parents.begin()
        child = os.fork()
        if child == 0:
            call = Deadline(0.05); call.begin()
            ended = not call.wait(20)
            parents.finish()
            names = [t.name for t in threading.enumerate()].count("protolink-deadline")
            os._exit(0 if ended and call.ended == "timeout" and names == 1 else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        own = Deadline(0.05); own.begin()
        assert not own.wait(20)
        print("ok", parents.ended)
    """

    assert run(code) == "ok None"


@needs_fork
def test_a_child_forked_while_the_parent_is_busy_is_not_hung():
    """Locks that other threads held at the fork are held for ever in the child."""
    code = """
        import os, threading
        from protolink_sync._deadline import CancelToken, Deadline

        stop = threading.Event()
        def work():
            while not stop.is_set():
                call = Deadline(0.001, cancel=CancelToken()); call.begin(); call.wait(0.0005)
                call.finish()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        failed = 0
        for _ in range(20):
            child = os.fork()
            if child == 0:
                call = Deadline(0.02); call.begin()
                os._exit(0 if not call.wait(20) else 1)
            failed += os.waitpid(child, 0)[1] != 0
        stop.set()
        for thread in threads: thread.join()
        print(failed)
    """

    assert run(code) == "0"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at its threads in /proc")
def test_a_fork_without_hooks_is_noticed():
    """uWSGI forks in C, so os.register_at_fork hears nothing."""
    code = """
        import ctypes, os, threading, time
        from protolink_sync._deadline import Deadline

        def is_asleep(thread):
            with open(f"/proc/self/task/{thread.native_id}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "S"

        parents = Deadline(300.0); parents.begin()
        (watching,) = [t for t in threading.enumerate() if t.name == "protolink-deadline"]
        # A thread that asks for the interpreter at the fork would ask for it in the child for ever:
        # Python's own affair, which its hook after a fork clears up.
        quiet = 0
        while quiet < 20:
            time.sleep(0.001)
            quiet = quiet + 1 if is_asleep(watching) else 0
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            call = Deadline(0.05); call.begin()
            os._exit(0 if not call.wait(20) else 1)
        print(os.waitpid(child, 0)[1])
    """

    assert run(code) == "0"
