"""What is in the wheel is what a user gets."""

from __future__ import annotations

import configparser
import email
import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from protolink_sync import _version

ROOT = pathlib.Path(__file__).parents[1]
DISTRIBUTION = "protolink-sync"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout, built from a copy: building leaves files in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    skipped = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "docs")
    shutil.copytree(ROOT, copy, ignore=skipped)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            "..",
            ".",
        ],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


@pytest.mark.slow
def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel):
    package = ROOT / "protolink_sync"
    sources = {f"protolink_sync/{p.relative_to(package).as_posix()}" for p in package.rglob("*.py")}

    names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert names == sources | {"protolink_sync/py.typed"}


@pytest.mark.slow
def test_the_wheel_says_what_it_is(wheel):
    said = metadata(wheel)

    assert said["Name"] == DISTRIBUTION
    assert said["Requires-Python"] == ">=3.10"
    assert "MIT" in (said["License-Expression"], said["License"])
    assert set(said.get_all("Provides-Extra")) == {
        *("all", "cli", "docs", "fast", "grpc", "otel", "test"),
    }
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())
    (points,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert b"protolink-sync = protolink_sync.__main__:main" in wheel.read(points)


def test_the_version_is_written_once():
    assert importlib.metadata.version(DISTRIBUTION) == _version.__version__


def test_every_run_time_requirement_has_a_floor():
    """.ci/run installs exactly the floors; a requirement without one would escape that run."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    lines = config["options"]["install_requires"].splitlines()
    lines += [
        line for name in ("grpc", "fast", "otel", "cli") for line in extras[name].splitlines()
    ]

    assert [line for line in lines if line and ">=" not in line] == []
