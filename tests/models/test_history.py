"""ConversationHistory and its messages."""

from __future__ import annotations

import copy
import datetime

import pytest

from protolink_sync.errors import ModelError
from protolink_sync.models import ConversationHistory, LLMMessage
from protolink_sync.types import LLMMessageRole


def filled(*texts, system=None):
    history = ConversationHistory(system)
    for text in texts:
        history.add_user(text)
    return history


def contents(history):
    return [message.content for message in history]


def test_messages_are_given_as_providers_take_them():
    history = ConversationHistory("be brief")
    history.add_user("add 1 and 2", metadata={"k": 1})
    history.add_tool("3", "add")
    history.add_assistant("It is 3.")

    assert history.messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "add 1 and 2"},
        {"role": "tool", "content": "3", "name": "add"},
        {"role": "assistant", "content": "It is 3."},
    ]
    assert history.to_list()[1]["metadata"] == {"k": 1}


@pytest.mark.parametrize("prompt", [None, ""])
def test_an_empty_system_prompt_adds_nothing(prompt):
    assert len(ConversationHistory(prompt)) == 0


def test_a_raw_message_needs_a_role_only():
    history = ConversationHistory()
    history.add_raw({"role": "assistant", "tool_calls": {"id": "c"}, "refusal": None})

    (data,) = history.to_list()

    assert (data["content"], data["tool_calls"], data["refusal"]) == ("", {"id": "c"}, None)
    with pytest.raises(ModelError, match=r"\$\.role"):
        history.add_raw({"content": "x"})


def test_the_full_form_goes_there_and_back():
    history = filled("a", "b", system="s")

    assert ConversationHistory.from_list(history.to_list()) == history


def test_replacing_keeps_the_object_and_a_fault_replaces_nothing():
    history = filled("a")

    with pytest.raises(ModelError):
        history.replace([{"role": "user", "content": "b"}, {"role": "robot", "content": "c"}])
    assert contents(history) == ["a"]

    history.replace([{"role": "user", "content": "b"}])
    assert contents(history) == ["b"]


def test_the_system_prompt_is_set_in_front():
    history = filled("a")

    history.set_system("one")
    history.set_system("two")

    assert contents(history) == ["two", "a"]
    assert next(iter(history)).role is LLMMessageRole.SYSTEM


def test_resetting_leaves_the_system_prompt_only():
    history = filled("a", "b")
    history.reset_to_system("new")

    assert contents(history) == ["new"]


@pytest.mark.parametrize(
    ("system", "limit", "kept"),
    [
        ("s", 4, ["s", "a", "b", "c"]),
        ("s", 3, ["s", "b", "c"]),
        ("s", 2, ["s", "c"]),
        (None, 3, ["a", "b", "c"]),
        (None, 2, ["b", "c"]),
    ],
)
def test_truncating_keeps_the_newest_and_the_system_prompt(system, limit, kept):
    history = filled("a", "b", "c", system=system)
    history.truncate(limit)

    assert contents(history) == kept


@pytest.mark.parametrize("limit", [1, 0, -5])
def test_truncating_to_less_than_two_is_refused(limit):
    with pytest.raises(ValueError, match="at least 2"):
        filled("a").truncate(limit)


def test_a_copy_is_independent():
    history = filled("a")
    other = history.copy()
    other.add_user("b")
    next(iter(other)).metadata["k"] = 1

    assert contents(history) == ["a"]
    assert next(iter(history)).metadata == {}


def test_histories_are_equal_by_value_and_not_hashable():
    history = filled("a")

    assert history == copy.deepcopy(history) != filled("b")
    assert history != ["a"]
    with pytest.raises(TypeError):
        hash(history)


class TestMessages:
    def test_a_role_may_be_given_as_text(self):
        message = LLMMessage("user", "hi")

        assert message.role is LLMMessageRole.USER
        assert message.to_dict()["role"] == "user"

    def test_an_unknown_role_is_refused(self):
        with pytest.raises(ValueError, match="'robot'; known: system, user, assistant, tool"):
            LLMMessage("robot", "hi")

    def test_a_time_that_was_read_is_written_back_as_it_was(self):
        data = {"role": "user", "content": "hi", "created_at": "2026-01-02T03:04:05.123456789Z"}

        message = LLMMessage.from_dict(data)

        assert message.created_at == datetime.datetime(
            2026, 1, 2, 3, 4, 5, 123456, tzinfo=datetime.timezone.utc
        )
        assert message.to_dict()["created_at"] == data["created_at"]

    def test_one_that_was_read_equals_one_that_was_made(self):
        made = LLMMessage("user", "hi")

        assert LLMMessage.from_dict(made.to_dict()) == made

    def test_a_time_that_was_set_is_written(self):
        message = LLMMessage.from_dict({"role": "user", "content": "", "created_at": "2026-01-02"})
        message.created_at = datetime.datetime(2027, 1, 1, tzinfo=datetime.timezone.utc)

        assert message.to_dict()["created_at"] == "2027-01-01T00:00:00+00:00"

    def test_long_content_is_cut_in_the_repr(self):
        assert len(repr(LLMMessage("user", "x" * 10_000))) < 150
