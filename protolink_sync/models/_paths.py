"""JSON paths, as they stand in messages: ``$.messages[0].parts``."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Path", "join", "render"]

Path: TypeAlias = "tuple[Path, str | int] | None"
"""A place in a JSON value: the place around it and the step from there; None is the root.

A step costs one tuple; the text is made only when there is an error to report.
"""


def join(path: str, step: str | int) -> str:
    """Return the path one step further in.

    >>> join(join("$.messages", 0), "content type")
    '$.messages[0]["content type"]'
    """
    if isinstance(step, int):
        return f"{path}[{step}]"
    if step.isidentifier():
        return f"{path}.{step}"
    quoted = step if len(step) <= 60 else step[:59] + "…"
    return f'{path}["{quoted}"]'


def render(path: Path, root: str = "$") -> str:
    """Return the text of a path; of a very deep one its beginning and its end."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    steps.reverse()
    if len(steps) > 40:
        steps[20:-20] = ["…"]
    text = root
    for step in steps:
        text = join(text, step)
    return text
