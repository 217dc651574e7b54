"""EventStream over a scripted source: order, ends, errors, threads, leaving, back-pressure."""

from __future__ import annotations

import contextvars
import gc
import pathlib
import subprocess
import sys
import threading
import time
import traceback
import weakref

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    StreamInterruptedError,
    TransportProtocolError,
    TransportRemoteError,
)
from protolink_sync.models import Task, TaskState
from protolink_sync.streaming import EventSource, EventStream
from tests.streaming.scripted import (
    LIMIT,
    InterruptedRelease,
    Reading,
    ScriptedSource,
    eventually,
    final,
    interrupted_after,
)

ROOT = pathlib.Path(__file__).parents[2]

WORKING = {"type": "task_status_update", "new_state": "working", "final": False}


def stream_of(*steps, **settings):
    source = ScriptedSource(*steps)
    return EventStream(source, **settings), source


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("protolink-stream-")]


# --- what comes ---------------------------------------------------------------------------------


def test_events_come_in_order_through_all_batches():
    stream, source = stream_of([1], [2, 3, 4], [], [5], None)

    assert list(stream) == [1, 2, 3, 4, 5]
    assert stream.events == 5
    assert list(stream) == [], "at its end a stream stays at its end"
    assert source.closed.wait(LIMIT)
    assert source.closed_with is None
    assert source.calls == ["read"] * 5 + ["close"]


def test_values_of_every_kind_are_events():
    values = [None, False, 0, "", [], {}, {"type": None}, {"metadata": 5, "final": True}]
    stream, _ = stream_of(values, None)

    assert list(stream) == values


def test_an_event_is_there_before_the_next():
    stream, source = stream_of()
    for number in range(5):
        source.give([number])
        assert next(stream) == number
    source.give(None)

    assert next(stream, "end") == "end"


def test_the_task_is_that_of_the_last_status():
    stream, _ = stream_of([WORKING], [final("input-required")], [final("completed")], None)

    seen = [(stream.task and stream.task.state, stream.events) for _ in stream]

    assert seen == [(None, 1), (TaskState.INPUT_REQUIRED, 2), (TaskState.COMPLETED, 3)]
    assert isinstance(stream.task, Task)
    assert stream.result() is stream.task
    assert stream.task is stream.task


@pytest.mark.parametrize(
    "last", [{"final": True}, {**final(), "metadata": None}, {**final(), "metadata": {}}, WORKING]
)
def test_an_end_without_a_task_has_no_result(last):
    stream, _ = stream_of([WORKING, last], None, task_id="t-1")

    with pytest.raises(TransportProtocolError, match=r"'t-1'.*without a final status"):
        stream.result()
    assert stream.task is None


def test_result_reads_on_from_where_the_loop_stopped():
    stream, _ = stream_of([1, 2, 3, final()], None)
    assert next(stream) == 1

    assert stream.result().state is TaskState.COMPLETED
    assert stream.events == 4


def test_an_event_that_was_read_is_kept_by_nobody():
    class Event(dict):
        pass

    stream, _ = stream_of([Event(n=number) for number in range(3)], None)
    next(stream)
    gone = weakref.ref(next(stream))

    assert eventually(lambda: gc.collect() >= 0 and gone() is None)
    stream.close()


def test_the_worker_has_the_callers_context():
    variable = contextvars.ContextVar("variable", default="none")
    seen = []

    class Source(ScriptedSource):
        def read(self):
            seen.append(variable.get())
            return super().read()

    token = variable.set("the caller's")
    try:
        stream = EventStream(Source([1], None))
    finally:
        variable.reset(token)

    assert list(stream) == [1]
    assert seen == ["the caller's"] * 2


def test_the_source_is_an_event_source():
    source: EventSource = ScriptedSource(None)  # for the type checker

    stream = EventStream(source)

    assert list(stream) == []


# --- errors -------------------------------------------------------------------------------------


def test_an_error_comes_after_all_events_and_each_time_again():
    broken = TransportRemoteError("model died")
    stream, source = stream_of([1, 2], [3], broken)
    found = []

    with pytest.raises(TransportRemoteError) as first:
        found.extend(stream)
    with pytest.raises(TransportRemoteError) as second:
        next(stream)
    with pytest.raises(TransportRemoteError) as third:
        stream.result()

    assert found == [1, 2, 3]
    assert source.closed_with is broken
    assert first.value is second.value is third.value
    for caught in (first, second, third):
        assert str(caught.value) == str(broken)
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert "_pump" in frames, "the worker's frames are kept"


def test_an_interruption_says_how_far_the_stream_came():
    broken = StreamInterruptedError("cut")
    stream, _ = stream_of([WORKING, 2, 3], broken, task_id="t-1")

    with pytest.raises(StreamInterruptedError) as caught:
        list(stream)

    error = caught.value
    assert (error.task_id, error.last_state, error.events) == ("t-1", "working", 3)
    assert error.task is None


def test_an_interruption_behind_the_final_status_has_the_task():
    stream, _ = stream_of([final()], StreamInterruptedError("cut"))

    with pytest.raises(StreamInterruptedError) as caught:
        stream.result()

    assert caught.value.last_state == "completed"
    assert caught.value.task is stream.task is not None


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_source_raises_reaches_the_reader(error):
    stream, source = stream_of([1], error)

    with pytest.raises(type(error)) as caught:
        list(stream)

    assert caught.value.args == error.args
    assert source.closed_with is error


def test_the_error_of_a_stream_does_not_grow_with_each_time_it_is_asked_for():
    stream, _ = stream_of([1], KeyError("x"))
    lengths = []

    for _ in range(4):
        with pytest.raises(KeyError) as caught:
            list(stream)
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))

    assert lengths[1:] == lengths[:1] * 3


def test_a_source_that_raises_stop_iteration_has_not_come_to_its_end():
    """As it is, a loop would take it for the end: a failure would look like a success."""
    stream, _ = stream_of([1], StopIteration())

    for _ in range(2):
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(stream)


def test_a_source_that_fails_to_close_does_not_keep_the_reader(monkeypatch):
    told = []
    monkeypatch.setattr(threading, "excepthook", told.append)

    class Source(ScriptedSource):
        def close(self, error):
            raise OSError("no way")

    stream = EventStream(Source([1], None))

    assert list(stream) == [1]
    assert eventually(lambda: not workers())
    assert [type(args.exc_value) for args in told] == [OSError]


# --- one reader ---------------------------------------------------------------------------------


def is_being_read(stream):
    free = stream._reading.acquire(blocking=False)
    if free:
        stream._reading.release()
    return not free


def test_one_thread_reads_at_a_time():
    stream, source = stream_of([1])
    reading = Reading(stream)
    assert eventually(lambda: stream.events == 1 and is_being_read(stream))

    with pytest.raises(RuntimeError, match="one reader at a time"):
        next(stream)
    source.give([2], None)

    assert reading.ended() == [1, 2]
    assert reading.error is None


def test_threads_may_read_one_after_the_other():
    stream, source = stream_of([1, 2])
    assert next(stream) == 1
    source.give(None)

    assert Reading(stream).ended() == [2]
    assert list(stream) == []


@pytest.mark.parametrize("line", ["is_reader = False", "is_reader = self._reading"])
def test_ctrl_c_at_the_beginning_of_a_wait_keeps_no_reader_out(line):
    """Before the wait the stream goes on; what ends the wait ends it."""
    stream, source = stream_of([1], None)

    interrupted_after(EventStream.__next__, line, lambda: next(stream))

    reading = Reading(stream)
    if line == "is_reader = False":
        assert reading.ended() == [1]
        assert reading.error is None
    else:
        assert reading.ended() == []
        assert isinstance(reading.error, CallCancelledError)
    assert source.closed.wait(LIMIT)


@pytest.mark.parametrize("signalled", [KeyboardInterrupt(), TimeoutError("of an alarm")])
def test_a_signal_with_an_event_in_hand_leaves_no_gap(signalled):
    """Who reads on would come to a good end without it."""
    stream, _ = stream_of([1, 2, 3], None)
    assert next(stream) == 1

    stream._reading = InterruptedRelease(signalled)

    with pytest.raises(type(signalled)):
        next(stream)

    with pytest.raises(CallCancelledError):
        list(stream)


def test_an_interrupted_reader_ends_the_stream_of_the_next_one_as_cancelled():
    """Also of one that waits already when the interrupt comes."""
    stream, source = stream_of([1])
    assert next(stream) == 1
    reading = Reading(stream)
    assert eventually(lambda: source.calls.count("read") == 2)

    stream._interrupt()

    assert reading.ended() == []
    assert isinstance(reading.error, CallCancelledError)
    assert "was interrupted" in str(reading.error)


def test_a_stream_that_the_end_of_the_interpreter_ends_was_not_finished():
    stream, _ = stream_of([1])
    assert next(stream) == 1

    stream._release()  # as weakref.finalize does at exit

    for _ in range(2):
        with pytest.raises(CallCancelledError, match="interpreter exits"):
            next(stream)


PROGRAM = """
import atexit, sys, threading
from protolink_sync._threads import Messenger
from protolink_sync.streaming import EventStream
from tests.streaming.scripted import ScriptedSource

def read():
    try:
        for event in stream:
            reads.set()
        print("came to an end")
    except Exception as error:
        print(type(error).__name__)

reads = threading.Event()
reader = {kind}(target=read, daemon=True)
# The last registered is the first to be called: this one after the end of the stream.
atexit.register(reader.join)
stream = EventStream(ScriptedSource([1]))
reader.start()
assert reads.wait(5)
"""


@pytest.mark.parametrize(
    ("kind", "told"), [("threading.Thread", ""), ("Messenger", "CallCancelledError\n")]
)
def test_a_daemon_thread_that_reads_at_exit_is_told_of_no_end_and_says_nothing(kind, told):
    """But one that hands its errors on: who waits for it would end with it."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{kind}", kind)],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=ROOT,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, told, "")


def test_a_worker_that_sees_first_that_its_stream_was_left_counts_no_good_end():
    """Whoever leaves closes the channel, then ends the call; the worker comes between the two."""

    class Source(ScriptedSource):
        was_aborted_before_its_end = False

        def read(self):
            got = super().read()
            if got == ([2], 0):
                stream._channel.close()
            return got

        def close(self, error):
            self.was_aborted_before_its_end = self.aborted.is_set()
            super().close(error)

    source = Source([1])
    stream = EventStream(source)
    assert next(stream) == 1

    source.give([2])

    assert source.closed.wait(LIMIT)
    assert source.was_aborted_before_its_end


# --- leaving ------------------------------------------------------------------------------------


def test_close_wakes_a_blocked_reader():
    stream, source = stream_of([1])
    reading = Reading(stream)
    assert eventually(lambda: stream.events == 1 and is_being_read(stream))

    stream.close()

    assert reading.ended() == [1]
    assert reading.error is None
    assert source.aborted.is_set()
    assert source.closed.is_set(), "close() waits for the worker"
    assert not workers()
    assert "closed" in repr(stream)


def test_close_drops_what_was_not_read_also_an_error():
    stream, source = stream_of([1, 2, 3], TransportRemoteError("late"))
    assert next(stream) == 1
    assert source.closed.wait(LIMIT)

    stream.close()
    stream.close()

    assert list(stream) == []
    assert stream.events == 1
    with pytest.raises(CallCancelledError):
        stream.result()


def test_a_task_that_was_read_survives_the_close():
    stream, _ = stream_of([final()], None)
    next(stream)

    stream.close()

    assert stream.result().state is TaskState.COMPLETED


def test_leaving_with_ends_the_worker():
    stream, source = stream_of([1])
    with pytest.raises(KeyError), stream:
        raise KeyError("of the caller")

    assert source.closed.is_set()
    assert not workers()


def test_a_stream_that_is_dropped_ends_its_worker():
    stream, source = stream_of([1])
    assert next(stream) == 1

    del stream
    gc.collect()

    assert source.closed.wait(LIMIT)
    assert eventually(lambda: not workers())


def test_breaking_out_of_a_loop_over_a_stream_nobody_holds_ends_it():
    source = ScriptedSource([1, 2])
    for _ in EventStream(source):
        break

    assert source.closed.wait(LIMIT), "without a collection"


def test_a_stream_that_is_not_read_is_dropped_while_its_worker_waits_for_room():
    source = ScriptedSource([0] * 300, [0] * 300)
    stream = EventStream(source)
    assert source.paused.wait(LIMIT)

    del stream

    assert source.closed.wait(LIMIT)


def test_the_worker_may_close_the_stream_and_does_not_wait_for_itself():
    class Source(ScriptedSource):
        def read(self):
            got = super().read()
            stream.close()
            return got

    source = Source()
    stream = EventStream(source)
    source.give([1])

    assert list(stream) == []
    assert source.closed.wait(LIMIT)


# --- back-pressure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "batch",
    [([0] * 256, 0), ([0], 4 << 20), ([0, 0], 5 << 20)],
    ids=["many events", "many bytes", "one large batch"],
)
def test_a_worker_whose_reader_is_slow_stops_reading(batch):
    events, size = batch
    source = ScriptedSource((list(events), size), [1], None)
    stream = EventStream(source)
    assert source.paused.wait(LIMIT)

    assert source.calls == ["read", "pause"]
    assert list(stream) == [*events, 1]
    assert source.calls == ["read", "pause", "resume", "read", "read", "close"]


def test_a_reader_that_keeps_up_is_not_paused():
    stream, source = stream_of()
    for number in range(1000):
        source.give(([number], 1 << 20))
        assert next(stream) == number
    source.give(None)

    assert list(stream) == []
    assert "pause" not in source.calls


def test_all_calls_but_abort_come_from_one_worker():
    source = ScriptedSource([0] * 300, [1], None)
    stream = EventStream(source)
    assert len(list(stream)) == 301
    assert eventually(source.closed.is_set)

    (name,) = source.threads
    assert name.startswith("protolink-stream-")


# --- cancel -------------------------------------------------------------------------------------


def test_cancel_asks_the_agent_while_the_stream_goes_on():
    asked = []
    canceled = Task.create_infer(prompt="x")

    def cancel(reason, timeout, token):
        asked.append((reason, timeout))
        source.give([final("canceled")], None)
        return canceled

    stream, source = stream_of([WORKING], canceller=cancel)
    next(stream)

    assert stream.cancel("enough", 3) is canceled
    assert asked == [("enough", 3)]
    assert stream.result().state is TaskState.CANCELED
    assert eventually(lambda: not workers())
    assert stream.cancel().state is TaskState.CANCELED
    assert len(asked) == 1, "the end is here already"


def test_cancel_at_the_moment_of_the_end_returns_the_finished_task():
    def cancel(reason, timeout, token):
        source.give([final()], None)
        raise TransportRemoteError("the task is not running")

    stream, source = stream_of([WORKING], canceller=cancel)

    assert stream.cancel().state is TaskState.COMPLETED
    assert stream.events == 0, "nothing was taken from the reader"
    assert len(list(stream)) == 2


def test_a_refused_cancel_waits_for_no_end_once_its_token_is_cancelled():
    """The caller of the request has gone then."""
    token = CancelToken()

    def cancel(reason, timeout, given):
        token.cancel()
        raise TransportRemoteError("the task is not running")

    stream, _ = stream_of([WORKING], canceller=cancel)
    began = time.monotonic()

    with pytest.raises(TransportRemoteError):
        stream._ask_to_cancel(None, None, token)

    assert time.monotonic() - began < 1
    stream.close()


def test_cancel_without_a_task():
    stream, _ = stream_of([1], None)

    with pytest.raises(RuntimeError, match="no task that could be cancelled"):
        stream.cancel()
    stream.close()
