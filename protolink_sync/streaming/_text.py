"""The answer in a stream of events, as text and as it comes."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["AnswerText", "chunk_of"]


def chunk_of(event: Any) -> str | None:
    """Return the piece of model output in an event, if it is one."""
    if (
        isinstance(event, dict)
        and event.get("type") == "task_llm_stream"
        and event.get("llm_event_type") in ("llm_chunk", None)
    ):
        content = event.get("content")
        if isinstance(content, str) and content:
            return content
    return None


class AnswerText:
    """Pieces of prose at once; a step that begins as a JSON object is replaced by its answer.

    ProtoLink's default engine has the model answer with a JSON action, piece by piece; what a
    reader wants is the text inside, which comes in one piece in the event ``llm_final``.

    Source:
        wire/protolink.md 15, ``llm_chunk`` and ``llm_final``.
    """

    def __init__(self) -> None:
        self._step: Any = None
        self._begin = ""
        self._is_prose = False
        self._given = ""
        self._anything = False

    def see(self, event: Any) -> str:
        """Return what an event adds to the answer, or an empty text."""
        piece = chunk_of(event)
        if piece is not None:
            return self._give(self._piece(event.get("step"), piece))
        if (
            isinstance(event, dict)
            and event.get("type") == "task_llm_stream"
            and event.get("llm_event_type") == "llm_final"
        ):
            return self._give(self._final(event.get("content")))
        return ""

    def rest(self, answer: str) -> str:
        """Return the answer of a finished task, unless the events have brought it already."""
        # A step that was held back and never replaced is in the task alone.
        held = bool(self._begin) and not self._is_prose
        return answer if held or not self._anything else ""

    def _piece(self, step: Any, piece: str) -> str:
        if step != self._step:
            self._step, self._begin, self._is_prose, self._given = step, "", False, ""
        if self._is_prose:
            self._given += piece
            return piece
        self._begin += piece
        first = self._begin.lstrip()[:1]
        if not first or first == "{":
            return ""
        self._is_prose = True
        self._given = self._begin
        return self._begin

    def _final(self, content: Any) -> str:
        answer = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        given, self._given = self._given, ""
        self._step, self._begin, self._is_prose = None, "", False
        if answer.startswith(given):
            return answer[len(given) :]
        return "" if given.strip() == answer.strip() else answer

    def _give(self, text: str) -> str:
        self._anything = self._anything or bool(text)
        return text
