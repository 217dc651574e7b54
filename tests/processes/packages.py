"""The packages in whose processes the library is tried, and what is left out without them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest

# As a test names it -> what is imported or, with the directory's mark, run.
PACKAGES = {
    "gunicorn": "gunicorn",
    "gevent": "gevent",
    "celery": "celery",
    "nbclient": "nbclient",
    "uwsgi": "bin/uwsgi",
}

posix = pytest.mark.skipif(os.name != "posix", reason="this system has neither forks nor signals")


def program(name: str) -> str:
    """Return the path of a program that belongs to this Python's environment."""
    return os.path.join(os.path.dirname(sys.executable), name)


def needs(name: str) -> pytest.MarkDecorator:
    """Leave a test out where a package is not installed, and say so."""
    wanted = PACKAGES[name]
    if wanted.startswith("bin/"):
        is_there = shutil.which(program(wanted[4:])) is not None
    else:
        is_there = importlib.util.find_spec(wanted) is not None
    return pytest.mark.skipif(
        not is_there, reason=f"{name} is not installed: the extra test has it, where it exists"
    )
