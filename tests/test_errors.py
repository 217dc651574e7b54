"""The tree of errors: what each is, and that nothing of one is lost on its way elsewhere."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pathlib
import pickle
import re
from typing import Any

import pytest

from protolink_sync import errors
from protolink_sync.errors import (
    A2AClientError,
    A2AContentTypeNotSupportedError,
    A2AExtendedCardNotConfiguredError,
    A2AExtensionRequiredError,
    A2AInternalError,
    A2AInvalidAgentResponseError,
    A2AInvalidParamsError,
    A2AInvalidRequestError,
    A2AMethodNotFoundError,
    A2AParseError,
    A2APushNotificationNotSupportedError,
    A2ARpcError,
    A2ATaskNotCancelableError,
    A2ATaskNotFoundError,
    A2AUnsupportedOperationError,
    A2AVersionNotSupportedError,
    AuthenticationError,
    CallCancelledError,
    ClientClosedError,
    ModelError,
    NoResponseMessageError,
    ProtoLinkError,
    StreamingNotSupportedError,
    StreamInterruptedError,
    StructuredResponseError,
    TaskExecutionError,
    TLSVerificationError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
    words,
)
from protolink_sync.models import Task

# class -> what it is besides, and what it is not.
TREE: dict[type[ProtoLinkError], tuple[tuple[type, ...], tuple[type, ...]]] = {
    ProtoLinkError: ((Exception,), (TransportError,)),
    ModelError: ((ProtoLinkError, ValueError), (TransportError,)),
    CallCancelledError: ((ProtoLinkError,), (TransportError, OSError, RuntimeError)),
    ClientClosedError: ((ProtoLinkError, RuntimeError), (TransportError,)),
    TransportError: ((ProtoLinkError,), (OSError, RuntimeError)),
    TransportConnectionError: ((TransportError, ConnectionError, OSError), (TimeoutError,)),
    StreamInterruptedError: ((TransportConnectionError, ConnectionError), (TimeoutError,)),
    TLSVerificationError: ((TransportConnectionError, ConnectionError), (TimeoutError,)),
    TransportTimeoutError: ((TransportError, TimeoutError, OSError), (ConnectionError,)),
    TransportProtocolError: ((TransportError, RuntimeError), (TransportRemoteError,)),
    TransportRemoteError: ((TransportError, RuntimeError), (TransportProtocolError,)),
    AuthenticationError: ((TransportRemoteError, RuntimeError), ()),
    TransportLimitError: ((TransportError, ValueError), (ModelError,)),
    StreamingNotSupportedError: ((TransportError, NotImplementedError), ()),
    A2AClientError: ((ProtoLinkError, RuntimeError), (TransportError,)),
    A2ARpcError: ((A2AClientError, RuntimeError), (TransportError,)),
    A2AParseError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AInvalidRequestError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AMethodNotFoundError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AInvalidParamsError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AInternalError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2ATaskNotFoundError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2ATaskNotCancelableError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2APushNotificationNotSupportedError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AUnsupportedOperationError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AContentTypeNotSupportedError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AInvalidAgentResponseError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AExtendedCardNotConfiguredError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AExtensionRequiredError: ((A2ARpcError, RuntimeError), (TransportError,)),
    A2AVersionNotSupportedError: ((A2ARpcError, RuntimeError), (TransportError,)),
    TaskExecutionError: ((ProtoLinkError, RuntimeError), (TransportError,)),
    StructuredResponseError: ((TaskExecutionError, RuntimeError), ()),
    NoResponseMessageError: ((ProtoLinkError, RuntimeError), (TaskExecutionError,)),
}
CLASSES = list(TREE)

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "reference" / "errors.rst"
# title -> text, of the sections that classes have.
SECTIONS = {
    part[1]: part[2]
    for part in re.finditer(
        r"^(\w+)\n~+\n(.*?)(?=^\w[^\n]*\n[~-]{3,}\n|\Z)", PAGE.read_text("utf-8"), re.M | re.S
    )
}

EARLIER = TransportConnectionError("refused", url="http://a", retryable=True)
EARLIER.errno = 111

VALUES: dict[str, Any] = {
    "path": "$.a[0]",
    "reason": "no longer needed",
    "url": "http://agent.test",
    "phase": "wait",
    "request_id": "f" * 32,
    "retryable": True,
    "status_code": 503,
    "attempts": (EARLIER,),
    "attempt_count": 2,
    "elapsed": 1.5,
    "task_id": "t-1",
    "last_state": "working",
    "events": 7,
    "task": Task("t-1", metadata={"a": [1]}),
    "error_type": "ValueError",
    "error_message": "no",
    "body": b"no",
    "headers": {"retry-after": "3"},
    "retry_after": 3.0,
    "code": -32001,
    "data": [{"reason": "X"}],
    "domain": "a2a-protocol.org",
    "metadata": {"a": 1},
    "field_violations": ({"field": "message", "description": "missing"},),
    "validation_error": "missing: total",
}


def keywords(cls: type) -> list[str]:
    parameters = inspect.signature(cls).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def full(cls: type[ProtoLinkError]) -> ProtoLinkError:
    """Return an error with a value, other than the default, in every attribute."""
    own = {"attempts": 3} if cls is StructuredResponseError else {}
    error = cls("what, where, what to do", **{n: {**VALUES, **own}[n] for n in keywords(cls)})
    if isinstance(error, OSError):
        error.errno = 104
    return error


def content(value: Any) -> Any:
    """Return an error as values that compare, the errors inside it too."""
    if isinstance(value, ProtoLinkError):
        number = getattr(value, "errno", None)
        attributes = {name: content(item) for name, item in vars(value).items()}
        return type(value), value.args, str(value), number, attributes
    if isinstance(value, tuple):
        return tuple(content(item) for item in value)
    return value


def test_the_tree_is_that_of_the_module():
    assert {cls.__name__ for cls in CLASSES} == set(errors.__all__)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_is_what_its_documentation_says(cls):
    is_a, is_no = TREE[cls]

    assert all(issubclass(cls, base) for base in is_a)
    assert not any(issubclass(cls, base) for base in is_no)
    assert issubclass(cls, ProtoLinkError)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_message_alone_makes_an_error(cls):
    """One positional argument: otherwise pickle and copy would need to know each class."""
    error = cls("what happened")

    assert error.message == "what happened"
    assert error.args == ("what happened",)
    assert str(cls()) == ""
    with pytest.raises(TypeError):
        cls("what", "where")


@pytest.mark.parametrize("cls", CLASSES)
def test_pickle_and_copy_keep_everything(cls):
    error = full(cls)

    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(2, 6)]
    for carried in [*pickled, copy.copy(error), copy.deepcopy(error)]:
        assert carried is not error
        assert content(carried) == content(error)
        assert all(hasattr(carried, name) for name in keywords(cls))


@pytest.mark.parametrize("cls", CLASSES)
def test_attributes_are_what_was_given(cls):
    error = full(cls)

    own = {"attempts": 3} if cls is StructuredResponseError else {}
    for name in keywords(cls):
        assert getattr(error, name) == {**VALUES, **own}[name]
    if isinstance(error, OSError):
        assert error.errno == 104
        assert error.message == "what, where, what to do"


# --- what to do about an error ------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
def test_a_message_names_the_section_that_says_what_to_do(cls):
    """The sections' titles are the classes' names: Sphinx makes their anchors of these."""
    error = cls("what happened")
    page, _, anchor = error.help_anchor.partition("#")

    titles = [title.lower() for title in SECTIONS]
    assert page == PAGE.with_suffix(".html").name
    assert titles.count(anchor) == 1
    assert anchor == cls.__name__.lower()
    assert str(error) == f"what happened (see {error.help_anchor})"


@pytest.mark.parametrize("cls", CLASSES)
def test_a_section_says_what_to_do_and_whether_to_send_again(cls):
    section = SECTIONS[cls.__name__]

    assert f".. autoexception:: {cls.__name__}\n" in section
    assert re.search(r"^:What to do: \S", section, re.MULTILINE)
    assert re.search(r"^:Send it again\?: \S", section, re.MULTILINE)


def test_an_error_that_tells_of_another_names_one_section_only():
    inner = ModelError("no number @ $.a", path="$.a")

    outer = TransportProtocolError(f"the reply is wrong: {inner}; try again")
    again = pickle.loads(pickle.dumps(TransportError(str(outer))))

    assert outer.message == "the reply is wrong: no number @ $.a; try again"
    assert str(outer).count("(see ") == 1
    assert str(again) == f"{outer.message} (see errors.html#transporterror)"


def test_an_error_of_a_users_own_names_the_section_of_its_kind():
    assert OwnError("mine").help_anchor == "errors.html#transportconnectionerror"


def test_others_are_told_what_happened_only():
    """A peer has no use for an anchor of this documentation."""
    assert words(ModelError("no number @ $.a", path="$.a")) == "no number @ $.a"
    assert words(KeyError("a")) == "'a'"


def test_an_error_that_says_nothing_names_nothing():
    assert str(TransportError()) == ""
    assert TransportError().message == ""


def test_a_note_survives():
    error = TransportTimeoutError("late")
    error.__notes__ = ["while booking"]

    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while booking"]


def test_what_a_user_adds_to_an_error_survives():
    error = TransportRemoteError("no")
    error.order = 5  # type: ignore[attr-defined]

    assert pickle.loads(pickle.dumps(error)).order == 5


def test_a_subclass_of_a_users_own_survives():
    error = pickle.loads(pickle.dumps(OwnError("mine", url="http://a")))

    assert (type(error), error.message, error.url) == (OwnError, "mine", "http://a")


class OwnError(TransportConnectionError):
    """As a transport of a user's own may raise."""


def test_catching_transport_errors_does_not_swallow_a_cancel():
    with pytest.raises(CallCancelledError), contextlib.suppress(TransportError):
        raise CallCancelledError("cancelled", reason="enough")


def test_the_documented_builtins_catch():
    """Code written for protolink catches these."""
    caught = []
    for error, builtin in [
        (TransportTimeoutError("x"), TimeoutError),
        (TransportConnectionError("x"), ConnectionError),
        (TransportLimitError("x"), ValueError),
        (TransportRemoteError("x"), RuntimeError),
        (TransportProtocolError("x"), RuntimeError),
        (StreamingNotSupportedError("x"), NotImplementedError),
        (TaskExecutionError("x"), RuntimeError),
        (A2AClientError("x"), RuntimeError),
    ]:
        try:
            raise error
        except builtin as one:
            caught.append(one)

    assert len(caught) == 8


def test_headers_of_an_error_are_its_own():
    given = {"a": "1"}

    error = TransportRemoteError("no", headers=given)
    given["a"] = "2"

    assert error.headers == {"a": "1"}


def test_attempts_are_a_tuple():
    assert TransportError("x", attempts=[EARLIER]).attempts == (EARLIER,)


def test_a_cancel_names_its_call_and_phase():
    error = CallCancelledError("cancelled", reason="r", url="http://a", phase="wait")

    assert (error.reason, error.url, error.phase) == ("r", "http://a", "wait")
