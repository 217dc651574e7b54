"""The channel between a stream's worker and its reader."""

from __future__ import annotations

import threading

import pytest

from protolink_sync.streaming._channel import Channel, End
from tests.streaming.scripted import LIMIT

BATCH = 256


@pytest.fixture
def channel():
    return Channel()


def taken(channel):
    """Take what a thread of its own gets; call the result for it."""
    got = []
    thread = threading.Thread(target=lambda: got.append(channel.take()), daemon=True)
    thread.start()

    def result():
        thread.join(LIMIT)
        assert not thread.is_alive(), "take() hangs"
        return got[0]

    return result


def waiting_for_room(channel):
    """Wait for room in a thread of its own; call the result to see that it came."""
    thread = threading.Thread(target=channel.wait_for_room, args=(lambda: False,), daemon=True)
    thread.start()

    def came():
        thread.join(LIMIT)
        return not thread.is_alive()

    return came


def test_batches_come_as_they_were_put(channel):
    channel.put([1, 2], 10)
    channel.put([], 0)
    channel.put([3], 5)
    channel.end(None)

    assert [channel.take() for _ in range(3)] == [[1, 2], [], [3]]
    assert channel.take().error is None


def test_an_end_that_was_lost_on_its_way_comes_all_the_same(channel):
    """What a signal handler raises may come just when the reader has it in hand."""
    error = OSError("broken")
    channel.put([1], 0)
    channel.end(error)
    assert channel.take() == [1]
    channel._queue.get()

    for _ in range(2):
        assert taken(channel)().error is error


def test_the_end_comes_last_and_stays(channel):
    error = OSError("broken")
    channel.put([1], 0)
    channel.end(error)

    assert channel.take() == [1]
    for _ in range(3):
        end = channel.take()
        assert isinstance(end, End)
        assert end.error is error


def test_take_waits_for_what_comes(channel):
    result = taken(channel)

    channel.put([1], 0)

    assert result() == [1]


@pytest.mark.parametrize("end", [lambda c: c.end(None), lambda c: c.close()], ids=["end", "close"])
def test_the_end_wakes_the_reader(channel, end):
    result = taken(channel)

    end(channel)

    assert isinstance(result(), End)


@pytest.mark.parametrize(
    ("events", "size", "full"),
    [
        (BATCH - 1, 0, False),
        (BATCH, 0, True),
        (1, 2 * 1024 * 1024 - 1, False),
        (1, 2 * 1024 * 1024, True),
        (0, 0, False),
    ],
)
def test_it_is_full_at_a_number_of_events_or_of_bytes(channel, events, size, full):
    channel.put([0] * events, size)

    assert channel.is_full() is full
    channel.take()
    assert not channel.is_full(), "taken is taken"


def test_what_is_put_goes_in_though_it_is_full(channel):
    for number in range(3):
        channel.put([number] * BATCH, 0)

    assert [channel.take()[0] for _ in range(3)] == [0, 1, 2]
    assert not channel.is_full()


def test_taking_makes_room(channel):
    channel.put([0] * BATCH, 0)
    channel.put([1], 0)
    came = waiting_for_room(channel)

    channel.take()

    assert came()


def test_it_has_room_only_once_enough_was_taken(channel):
    channel.put([0], 0)
    channel.put([0] * BATCH, 0)

    channel.take()
    assert channel.is_full()
    channel.take()
    assert not channel.is_full()


def test_closing_lets_the_worker_go_and_the_reader_too(channel):
    channel.put([0] * BATCH, 0)
    came = waiting_for_room(channel)

    channel.close()
    channel.close()

    assert came()
    assert channel.closed
    assert not channel.is_full(), "a closed channel holds nobody up"


def test_all_events_pass_in_order_between_two_threads(channel):
    count = 20_000

    def work():
        for number in range(count):
            channel.put([number], 100)
            if channel.is_full():
                channel.wait_for_room(lambda: False)
        channel.end(None)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    found = []
    while not isinstance(got := channel.take(), End):
        found += got
        assert channel._events - channel._taken_events <= BATCH

    assert found == list(range(count))
    worker.join(LIMIT)
    assert not worker.is_alive()


def test_a_channel_has_room_for_one_more_like_the_last():
    """Of events just below the bound two would be held else: one waiting, one on its way."""
    channel = Channel()

    channel.put(["large"], 3 * 1024 * 1024)
    assert channel.is_full()

    channel.take()
    assert not channel.is_full()  # whatever the last one was: nothing waits
