"""Which exchange of a recording answers a call; what a mask hides in it, and what it stands for."""

from __future__ import annotations

import time

import pytest

from protolink_sync import AgentClient
from protolink_sync.models import Message, Task, TaskState
from protolink_sync.testing import FakeAgent, Recorder, ReplayTransport
from protolink_sync.transport import HTTPTransport

NOWHERE = "http://127.0.0.1:1"


def task(text: str) -> Task:
    return Task.create(Message.user(text))


def record(path, answers, tasks, *, mask=(), **settings):
    """Record what an agent answers to tasks; texts are tasks too."""
    with (
        FakeAgent(*answers, url="http://127.0.0.1:0") as agent,
        HTTPTransport(**settings) as transport,
        Recorder(path, mask=mask) as recorder,
    ):
        client = AgentClient(recorder.watch(transport))
        return [client.send_task(agent.url, _made(one)) for one in tasks]


def play(path, tasks):
    with ReplayTransport(path) as replay:
        client = AgentClient(replay)
        return [client.send_task(NOWHERE, _made(one)) for one in tasks]


def _made(one):
    return task(one) if isinstance(one, str) else one


@pytest.mark.parametrize("ids", ["AB", "BA"])
def test_ids_that_are_recorded_tell_which_call_it_is(tmp_path, ids):
    """What was answered for one task is no answer for another."""
    path = tmp_path / "calls.json"
    tasks = {one: Task(one, messages=[Message.user("?")]) for one in "ABC"}
    record(path, ["for A", "for B"], [tasks["A"], tasks["B"]])

    assert [one.text for one in play(path, [tasks[i] for i in ids])] == [f"for {i}" for i in ids]
    with pytest.raises(AssertionError, match=r"\.id is 'A', recorded is 'B'"):
        play(path, [tasks["C"], tasks["A"]])
    with pytest.raises(AssertionError, match=r"\.id is 'B', recorded is 'A'"):
        play(path, [tasks["B"], tasks["B"]])


def test_a_new_id_stands_for_the_same_recorded_one_in_all_calls(tmp_path):
    """Whose task it is was told when it was sent first; the question is the same for both."""
    path = tmp_path / "calls.json"

    def tasks():
        begun = [task("begin one"), task("begin two")]
        return begun, [Task(one.id, messages=[Message.user("and now?")]) for one in begun]

    begun, asked = tasks()
    record(path, ["begun", "begun", "one is done", "two is lost"], [*begun, *asked])

    begun, asked = tasks()
    played = play(path, [*begun, *reversed(asked)])
    assert [one.text for one in played[2:]] == ["two is lost", "one is done"]
    assert [one.id for one in played[2:]] == [one.id for one in reversed(begun)]
    with pytest.raises(AssertionError, match=rf"\.id is '{begun[1].id}', recorded is"):
        play(path, [begun[1], asked[1], asked[1]])
    with pytest.raises(AssertionError, match=r"\.id is 'another', recorded is"):
        play(path, [*begun, Task("another", messages=asked[0].messages)])


def test_a_masked_id_stands_for_each_that_was_masked(tmp_path):
    path = tmp_path / "calls.json"
    sent = [Task(f"ada-{number}", messages=[Message.user("?")]) for number in (1, 2)]
    record(path, ["one", "two"], sent, mask=["ada-1", "ada-2"])

    played = play(path, sent)

    assert [(one.id, one.text) for one in played] == [("ada-1", "one"), ("ada-2", "two")]


def test_what_stands_below_a_telling_name_is_not_written(tmp_path):
    """Numbers, and texts however deep; what a schema or a card says of a secret is none."""
    path = tmp_path / "calls.json"
    described = {
        "properties": {"password": {"type": "string", "title": "To log in", "minLength": 8}},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "clientCredentials": {"tokenUrl": "https://a.test/token", "scopes": {}},
        "cookies": {"enabled": True, "given": None, "text": ""},
    }
    answer = {
        "credentials": {"user": "ada", "Ada Lovelace": "hunter22"},
        "password": 12345678,
        "pin_token": [99887766, 0.5],
        "cookies": {"session": {"all": ["abcd1234"]}, "name": {"text": "wxyz9876"}},
        "described": described,
    }

    [real] = record(path, [answer], ["?"], mask=["Ada Lovelace"])
    [played] = play(path, ["?"])

    assert real.get_output() == answer
    text = path.read_text()
    secrets = ("Ada Lovelace", "hunter22", "12345678", "99887766", "abcd1234", "wxyz9876")
    assert [secret for secret in secrets if secret in text] == []
    assert played.get_output() == {
        "credentials": {"user": "***", "***": "***"},
        "password": "***",
        "pin_token": ["***", "***"],
        "cookies": {"session": {"all": ["***"]}, "name": {"text": "***"}},
        "described": described,
    }


def test_what_a_header_may_tell_is_no_name_and_no_word_of_the_protocol(tmp_path):
    path = tmp_path / "calls.json"
    headers = {"X-Mode": "streaming", "X-App": "assistant", "X-Want": "completed"}
    headers["X-Form"] = "application/json"
    answer = {"capabilities": {"streaming": True}, "said": "streaming", "type": "assistant"}
    sent = task("by streaming")
    sent.add_message(Message.assistant("completed"))

    record(path, [answer], [sent], headers=headers)
    [played] = play(path, [sent])

    assert '"content-type": "application/json"' in path.read_text()
    assert played.get_output() == {**answer, "said": "***"}
    assert played.state is TaskState.COMPLETED
    assert [(one.role, one.text) for one in played.messages[:2]] == [
        ("user", "by ***"),
        ("assistant", "***"),
    ]


def test_what_was_sent_as_it_is_goes_before_what_only_a_mask_stands_for(tmp_path):
    """A wrong answer is worse than none; a header's value, which may be a secret, is masked too."""
    path, other = tmp_path / "calls.json", tmp_path / "other.json"
    named = ["buy for Ada Lovelace", "buy for Bob"]
    record(path, ["for Ada", "for Bob"], named, mask=["Ada Lovelace"])
    headers = {"X-Tenant": "production"}
    sent = ["deploy production", "deploy staging"]
    record(other, ["to all", "to some"], sent, headers=headers)

    assert "Lovelace" not in path.read_text()
    assert "production" not in other.read_text()
    played = play(path, ["buy for Bob", "buy for Eve"])
    assert [one.text for one in played] == ["for Bob", "for Ada"]
    assert [one.text for one in play(other, sent[::-1])] == ["to some", "to all"]


def test_and_so_does_what_a_mask_stands_for_the_least(tmp_path):
    """Where each call has something that is masked."""
    path = tmp_path / "calls.json"

    def tasks(*names):
        made = [task(f"buy for {name}") for name in names]
        for one in made:
            one.metadata["api_key"] = "k-123456"
        return made

    record(path, ["for Ada", "for Bob"], tasks("Ada Lovelace", "Bob"), mask=["Ada Lovelace"])

    played = play(path, tasks("Bob", "Ada Lovelace"))
    assert [one.text for one in played] == ["for Bob", "for Ada"]
    record(path, ["any", "buy", "none"], ["XXXX", "buy XXXX", "buy "], mask=["XXXX"])
    asked = ["buy ", "buy Faust", "sell Faust"]
    assert [one.text for one in play(path, asked)] == ["none", "buy", "any"]


@pytest.mark.parametrize(
    ("sent", "asked", "is_same"),
    [
        ("abXXXXba", "abba", True),
        ("abXXXXba", "ab\nba", True),
        ("abXXXXba", "aba", False),
        ("abXXXXba", "abbac", False),
        ("XXXXbXXXXb", "bb", True),
        ("XXXXbXXXXb", "b", False),
        ("aXXXXbXXXXXXXXcXXXXd", "a-b-c-d", True),
        ("aXXXXbXXXXXXXXcXXXXd", "a-c-b-d", False),
        ("aXXXXbcXXXXcd", "abcd", False),
        ("aXXXXbXXXXbXXXXd", "a-b-b-d", True),
        ("aXXXXbXXXXbXXXXd", "a-b-d", False),
        ("XXXX", "", True),
    ],
)
def test_a_mask_stands_for_any_text_and_the_rest_for_itself(tmp_path, sent, asked, is_same):
    path = tmp_path / "calls.json"
    record(path, ["yes"], [sent], mask=["XXXX"])

    if is_same:
        assert [one.text for one in play(path, [asked])] == ["yes"]
    else:
        with pytest.raises(AssertionError, match="is another, recorded is"):
            play(path, [asked])


def test_many_masks_take_no_time(tmp_path):
    path = tmp_path / "calls.json"
    record(path, ["yes"], [" and ".join(["Adam"] * 14) + "."], mask=["Adam"])

    begun = time.process_time()
    with pytest.raises(AssertionError, match="is another, recorded is"):
        play(path, [" and ".join(["Adam"] * 28) + "!"])

    assert time.process_time() - begun < 1


def test_a_secret_is_not_told_where_the_recorded_one_is_masked(tmp_path):
    """What a failing test says stands in the logs of those who run it."""
    path = tmp_path / "calls.json"
    sent, empty = task("log in with hunter22"), task("log in")
    sent.metadata.update(of={"hunter22": 1}, password="pa55word")
    empty.metadata.update(of=None, password="")
    record(path, ["yes"], [sent], mask=["hunter22"])
    record(tmp_path / "empty.json", ["yes"], [empty])

    def told(file, one):
        with pytest.raises(AssertionError) as caught:
            play(tmp_path / file, [one])
        return str(caught.value)

    assert "content is another, recorded is 'log in with ***'" in told(
        "calls.json", task("hunter22 for the login")
    )
    assert "has other members, recorded are ['***']" in told("calls.json", sent)
    empty.metadata["of"] = {"Password": "hunter22", "at": "http://a/?token=hunter22"}
    words = told("empty.json", empty)
    assert ".of is {'Password': '***', 'at': " in words
    empty.metadata.update(of=None, password="hunter22")
    words += told("empty.json", empty)
    empty.metadata.update(of="http://a/?token=hunter22", password="")
    assert "hunter22" not in words + told("empty.json", empty)
