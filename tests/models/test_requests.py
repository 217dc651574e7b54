"""Control requests and their reports: cancel, compact, describe, reset."""

from __future__ import annotations

import pytest

from protolink_sync.models import (
    HistoryCompactionRequest,
    HistoryCompactionResult,
    StateOperationRequest,
    StateOperationResult,
    StateStoreReport,
    TaskCancellationRequest,
)
from tests.models.records import lost


class TestCancellation:
    def test_the_reason_travels_in_the_metadata(self):
        request = TaskCancellationRequest("t", "late", {"by": "me"})

        assert request.to_dict() == {"id": "t", "metadata": {"by": "me", "reason": "late"}}

    def test_a_reason_in_the_metadata_wins(self):
        request = TaskCancellationRequest("t", "late", {"reason": "theirs"})

        assert request.to_dict()["metadata"] == {"reason": "theirs"}

    def test_the_mapping_of_the_caller_is_left_alone(self):
        metadata = {"by": "me"}
        TaskCancellationRequest("t", "late", metadata)

        assert metadata == {"by": "me"}

    @pytest.mark.parametrize("identity", ["", "  ", None])
    def test_a_blank_id_is_refused(self, identity):
        with pytest.raises(ValueError, match="id of the task to cancel is empty"):
            TaskCancellationRequest(identity)

    @pytest.mark.parametrize(
        ("data", "identity", "reason"),
        [
            ({"id": "t"}, "t", None),
            ({"task_id": "t"}, "t", None),
            ({"id": 5, "metadata": None}, 5, None),
            ({"id": "t", "reason": "top"}, "t", "top"),
            ({"id": "t", "reason": None}, "t", None),
            ({"id": "t", "reason": "same", "metadata": {"reason": "same"}}, "t", "same"),
            ({"id": "t", "metadata": {"reason": "inner"}}, "t", "inner"),
            ({"id": "t", "reason": "top", "metadata": {"reason": "inner"}}, "t", "top"),
        ],
    )
    def test_every_form_that_the_peer_reads_is_read(self, data, identity, reason):
        request = TaskCancellationRequest.from_dict(data)

        assert (request.id, request.reason) == (identity, reason)
        assert lost(data, request.to_dict()) == []


class TestCompaction:
    def test_a_request_is_written_with_its_defaults(self):
        assert HistoryCompactionRequest().to_dict() == {
            "strategy": "recent",
            "max_messages": 20,
            "max_tokens": 4000,
            "preserve_recent": 6,
            "summary_max_tokens": 512,
            "session_id": None,
            "metadata": {},
        }

    @pytest.mark.parametrize("kind", [HistoryCompactionRequest, StateOperationRequest])
    def test_an_unknown_strategy_is_refused_before_anything_is_sent(self, kind):
        """Over HTTP the peer would answer a bare 500."""
        with pytest.raises(ValueError, match="'nope'; known: recent, tokens, summary"):
            kind(strategy="nope")

    @pytest.mark.parametrize(
        ("removed", "summary", "changed"), [(0, False, False), (2, False, True), (0, True, True)]
    )
    def test_a_report_tells_whether_anything_changed(self, removed, summary, changed):
        report = HistoryCompactionResult("recent", 5, 5 - removed, removed, 9, 9, summary)

        assert report.changed is report.to_dict()["changed"] is changed
        assert HistoryCompactionResult.from_dict(report.to_dict()) == report

    def test_an_empty_report_is_all_zero(self):
        assert HistoryCompactionResult.from_dict({}) == HistoryCompactionResult(
            "recent", 0, 0, 0, 0, 0
        )

    def test_what_a_peer_says_of_change_is_written_back(self):
        assert HistoryCompactionResult.from_dict({"changed": True}).to_dict()["changed"] is True

    def test_another_strategy_of_a_peer_is_kept_in_its_report(self):
        assert HistoryCompactionResult.from_dict({"strategy": "magic"}).strategy == "magic"


class TestState:
    def test_a_request_is_written_with_its_defaults(self):
        assert StateOperationRequest().to_dict() == {
            "session_id": None,
            "stores": [],
            "include_data": False,
            "strategy": "tokens",
            "max_messages": 20,
            "max_tokens": 4000,
            "preserve_recent": 6,
            "summary_max_tokens": 512,
            "metadata": {},
        }

    @pytest.mark.parametrize(
        ("given", "stores"),
        [
            ("tools", ("tools",)),
            (["tools", "", "flow"], ("tools", "flow")),
            (None, ()),
            ((), ()),
        ],
    )
    def test_stores_are_given_as_one_name_or_several(self, given, stores):
        assert StateOperationRequest(stores=given).stores == stores
        assert StateOperationRequest.from_dict({"stores": given}).stores == stores

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("max_messages", 0),
            ("max_tokens", 0),
            ("preserve_recent", -1),
            ("summary_max_tokens", 0),
        ],
    )
    def test_a_number_that_is_too_small_is_refused(self, name, value):
        with pytest.raises(ValueError, match=f"{name} is {value}, must be at least {value + 1}"):
            StateOperationRequest(**{name: value})
        assert getattr(StateOperationRequest(**{name: value + 1}), name) == value + 1

    @pytest.mark.parametrize("value", ["5", 5.0, True])
    def test_a_number_that_is_none_is_a_type_error(self, value):
        with pytest.raises(TypeError, match="max_tokens is a"):
            StateOperationRequest(max_tokens=value)

    def test_a_report_holds_one_for_each_store(self):
        data = {
            "operation": "describe",
            "stores": [{"name": "tools", "enabled": False, "error": "not enabled", "size": 3}],
            "missing": ["tools"],
            "errors": [{"store": "tools", "message": "m"}],
        }

        result = StateOperationResult.from_dict(data)

        assert result.stores == (
            StateStoreReport("tools", False, error="not enabled", extra={"size": 3}),
        )
        assert (result.missing, result.errors) == (
            ("tools",),
            ({"store": "tools", "message": "m"},),
        )
        assert result.to_dict()["stores"][0]["size"] == 3

    def test_requests_and_reports_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            StateOperationRequest().max_tokens = 1
