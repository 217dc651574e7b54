"""What an agent does with a task by default: the last item's tool calls and inferences.

Source:
    ProtoLink, Models reference, "Lifecycle"; wire/protolink.md 14, "How the default agent answers".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from typing import Any

from protolink_sync.errors import words
from protolink_sync.models import Artifact, Message, Part, Task, TaskState
from protolink_sync.server.runs import is_cancelled
from protolink_sync.server.tools import Tool

__all__ = ["Steps", "execute", "steps"]

_log = logging.getLogger("protolink_sync.server")

Output = Part | Message | Artifact

# What happens on the way, as kind and value: ``tool`` (its name), ``llm_chunk`` (a text),
# ``llm_final`` (an answer), ``artifact``. At the end the task.
Steps = Generator[tuple[str, Any], None, Task]

# Answers a part of type infer.
Inference = Callable[[Task, Part], Generator[tuple[str, Any], None, Output]]


def execute(work: Steps) -> Task:
    """Go all steps at once, and return the task."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            task: Task = end.value
            return task


def steps(task: Task, tools: Mapping[str, Tool], infer: Inference | None) -> Steps:
    """Carry out what the last message or artifact of a task asks for, and return the task.

    Each output is added as it comes, parts as artifacts of kind ``result``. The task ends as
    failed if one of them is an error, as waiting for input if one says so, else as completed.
    Parts that ask for nothing are left as they are: text above all, unless it came over A2A.

    Args:
        task: The task; one that has ended is returned unchanged.
        tools: What may be called, by name.
        infer: Answers a part of type ``infer``; None if the agent has no model.
    """
    if task.is_terminal:
        return task
    task.begin()
    item = task.get_last_item()
    outputs: list[Output] = []
    for part in list(item.parts) if item is not None else ():
        if is_cancelled():
            return task
        # Over A2A, text is all that a caller has to ask the model with.
        if part.type == "text" and infer is not None and task.metadata.get("a2a_inbound") is True:
            part = Part.infer(part.content)
        if part.type == "tool_call":
            yield "tool", part.as_tool_call().tool_name
            output: Output = _tool_output(part, tools)
        elif part.type == "infer":
            output = _no_llm() if infer is None else (yield from infer(task, part))
        else:
            continue
        outputs.append(output)
        if isinstance(output, Message):
            task.add_message(output)
        else:
            artifact = output if isinstance(output, Artifact) else Artifact(parts=[output])
            task.add_artifact(artifact)
            yield "artifact", artifact
    return _finished(task, outputs)


def _no_llm() -> Part:
    return Part.error("no_llm", "Agent has no LLM but received a infer instruction")


def _tool_output(part: Part, tools: Mapping[str, Tool]) -> Part:
    call = part.as_tool_call()
    tool = tools.get(call.tool_name)
    if tool is None:
        error = _rejection(
            "unknown_tool",
            f"Tool '{call.tool_name}' not found",
            {"available_tools": list(tools)},
            "Choose a registered tool or delegate an inference request.",
        )
        return Part.tool_output(call.call_id, error=error)
    problem = tool.problem(call.args)
    if problem is not None:
        error = _rejection(
            "invalid_arguments",
            f"Tool '{tool.name}' arguments were invalid: {problem}",
            {},
            "Correct args using the tool input schema.",
        )
        return Part.tool_output(call.call_id, error=error)
    try:
        return Part.tool_output(call.call_id, result=tool.call(call.args))
    except Exception as error:
        _log.warning("tool %s failed", tool.name, exc_info=True)
        return Part.tool_output(call.call_id, error={"message": words(error)})


def _rejection(code: str, message: str, details: dict[str, Any], suggestion: str) -> dict[str, Any]:
    return {
        "status": "rejected",
        "changes_made": False,
        "code": code,
        "message": message,
        "details": details,
        "suggestion": suggestion,
    }


def _finished(task: Task, outputs: list[Output]) -> Task:
    if task.is_terminal:  # a tool that has the task ended it
        return task
    parts = [part for output in outputs for part in _parts_of(output)]
    for part in parts:
        error = _error_of(part)
        if error is not None:
            return task.fail(error)
    if any(map(_asks_for_input, parts)):
        return task.require_input()
    return task.update_state(TaskState.COMPLETED)


def _parts_of(output: Output) -> list[Part]:
    return [output] if isinstance(output, Part) else output.parts


def _error_of(part: Part) -> str | None:
    """Return why a part makes its task fail, or None."""
    error = part.content if part.type == "error" else None
    if part.type == "tool_output":
        error = part.as_tool_output().error
    if not error:
        return "unknown error" if part.type == "error" else None
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error)


def _asks_for_input(part: Part) -> bool:
    return (
        part.type == "status"
        and isinstance(part.content, Mapping)
        and part.content.get("state") in ("input-required", "input_required")
    )
