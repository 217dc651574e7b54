"""Which modules are changed, and which tests must notice it."""

from __future__ import annotations

import ast
import pathlib
import types

import attrs

from tests.mutants.mutations import Mutation, mutations

__all__ = ["TESTS", "Target", "modules", "room_of"]

_PACKAGE = pathlib.Path(__file__).parents[2] / "protolink_sync"

# By room. The last one is all that decides whether a call is sent once more.
_ROOMS = {
    "models": ("models/*.py",),
    "wire": ("wire/*.py",),
    "a2a.wire": ("a2a/wire/*.py",),
    "retry": (
        "transport/_retry.py",
        "transport/_identity.py",
        "transport/_calls.py",
        "specs.py",
        "config.py",
    ),
}
# Of these modules only so much has to do with retries.
_ONLY_IN = {
    "config.py": {"RetryPolicy"},
    "transport/_calls.py": {
        "_context",
        "_send",
        "_retry",
        "_attempt",
        "_authorized",
    },
}

TESTS = (
    "tests/models",
    "tests/wire",
    "tests/a2a/wire",
    "tests/test_config.py",
    "tests/transport/test_retry_decision.py",
    "tests/transport/test_retries.py",
    "tests/transport/test_keys.py",
    "tests/transport/test_credentials.py",
)


def modules() -> list[str]:
    """Return the modules by their paths in the package, room by room."""
    return list(_rooms_by_module())


def room_of(module: str) -> str:
    """Return the room a module is counted in."""
    return _rooms_by_module()[module]


@attrs.frozen
class Target:
    """A module that is changed, as it was when it was read.

    Args:
        module: Its path in the package.
        tree: Its syntax tree.
        changes: What could be changed in that tree.
    """

    module: str
    tree: ast.Module
    changes: list[Mutation]

    @classmethod
    def read(cls, module: str) -> Target:
        """Read a module and find the changes in the part of it that is looked at."""
        tree = ast.parse((_PACKAGE / module).read_text("utf-8"))
        names = _ONLY_IN.get(module)
        found = mutations(tree)
        return cls(
            module,
            tree,
            [m for m in found if names is None or not names.isdisjoint(m.inside.split("."))],
        )

    @property
    def file(self) -> str:
        """Its whole path."""
        return str(_PACKAGE / self.module)

    @property
    def name(self) -> str:
        """The name under which it is imported."""
        parts = ["protolink_sync", *pathlib.PurePath(self.module).with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def changed(self, number: int | None) -> types.CodeType:
        """Make one change, for good, and return the code of the module with it."""
        if number is not None:
            self.changes[number].apply()
        return compile(self.tree, self.file, "exec", dont_inherit=True)


def _rooms_by_module() -> dict[str, str]:
    return {
        path.relative_to(_PACKAGE).as_posix(): room
        for room, patterns in _ROOMS.items()
        for pattern in patterns
        for path in sorted(_PACKAGE.glob(pattern))
    }
