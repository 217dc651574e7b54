"""The answer in a stream of events, as text and as it comes."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["AnswerText", "chunk_of"]

# How the output of a model begins that is an action and no prose: as it is, or in a code block.
_ACTION = "{"
_FENCE = "```"


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

    Whether prose is the answer or a remark before it ("Let me look that up.") shows only later,
    and what was given cannot be taken back. So the answer goes on from what was given where it
    begins with that; else it follows whole, on a line of its own.

    Source:
        wire/protolink.md 15, ``llm_chunk`` and ``llm_final``; ProtoLink 0.8.3, ``LLM.infer``.
    """

    def __init__(self) -> None:
        self._step: Any = None
        # What came of a step before it is clear whether it is prose; None once it is.
        self._begin: str | None = ""
        self._is_held = False
        # The prose of this step, of all steps since the last answer, and all that was given.
        self._prose: list[str] = []
        self._since: list[str] = []
        self._given: list[str] = []
        # Whether the last thing given was a whole answer.
        self._is_answered = False

    def see(self, event: Any) -> str:
        """Return what an event adds to the text, or an empty text."""
        piece = chunk_of(event)
        if piece is not None:
            return self._piece(event.get("step"), piece)
        if (
            isinstance(event, dict)
            and event.get("type") == "task_llm_stream"
            and event.get("llm_event_type") == "llm_final"
        ):
            return self._final(event.get("content"))
        return ""

    def rest(self, answer: str) -> str:
        """Return what the text lacks of the answer of a finished task."""
        # After several answers the task has the last one.
        is_told = self._is_answered or "".join(self._given).rstrip().endswith(answer.rstrip())
        return "" if is_told and not self._is_held else self._final(answer)

    def _piece(self, step: Any, piece: str) -> str:
        if step != self._step:
            self._begin_step(step)
        if self._is_held:
            return ""
        if self._begin is not None:
            self._begin += piece
            begin = self._begin.lstrip()
            if not begin or (len(begin) < len(_FENCE) and _FENCE.startswith(begin)):
                return ""
            self._is_held = begin.startswith((_ACTION, _FENCE))
            piece, self._begin = self._begin, None
            if self._is_held:
                return ""
        is_new = not self._prose
        self._is_answered = False
        self._prose.append(piece)
        self._since.append(piece)
        return self._give(piece, apart=is_new)

    def _begin_step(self, step: Any) -> None:
        self._step, self._begin, self._is_held, self._prose = step, "", False, []

    def _final(self, content: Any) -> str:
        if content is None:
            content = ""  # as in Task.text: there is no answer
        answer = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        told = ["".join(self._since), "".join(self._prose)]
        self._begin_step(None)
        self._since, self._is_answered = [], True
        for given in told:
            if given and answer.startswith(given):
                return self._give(answer[len(given) :])
            if given.strip() and given.strip() == answer.strip():
                return ""
        return self._give(answer, apart=True)

    def _give(self, text: str, *, apart: bool = False) -> str:
        """Return a text that is given; apart from what was given before, if that is asked for."""
        if apart and text and self._given and not self._given[-1].endswith("\n"):
            text = f"\n{text}"
        if text:
            self._given.append(text)
        return text
