"""Hold the picture of the rooms: who may import whom, and which room may use what.

A module's room is its first folder (or file) in the package; ``a2a`` has two rooms. The public
faces ``protolink_sync`` and ``protolink_sync.a2a`` only list names and belong to no room.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping

import attrs
import pytest

import protolink_sync

PACKAGE = "protolink_sync"

MAY_IMPORT = {
    "errors": "",
    "types": "",
    "_threads": "",
    "_kept_errors": "errors",
    "_deadline": "errors _threads",
    "config": "errors",
    "security": "errors",
    "_display": "",
    "models": "errors types _display",
    "specs": "errors models types",
    "wire": "errors models specs",
    "a2a.wire": "errors models",
    "streaming": "errors _deadline _threads _kept_errors models _display",
    "server": "errors types config security _deadline models specs wire a2a.wire streaming",
    "transport": (
        "errors types config security _deadline _threads models specs wire streaming server"
    ),
    "a2a.client": (
        "errors config security _deadline _kept_errors models specs wire streaming transport "
        "a2a.wire"
    ),
    "client": (
        "errors types config security _deadline _threads models specs streaming transport "
        "a2a.wire a2a.client _display"
    ),
    "aio": "errors models _deadline _threads streaming client a2a.client",
    "testing": "errors config models wire streaming transport server client",
    "cli": "*",
}

# One number without any import; every room may name it.
VERSION = "_version"

# The faces re-export; they are for users, and no room imports them.
FACES = {"": "*", "a2a": "a2a.wire a2a.client"}

# The properties that return the asynchronous shim, and nothing else: inside a function, or under
# TYPE_CHECKING for what they are annotated with.
UPWARD = {("client", "aio"), ("a2a.client", "aio")}

# attrs is how values are written in every room (style.md 6).
EVERYWHERE = {"attr", "attrs"}

# library -> the rooms that may use it, and how many modules of the package may: an optional or
# heavy one is imported in the one module that needs it.
ONE_MODULE = {
    "cattrs": "models",
    "sseclient": "wire",
    "requests": "transport",
    "urllib3": "transport",
    "websocket": "transport",
    "websockets": "transport",
    "grpc": "transport",
    "tenacity": "transport",
    "orjson": "wire models",
    "msgspec": "wire models",
    "opentelemetry": "transport",
    "pytest": "testing",
    "click": "cli",
    "rich": "cli _display",
}
FIXED_MODULE = {
    "cattrs": "models._converter",
    "pytest": "testing.plugin",
    "sseclient": "wire.sse",
}
TOGETHER = {"urllib3": "requests"}  # one subject, one module
# One subject in several modules: the connections, the environment and the transport of HTTP; the
# commands.
SUBJECT = {
    "rich": {"cli._output", "_display._bars"},
    "requests": {"transport.http", "transport._connections", "transport._environment"},
    "click": {
        "cli._a2a",
        "cli._app",
        "cli._doctor",
        "cli._registry",
        "cli._serve",
        "cli._settings",
        "cli._state",
        "cli._tasks",
    },
}

_THREADS_AND_SOCKETS = (
    "_socket _thread asyncio concurrent multiprocessing select selectors socket socketserver "
    "threading"
)
NEVER = {
    "errors": _THREADS_AND_SOCKETS,
    "config": _THREADS_AND_SOCKETS,
    "security": _THREADS_AND_SOCKETS,
    "models": _THREADS_AND_SOCKETS,
    "wire": "socket ssl time threading requests " + _THREADS_AND_SOCKETS,
    "a2a.wire": "ssl requests " + _THREADS_AND_SOCKETS,
    "streaming": "requests socket ssl",
}

# server runs `async def` handlers on a private loop.
ASYNCIO = {"aio", "server"}

CONCRETE_TRANSPORTS = {
    "HTTPTransport",
    "SSEJSONRPCTransport",
    "WebSocketTransport",
    "GRPCTransport",
    "RuntimeTransport",
}
TRANSPORT_MODULES = {"http", "sse", "websocket", "grpc", "runtime"}
KNOWS_NO_CONCRETE_TRANSPORT = {"a2a.wire", "a2a.client", "client"}


@attrs.frozen
class Import:
    """One imported module; ``name`` is what is taken from it, if anything."""

    module: str
    name: str
    line: int
    in_function: bool


def room_of(module: str) -> str:
    """Return the room of a dotted module name without the package: ``a2a.wire.card`` etc."""
    first, _, rest = module.partition(".")
    if first == "a2a" and rest:
        return f"a2a.{rest.partition('.')[0]}"
    return "cli" if first == "__main__" else first


def imports_of(module: str, is_package: bool, source: str) -> Iterator[Import]:
    """Read every form of import; relative ones are resolved, ``if TYPE_CHECKING`` counts."""

    def walk(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = in_function or isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                inside = True
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, "", child.lineno, inside)
            elif isinstance(child, ast.ImportFrom):
                origin = child.module or ""
                if child.level:
                    here = [PACKAGE, *module.split(".")] if module else [PACKAGE]
                    up = child.level - is_package
                    base = here[: len(here) - up]
                    origin = ".".join([*base, *filter(None, [child.module])])
                for alias in child.names:
                    yield Import(origin, alias.name, child.lineno, inside)
            elif isinstance(child, ast.Call) and child.args:
                called = ast.unparse(child.func).rpartition(".")[2]
                first = child.args[0]
                if called in {"import_module", "__import__"} and isinstance(first, ast.Constant):
                    yield Import(str(first.value), "", child.lineno, inside)
            yield from walk(child, inside)

    yield from walk(ast.parse(source), False)


def violations(files: Mapping[str, str]) -> list[str]:
    """Return what the sources (path in the package -> text) do against the picture."""
    found: list[str] = []
    users: dict[str, set[str]] = defaultdict(set)
    for path, source in sorted(files.items()):
        parts = pathlib.PurePosixPath(path).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        room = room_of(module)
        if room == VERSION:
            continue
        if room not in MAY_IMPORT and module not in FACES:
            found.append(f"{path}: room {room!r} is not in MAY_IMPORT")
            continue
        for one in imports_of(module, is_package, source):
            top = one.module.partition(".")[0]
            if top == PACKAGE:
                problem = _between_rooms(module, room, one, files)
            else:
                problem = _from_outside(module, room, top)
                if top in ONE_MODULE:
                    users[TOGETHER.get(top, top)].add(module)
            if problem:
                found.append(f"{path}:{one.line}: {problem}")
    for library, modules in users.items():
        if len(modules) > 1 and not modules <= SUBJECT.get(library, set()):
            found.append(f"{library} is for one module, not for {', '.join(sorted(modules))}")
    return found


def _between_rooms(module: str, room: str, one: Import, files: Mapping[str, str]) -> str | None:
    target = one.module.partition(".")[2]
    # `from protolink_sync import wire` and `from protolink_sync.a2a import wire` name a module.
    if target in FACES and one.name:
        inner = f"{target}.{one.name}".lstrip(".")
        as_path = inner.replace(".", "/")
        is_module = {f"{as_path}.py", f"{as_path}/__init__.py"} & files.keys()
        if is_module or room_of(inner) in MAY_IMPORT:
            target = inner
    to = room_of(target)
    if to in {room, VERSION}:
        return None
    if module in FACES and FACES[module] == "*":
        return None
    if target in FACES:
        if room == "cli":
            return None
        return f"{PACKAGE}{'.' * bool(target)}{target} is a face for users; name the room"
    if to not in MAY_IMPORT:
        return f"imports the unknown room {to!r}"
    allowed = FACES.get(module, MAY_IMPORT.get(room, ""))
    if allowed != "*" and to not in allowed.split():
        if (room, to) not in UPWARD:
            return f"{room or PACKAGE} may not import {to}"
        if not one.in_function:
            return f"{room} may import {to} inside a function only"
    if target != to and room != "cli" and module not in FACES:
        return f"names the inner module {target}; import from {PACKAGE}.{to}"
    if (
        room in KNOWS_NO_CONCRETE_TRANSPORT
        and to == "transport"
        and one.name in CONCRETE_TRANSPORTS | TRANSPORT_MODULES
    ):
        return f"{room} knows no concrete transport, {one.name} is one"
    return None


def _from_outside(module: str, room: str, top: str) -> str | None:
    if top == "asyncio" and room not in ASYNCIO:
        return f"asyncio is for {' and '.join(sorted(ASYNCIO))} only"
    if top in NEVER.get(room, "").split():
        return f"{room} never uses {top}"
    if top in sys.stdlib_module_names or top in EVERYWHERE:
        return None
    if room not in ONE_MODULE.get(top, "").split():
        return f"{room or PACKAGE} may not use {top}"
    if FIXED_MODULE.get(top, module) != module:
        return f"{top} is for {FIXED_MODULE[top]} only"
    return None


def package_files() -> dict[str, str]:
    root = pathlib.Path(protolink_sync.__path__[0])
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*.py")
    }


def test_the_package_keeps_the_picture():
    assert violations(package_files()) == []


def test_the_picture_has_no_circle():
    seen: set[str] = set()
    rooms = dict(MAY_IMPORT, cli=" ".join(set(MAY_IMPORT) - {"cli"}))

    while rooms:
        free = {room for room, below in rooms.items() if seen.issuperset(below.split())}
        assert free, f"these rooms import each other: {sorted(rooms)}"
        seen |= free
        rooms = {room: below for room, below in rooms.items() if room not in free}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("models/task.py", "from protolink_sync.errors import ModelError"),
        ("models/task.py", "from protolink_sync.models.part import Part"),
        ("models/task.py", "from .part import Part"),
        ("models/_converter.py", "import cattrs.gen"),
        ("transport/base.py", "from protolink_sync import errors, models"),
        ("transport/http.py", "import requests, urllib3.exceptions, socket"),
        ("transport/http.py", "from protolink_sync._version import __version__"),
        ("server/host.py", "import asyncio"),
        ("client/agent.py", "def aio(self):\n    from protolink_sync.aio import AsyncAgentClient"),
        (
            "client/agent.py",
            "if TYPE_CHECKING:\n    from protolink_sync.aio import AsyncAgentClient",
        ),
        ("a2a/client/adapter.py", "from protolink_sync.a2a.wire import Task"),
        ("a2a/__init__.py", "from protolink_sync.a2a.client.client import A2AClient"),
        ("__init__.py", "from protolink_sync.client import AgentClient"),
        ("__main__.py", "import click\nfrom protolink_sync import connect"),
    ],
)
def test_what_the_picture_allows_passes(path, source):
    assert violations({path: source}) == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        # every form of import, upwards
        ("models/task.py", "import protolink_sync.wire", "models may not import wire"),
        ("models/task.py", "import protolink_sync.wire as w", "models may not import wire"),
        ("models/task.py", "import os, protolink_sync.wire", "models may not import wire"),
        ("models/task.py", "from protolink_sync.wire import x", "models may not import wire"),
        ("models/task.py", "from protolink_sync.wire import *", "models may not import wire"),
        ("models/task.py", "from protolink_sync import wire", "models may not import wire"),
        ("models/task.py", "from ..wire import x", "models may not import wire"),
        ("models/task.py", "from .. import wire", "models may not import wire"),
        ("models/__init__.py", "from ..wire import x", "models may not import wire"),
        ("models/deep/inner.py", "from ...wire.http import x", "models may not import wire"),
        ("errors.py", "from .wire import x", "errors may not import wire"),
        ("errors.py", "from . import wire", "errors may not import wire"),
        ("models/task.py", "def f():\n    import protolink_sync.wire", "may not import wire"),
        ("models/task.py", "try:\n    import protolink_sync.wire\nexcept E: 0", "may not import"),
        ("models/task.py", "if TYPE_CHECKING:\n    import protolink_sync.wire", "may not import"),
        ("models/task.py", "import_module('protolink_sync.wire')", "may not import wire"),
        ("models/task.py", "importlib.import_module('protolink_sync.wire')", "may not import"),
        ("models/task.py", "__import__('protolink_sync.wire')", "may not import wire"),
        # sideways, to the faces, to inner modules
        ("config.py", "from protolink_sync.security import TLSConfig", "may not import security"),
        (
            "a2a/wire/card.py",
            "from protolink_sync.a2a.client import x",
            "may not import a2a.client",
        ),
        ("a2a/wire/card.py", "from ..client import x", "may not import a2a.client"),
        ("transport/base.py", "from protolink_sync import Task", "is a face for users"),
        ("transport/base.py", "import protolink_sync", "is a face for users"),
        ("client/agent.py", "from protolink_sync.a2a import A2AClient", "is a face for users"),
        ("transport/http.py", "from protolink_sync.models.task import Task", "inner module"),
        ("a2a/__init__.py", "from protolink_sync.transport import x", "may not import transport"),
        # unknown rooms
        ("utils.py", "", "room 'utils' is not in MAY_IMPORT"),
        ("a2a/server/app.py", "", "room 'a2a.server' is not in MAY_IMPORT"),
        ("transport/http.py", "from protolink_sync.utils import x", "unknown room 'utils'"),
        # the shim
        ("client/agent.py", "from protolink_sync.aio import x", "inside a function only"),
        ("transport/http.py", "def f():\n    import protolink_sync.aio", "may not import aio"),
        ("client/agent.py", "import asyncio", "asyncio is for aio and server only"),
        ("_deadline.py", "from asyncio import run", "asyncio is for aio and server only"),
        # libraries
        ("models/task.py", "import cattrs", "cattrs is for models._converter only"),
        ("wire/http.py", "import sseclient", "sseclient is for wire.sse only"),
        ("wire/http.py", "import requests", "wire never uses requests"),
        ("wire/sse.py", "import time", "wire never uses time"),
        ("wire/sse.py", "import ssl", "wire never uses ssl"),
        ("models/task.py", "import threading", "models never uses threading"),
        ("security.py", "import socket", "security never uses socket"),
        ("streaming/relay.py", "import requests", "streaming never uses requests"),
        ("streaming/relay.py", "from protolink_sync.wire import x", "may not import wire"),
        ("client/agent.py", "import tenacity", "client may not use tenacity"),
        ("aio/client.py", "import anyio", "aio may not use anyio"),
        ("server/wsgi.py", "import flask", "server may not use flask"),
        ("errors.py", "import requests", "errors may not use requests"),
        ("__init__.py", "import grpc", "protolink_sync may not use grpc"),
        ("client/agent.py", "from protolink_sync.transport import HTTPTransport", "no concrete"),
        ("client/agent.py", "from protolink_sync.transport.http import x", "inner module"),
        ("a2a/client/client.py", "from protolink_sync.transport import http", "no concrete"),
    ],
)
def test_a_planted_violation_is_found(path, source, expected):
    (problem,) = violations({path: source})

    assert expected in problem


def test_a_library_in_two_modules_is_found():
    files = {"transport/http.py": "import requests", "transport/sse.py": "import urllib3"}

    assert violations(files) == [
        "requests is for one module, not for transport.http, transport.sse"
    ]
