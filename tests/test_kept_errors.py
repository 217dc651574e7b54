"""An error that is kept says the same each time it is raised, and leads to nobody's frames."""

from __future__ import annotations

import gc
import weakref

import pytest

from protolink_sync._kept_errors import copied, without_frames
from protolink_sync.errors import StreamInterruptedError, TransportConnectionError


class FromACode(TransportConnectionError):
    """Its constructor makes the message."""

    def __init__(self, code):
        super().__init__(f"code {code}")


class Demanding(Exception):
    """Its constructor wants more than it keeps."""

    def __init__(self, where, code):
        super().__init__(f"{where}: {code}")
        self.code = code


class Another(Exception):
    """What it is copied into is none of its kind."""

    def __reduce__(self):
        return ValueError, ("another",)


def raised(error, cause=None):
    """Return an error after it was raised while another was handled."""
    try:
        try:
            raise KeyError("handled")
        except KeyError:
            raise error from cause
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    "error",
    [
        TransportConnectionError("no", url="http://a.test", retryable=True),
        StreamInterruptedError("cut", task_id="t", events=3),
        FromACode(7),
        Demanding("here", 7),
        Another("this"),
        ConnectionRefusedError(111, "refused"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
        SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("cause", [None, OSError("below")])
def test_a_copy_says_what_the_error_says(error, cause):
    again = copied(raised(error, cause))

    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
    assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert again.__cause__ is cause
    assert again.__suppress_context__
    assert again.__traceback__ is None


def test_a_copy_without_a_cause_shows_what_was_handled():
    error = ValueError("new")
    error.__context__ = KeyError("handled")

    again = copied(error)

    assert again is not error
    assert again.__context__ is error.__context__
    assert not again.__suppress_context__


def test_an_error_that_is_kept_leads_to_no_frames_and_to_nothing_of_the_callers():
    class Mine(Exception):
        """Of the caller, who handles it."""

    error = TransportConnectionError("no")
    error.attempts = (raised(TransportConnectionError("first"), raised(OSError("below"))),)

    def handle():
        try:
            raise Mine
        except Mine as mine:
            without_frames(raised(error))
            return weakref.ref(mine), mine.__traceback__ is not None

    mine, has_traceback = handle()
    gc.collect()

    assert has_traceback
    assert mine() is None
    for kept in (error, error.attempts[0], error.attempts[0].__cause__):
        assert kept.__traceback__ is None
        assert kept.__context__ is None
