"""Answers of one type: asked for with a schema, validated, asked for again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from protolink_sync.client._shapes import shape_of
from protolink_sync.errors import ModelError, StructuredResponseError
from protolink_sync.models import Task

__all__ = ["AnswerType", "ask"]

_Answer = TypeVar("_Answer")

# How much of an answer that did not fit is sent back.
_SHOWN_ANSWER = 4000

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
        if not isinstance(output, str) or self._is_text:
            return self._fitted(output)
        try:
            return self._fitted(_parsed(output))
        except ModelError as error:
            return self._read_text(output, error)

    def _read_text(self, output: str, instead: ModelError) -> _Answer:
        """Return the text itself, where the type takes text."""
        try:
            return self._fitted(output)
        except ModelError:
            raise instead from None

    def _fitted(self, value: Any) -> _Answer:
        """Return JSON values as the type.

        Raises:
            ModelError: They do not fit; or what makes the type of them cannot.
        """
        try:
            fitted: _Answer = self._shape.read(value, "$")
        except RecursionError:
            raise ModelError("the answer is nested too deeply @ $", path="$") from None
        return fitted


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


def _parsed(text: str) -> Any:
    """Return the JSON values in an answer.

    Raises:
        ModelError: It is no JSON.
    """
    try:
        return json.loads(_unfenced(text), parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ModelError("the answer is nested too deeply @ $", path="$") from None
    except ValueError as error:
        raise ModelError(f"the answer is no JSON: {error}", path="$") from error


def _unfenced(text: str) -> str:
    """Return what stands in a block of Markdown, into which models like to put JSON."""
    first, _, rest = text.strip().partition("\n")
    body, _, last = rest.rpartition("\n")
    is_block = first.rstrip() in ("```", "```json") and last.lstrip() == "```"
    return body if is_block else text


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a float")
    return number


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
