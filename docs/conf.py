"""Settings of Sphinx. Build with ``sphinx-build -W -n -b html docs docs/_build``."""

from __future__ import annotations

import pathlib
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

html_theme = "furo"
html_title = f"protolink_sync {release}"
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["page.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Source"]

# The standard library is not linked: building needs no network.
nitpick_ignore_regex = [
    ("py:.*", r"(collections\.abc|datetime|enum|os|pathlib|threading|types)\..*"),
]


def _resolve(app: Any, env: Any, node: Any, child: Any) -> Any:
    """Link a name that a docstring gives without its module.

    Docstrings say ``Message``, the class is documented as ``protolink_sync.models.Message``. Only a
    name that one documented object has is linked; any other is reported as missing.
    """
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    wanted = node["reftarget"].lstrip(".").removeprefix("protolink_sync.")
    found = {
        name
        for name, entry in domain.objects.items()
        if not entry.aliased and (name.endswith("." + wanted))
    }
    if len(found) != 1:
        return None
    (name,) = found
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], name, node, child
    )


def setup(app: Any) -> None:
    app.connect("missing-reference", _resolve)
