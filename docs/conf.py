"""Settings of Sphinx. Build with ``sphinx-build -W -n -b html docs docs/_build``."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
if (ROOT / "protolink_sync").is_dir():
    sys.path.insert(0, str(ROOT))

from protolink_sync import __version__  # noqa: E402

project = "protolink_sync"
author = "the protolink_sync authors"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
default_role = "code"
highlight_language = "none"
smartquotes_action = "D"  # dashes; quotes stay as they are written

html_theme = "furo"
html_title = f"protolink_sync {release}"
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["page.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110

# The examples of a docstring use the names of their module.
doctest_global_setup = """
from protolink_sync import *
from protolink_sync.server import *
from protolink_sync.testing import *
from protolink_sync.a2a import A2AEventStream, PushReceiver, SchemeCredentials
"""

napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Source"]

# The standard library is not linked: building needs no network. Private names are no pages.
nitpick_ignore_regex = [
    ("py:.*", r"(collections\.abc|datetime|enum|os|pathlib|threading|types)\..*"),
    ("py:.*", r"(protolink_sync\..*\.)?_\w+"),
    # Where a value stands in a document that is read: for the readers of A2A among themselves.
    ("py:class", r"Place"),
]


def _resolve(app: Any, env: Any, node: Any, child: Any) -> Any:
    """Link a name that a docstring gives without its module.

    Docstrings say ``Message``, the class is documented as ``protolink_sync.models.Message``. Only a
    name that one documented object has is linked; any other is reported as missing.
    """
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].removeprefix("protolink_sync.")
    name = _documented(env, wanted)
    if name is None and node["reftype"] == "attr":
        name = _class_with_field(env, wanted, node.get("py:class"))
    if name is None:
        return None
    kind = env.get_domain("py").objects[name].objtype
    return env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, kind, name, node, child
    )


def _documented(env: Any, name: str) -> str | None:
    """Return the whole name of the one documented object with this name, if there is one."""
    found = {
        known
        for known, entry in env.get_domain("py").objects.items()
        if not entry.aliased and f".{known}".endswith(f".{name}")
    }
    return found.pop() if len(found) == 1 else None


def _class_with_field(env: Any, name: str, inside: str | None) -> str | None:
    """Return the class that a field belongs to: fields are described with their class."""
    owner, _, field = name.rpartition(".")
    owner = owner or inside or ""
    known = _documented(env, owner.removeprefix("protolink_sync."))
    if known is None:
        return None
    module, _, cls = known.rpartition(".")
    signature = inspect.signature(getattr(importlib.import_module(module), cls))
    return known if field in signature.parameters else None


def _keep_first_line(
    _app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Keep napoleon from reading "The answer: a text." of a property as "type: description"."""
    if what == "property":
        lines[:0] = ["..", ""]  # an empty comment; only the very first line is read so


def _show_factories(
    _app: Any,
    _what: str,
    _name: str,
    _object: Any,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Show a default that is made anew for each object as ``...``; attrs calls it NOTHING."""
    return signature and re.sub(r"\bNOTHING\b", "...", signature), returns


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", _show_factories)
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _keep_first_line, priority=400)
