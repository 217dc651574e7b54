"""Answers of one type: asked for with a schema, validated, asked for again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from protolink_sync.client._shapes import shape_of
from protolink_sync.errors import ModelError, StructuredResponseError
from protolink_sync.models import Task

__all__ = ["AnswerType", "ask"]

_Answer = TypeVar("_Answer")

# How much of an answer that did not fit is sent back.
_SHOWN_ANSWER = 4000

# Models like to put JSON into a block of Markdown.
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)

_NOTHING: Any = object()


class AnswerType(Generic[_Answer]):
    """A type that answers are read into.

    Args:
        kind: The type.

    Raises:
        TypeError: It has no JSON form.
    """

    def __init__(self, kind: type[_Answer]) -> None:
        self._is_text = kind is str
        self._shape = shape_of(kind)

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        return self._shape.schema

    def read(self, output: Any) -> _Answer:
        """Return an output as the type: JSON values, JSON as text, or text as it is.

        Raises:
            ModelError: It does not fit.
        """
        value: _Answer
        if not isinstance(output, str) or self._is_text:
            value = self._shape.read(output, "$")
            return value
        fenced = _FENCED.fullmatch(output)
        try:
            parsed = json.loads(fenced[1] if fenced else output, parse_constant=_refused)
        except ValueError as error:
            return self._read_text(output, ModelError(f"the answer is no JSON: {error}", path="$"))
        try:
            value = self._shape.read(parsed, "$")
            return value
        except ModelError as error:
            return self._read_text(output, error)

    def _read_text(self, output: str, instead: ModelError) -> _Answer:
        """Return the text itself, where the type takes text."""
        try:
            value: _Answer = self._shape.read(output, "$")
        except ModelError:
            raise instead from None
        return value


def ask(
    run: Callable[[str], Task],
    question: str,
    kind: AnswerType[_Answer],
    max_attempts: int,
    where: str,
) -> _Answer:
    """Return the answer to a question, as a type; see ``AgentPeer.invoke_typed``.

    Args:
        run: Submits a prompt as a new task and returns it as it comes back.
        question: What is asked.
        kind: The type.
        max_attempts: How many tasks may be sent.
        where: Who is asked, for the message of an error.
    """
    schema = json.dumps(kind.schema, ensure_ascii=False)
    first = prompt = f"{question}\n\nAnswer with JSON only, which must fit this schema:\n{schema}"
    attempt = 1
    while True:
        task = run(prompt).raise_for_status()
        output = _output(task, attempt, where)
        try:
            return kind.read(output)
        except ModelError as error:
            if attempt == max_attempts:
                raise StructuredResponseError(
                    f"invoke_typed at {where}: the answer does not fit "
                    f"after {attempt} attempt(s): {error}",
                    task=task,
                    attempts=attempt,
                    validation_error=error.message,
                ) from error
            prompt = f"{first}\n\n{_correction(output, error)}"
        attempt += 1


def _output(task: Task, attempt: int, where: str) -> Any:
    """Return what a task says; one that waits for input, or says nothing, is not asked again."""
    output = task.get_output(_NOTHING)
    if output is _NOTHING:
        output = task.text or _NOTHING
    if not task.is_terminal or output is _NOTHING:
        raise StructuredResponseError(
            f"invoke_typed at {where}: the task came back as {task.state.value!r} "
            f"{'with' if output is not _NOTHING else 'without'} an answer; nothing to validate",
            task=task,
            attempts=attempt,
        )
    return output


def _correction(output: Any, error: ModelError) -> str:
    shown = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return (
        f"This answer was given before, and does not fit:\n{shown[:_SHOWN_ANSWER]}\n"
        f"What is wrong with it: {error.message}\nGive the corrected answer."
    )


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
