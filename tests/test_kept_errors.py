"""An error that is kept says the same each time it is raised, and leads to nobody's frames."""

from __future__ import annotations

import gc
import weakref

import attrs
import pytest

from protolink_sync._kept_errors import copied, without_frames
from protolink_sync.errors import (
    A2ATaskNotFoundError,
    StreamInterruptedError,
    TransportConnectionError,
)


class FromACode(TransportConnectionError):
    """Its constructor makes the message, from what it keeps in a slot."""

    __slots__ = ("code",)

    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@attrs.frozen
class Frozen(TransportConnectionError):
    """It lets nothing be set."""

    code: int


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
        A2ATaskNotFoundError("gone", code=-32001),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("cause", [None, OSError("below")])
def test_a_copy_says_what_the_error_says(error, cause):
    again = copied(raised(error, cause))

    assert type(again) is type(error)
    assert again is not error
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
    assert again.__cause__ is cause
    assert again.__suppress_context__
    assert again.__traceback__ is None


def test_the_system_s_number_is_copied_too():
    error = TransportConnectionError("no")
    error.errno = 111

    assert copied(error).errno == 111


def test_a_note_on_a_copy_is_on_that_one_alone():
    error = TransportConnectionError("no")
    error.__notes__ = ["known"]

    copied(error).__notes__.append("of one who has caught it")

    assert copied(error).__notes__ == ["known"]


@pytest.mark.parametrize(
    "error",
    [FromACode(7), Frozen(7), OSError(111, "refused"), SystemExit(3)],
    ids=lambda error: type(error).__name__,
)
def test_what_is_not_of_the_library_is_raised_itself(error):
    """Only its own class knows how it is to be copied."""
    assert copied(error) is error


def test_an_error_whose_args_somebody_has_changed_is_raised_itself():
    error = TransportConnectionError("no")
    error.args += ("a hint", "and another")

    assert copied(error) is error


def test_causes_of_any_kind_forget_where_they_were_raised():
    class Counted(TransportConnectionError):
        attempts = 3

    class Sealed(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    for cause in (Sealed("it lets nothing be set"), Counted("three times")):
        kept = without_frames(raised(TransportConnectionError("no"), raised(cause)))

        assert kept.__cause__ is cause
        assert cause.__traceback__ is None
        assert cause.__context__ is None


def test_a_copy_without_a_cause_shows_what_was_handled():
    error = TransportConnectionError("new")
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
