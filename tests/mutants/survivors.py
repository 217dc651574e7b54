"""Changes that no test notices, and why none has to: ``survivors.json``, by module.

The reasons are a first sorting, by function; none was proved. Each change has the line where it
stood when it was looked at, the function or class around it, and the reason. The line is for
people: a change is known by the other two.
"""

from __future__ import annotations

import functools
import json
import pathlib

from tests.mutants.targets import Target

__all__ = ["outdated", "why_it_may_survive"]

_FILE = pathlib.Path(__file__).with_name("survivors.json")


@functools.cache
def _reasons() -> dict[tuple[str, str, str], str]:
    return {
        (module, one["inside"], one["change"]): one["why"]
        for module, examined in json.loads(_FILE.read_text("utf-8")).items()
        for one in examined
    }


def why_it_may_survive(module: str, inside: str, change: str) -> str | None:
    """Return the reason that was noted for one change of a module, or None."""
    return _reasons().get((module, inside, change))


def outdated(targets: list[Target]) -> list[tuple[str, str, str]]:
    """Return what is noted of these modules and is no change of theirs any more."""
    read = {target.module for target in targets}
    known = {
        (target.module, change.inside, change.text)
        for target in targets
        for change in target.changes
    }
    return [one for one in _reasons() if one[0] in read and one not in known]
