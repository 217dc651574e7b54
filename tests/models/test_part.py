"""Parts: every constructor, the objects of steering parts, and files."""

from __future__ import annotations

import base64

import pytest

from protolink_sync.models import (
    Artifact,
    Message,
    Part,
    RouteDecision,
    ToolCall,
    ToolOutput,
)

NO_DETAILS = {"reason": None, "confidence": None, "metadata": {}}
ERROR = {"code": "E1", "message": "bad", "retryable": True}
INFER = {"prompt": "p", "user": "u", "output_schema": {"type": "object"}, "metadata": {"m": 1}}


@pytest.mark.parametrize(
    ("part", "kind", "content"),
    [
        (Part.text("t"), "text", "t"),
        (Part.json({"k": [1, None, 2.5]}), "json", {"k": [1, None, 2.5]}),
        (Part.json([1]), "json", [1]),
        (Part.error("E1", "bad", retryable=True), "error", ERROR),
        (Part.warning("careful"), "warning", "careful"),
        (Part.status("input-required"), "status", {"state": "input-required", "message": None}),
        (Part.status("working", "why"), "status", {"state": "working", "message": "why"}),
        (Part.route("k"), "route", {"route_key": "k", **NO_DETAILS}),
        (
            Part.decision("k", reason="r", confidence=0.5, metadata={"a": 1}),
            "decision",
            {"route_key": "k", "reason": "r", "confidence": 0.5, "metadata": {"a": 1}},
        ),
        (Part.infer(), "infer", {}),
        (Part.infer(**INFER), "infer", INFER),
        (Part.infer_output({"x": 1}), "infer_output", {"x": 1}),
        (Part.infer_output(content="x"), "infer_output", "x"),
        (
            Part.tool_call(tool_name="add", args={"a": 1}, call_id="c"),
            "tool_call",
            {"tool_name": "add", "args": {"a": 1}, "call_id": "c"},
        ),
        (
            Part.tool_output(call_id="c", result=[1]),
            "tool_output",
            {"call_id": "c", "result": [1], "error": None},
        ),
        (
            Part.uri("https://x.test/a", "image/png", "a.png"),
            "uri",
            {"url": "https://x.test/a", "filename": "a.png", "mediaType": "image/png"},
        ),
        (Part.uri("https://x.test/a"), "uri", {"url": "https://x.test/a"}),
        (
            Part.bytes(b"\x00\x01\xff\xfb", "image/png", filename="a", metadata={"k": 1}),
            "bytes",
            {"raw": "AAH/+w==", "filename": "a", "mediaType": "image/png", "metadata": {"k": 1}},
        ),
    ],
)
def test_a_constructor_makes_the_form_of_the_wire(part, kind, content):
    data = part.to_dict()

    assert data == {"type": kind, "content": content}
    assert Part.from_dict(data) == part


def test_ids_of_calls_are_made_and_differ():
    one, two = Part.tool_call("add").content, Part.tool_call("add").content

    assert one.call_id != two.call_id
    assert one.args == {}


def test_a_missing_content_reads_as_none():
    assert Part.from_dict({"type": "text"}).to_dict() == {"type": "text", "content": None}


class TestSteeringParts:
    @pytest.mark.parametrize(
        ("kind", "read"),
        [
            ("tool_call", ToolCall),
            ("tool_output", ToolOutput),
            ("route", RouteDecision),
            ("decision", RouteDecision),
        ],
    )
    @pytest.mark.parametrize("content", ["plain text", None, [1], 5])
    def test_content_that_is_no_object_is_kept(self, kind, read, content):
        assert Part.from_dict({"type": kind, "content": content}).content == content

    @pytest.mark.parametrize("name", ["route_key", "route", "key"])
    def test_a_decision_is_read_under_all_its_names_and_written_back(self, name):
        data = {"type": "decision", "content": {name: "yes", "weight": 2}}

        part = Part.from_dict(data)

        assert part.as_route_decision().route_key == "yes"
        back = part.to_dict()["content"]
        assert (back["route_key"], back[name], back["weight"]) == ("yes", "yes", 2)

    def test_unknown_members_of_a_tool_call_are_kept(self):
        content = {"tool_name": "add", "args": None, "call_id": 7, "trace": {"a": 1}}

        call = Part.from_dict({"type": "tool_call", "content": content}).as_tool_call()

        assert (call.args, call.call_id, call.extra) == ({}, 7, {"trace": {"a": 1}})

    def test_an_object_given_by_hand_is_understood(self):
        assert Part("tool_call", {"tool_name": "add"}).as_tool_call().tool_name == "add"
        assert Part("route", {"key": "k"}).as_route_decision().route_key == "k"

    @pytest.mark.parametrize("method", ["as_tool_call", "as_tool_output", "as_route_decision"])
    def test_the_wrong_type_is_a_value_error(self, method):
        with pytest.raises(ValueError, match=r"expected a part of type .*, got 'text'"):
            getattr(Part.text("t"), method)()

    def test_content_of_the_wrong_type_is_a_type_error(self):
        with pytest.raises(TypeError, match="content of a tool_call part is a str"):
            Part("tool_call", "add").as_tool_call()

    def test_an_object_that_names_no_tool_is_a_value_error(self):
        with pytest.raises(ValueError, match=r"required member missing @ \$\.tool_name"):
            Part("tool_call", {}).as_tool_call()


class TestFiles:
    def test_a_file_goes_there_and_back(self, tmp_path):
        source = tmp_path / "chart.png"
        source.write_bytes(bytes(range(256)))

        part = Part.from_dict(Part.file(source).to_dict())

        assert part.type == "file"
        assert part.content["filename"] == "chart.png"
        assert part.content["mediaType"] == "image/png"
        assert part.save(tmp_path / "copy").read_bytes() == bytes(range(256))

    def test_a_file_of_unknown_kind_is_bytes(self, tmp_path):
        source = tmp_path / "data.qqq"
        source.write_bytes(b"")

        assert Part.file(source).content["mediaType"] == "application/octet-stream"
        assert Part.file(source, "text/x").content["mediaType"] == "text/x"
        assert Part.file(source).as_bytes() == b""

    def test_a_file_that_is_not_there_says_so(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Part.file(tmp_path / "none")

    def test_saving_into_a_directory_takes_the_name_of_the_part(self, tmp_path):
        part = Part.bytes(b"x", filename="a.txt")

        assert part.save(tmp_path) == tmp_path / "a.txt"

    @pytest.mark.parametrize(
        "name", ["../../evil", "/etc/evil", "..\\..\\evil", "C:\\evil", "C:evil", "a/../evil"]
    )
    def test_a_name_of_a_peer_never_leads_out_of_the_directory(self, tmp_path, name):
        saved = Part.bytes(b"x", filename=name).save(tmp_path)

        assert saved.resolve() == (tmp_path / "evil").resolve()

    @pytest.mark.parametrize("name", [None, "", "..", "a/..", ".", "a\0b", 5])
    def test_without_a_usable_name_a_directory_is_refused(self, tmp_path, name):
        part = Part("bytes", {"raw": "eA==", "filename": name})

        with pytest.raises(ValueError, match="give the path of a file"):
            part.save(tmp_path)

    def test_a_name_of_a_peer_replaces_nothing(self, tmp_path):
        (tmp_path / "a.txt").write_text("mine")

        with pytest.raises(FileExistsError):
            Part.bytes(b"x", filename="a.txt").save(tmp_path)
        assert (tmp_path / "a.txt").read_text() == "mine"

    def test_a_name_of_the_caller_does(self, tmp_path):
        (tmp_path / "a.txt").write_text("mine")

        Part.bytes(b"x").save(tmp_path / "a.txt")

        assert (tmp_path / "a.txt").read_text() == "x"

    @pytest.mark.parametrize("raw", ["AAH/+w==", "AAH/+w", "AAH_-w", "AAH/\r\n+w=="])
    def test_every_usual_form_of_base64_is_read(self, raw):
        assert Part("bytes", {"raw": raw}).as_bytes() == b"\x00\x01\xff\xfb"

    @pytest.mark.parametrize("raw", ["AAH*", "A", "ä"])
    def test_broken_base64_is_an_error_and_no_wrong_bytes(self, raw):
        with pytest.raises(ValueError, match=r"not base64: .* @ \$\.content\.raw"):
            Part("bytes", {"raw": raw}).as_bytes()

    def test_a_uri_is_not_fetched(self):
        with pytest.raises(ValueError, match="its 'url' is not fetched"):
            Part.uri("https://x.test/a").as_bytes()

    def test_other_parts_carry_no_bytes(self):
        with pytest.raises(ValueError, match="carries no bytes"):
            Part.text("t").as_bytes()

    def test_text_is_no_bytes(self):
        with pytest.raises(TypeError, match=r"for text use Part\.text"):
            Part.bytes("text")

    def test_the_base64_is_that_of_the_standard(self):
        data = bytes(range(256)) * 3

        assert Part.bytes(data).content["raw"] == base64.b64encode(data).decode()


class TestMessages:
    @pytest.mark.parametrize("role", ["user", "agent", "assistant"])
    def test_one_is_made_from_text(self, role):
        message = getattr(Message, role)("hi")

        assert (message.role, message.parts) == (role, [Part.text("hi")])

    def test_one_is_made_for_each_kind_of_request(self):
        assert Message.infer(prompt="p").parts == [Part.infer(prompt="p")]
        assert Message.tool_call("add", {"a": 1}, "c").parts == [
            Part.tool_call("add", {"a": 1}, "c")
        ]
        assert Message.route("k", reason="r").parts == [Part.route("k", reason="r")]
        assert [Message.infer().role, Message.tool_call("t").role] == ["user"] * 2
        assert Message.route("k").role == "agent"

    def test_parts_are_added_in_order(self):
        message = Message().add_text("a").add_part(Part.json(1)).add_text("b")

        assert [part.type for part in message.parts] == ["text", "json", "text"]
        assert message.text == "ab"


def test_an_artifact_is_filled_step_by_step():
    artifact = Artifact(kind="diagnostic").add_text("a").add_part(Part.json(1)).for_action("x")

    assert artifact.text == "a"
    assert list(artifact.to_dict()) == [
        "id",
        "parts",
        "metadata",
        "timestamp",
        "kind",
        "name",
        "uri",
        "media_type",
        "action_id",
    ]
    assert artifact.to_dict()["action_id"] == "x"


def test_documented_fields_of_an_artifact_are_positional_in_their_order():
    artifact = Artifact("i", [], {"m": 1}, "t", "preview", "n", "u", "text/plain", "a")

    assert (artifact.kind, artifact.name, artifact.uri) == ("preview", "n", "u")
    assert (artifact.media_type, artifact.action_id) == ("text/plain", "a")
