"""Fuzz every decoder: ``python -m tests.fuzz [--inputs N] [--seed S] [NAME ...]``.

``--inputs`` is the number for all of them together. A line a decoder; findings are printed as
they would be kept in :mod:`tests.fuzz.findings`. The exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import resource
import sys

from tests.fuzz.decoders import DECODERS
from tests.fuzz.run import fuzz

# KiB by which the process may grow while one decoder is fed.
_MOST_GROWTH = 200 * 1024


def main(arguments: list[str]) -> int:
    """Fuzz, print, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*", help="of decoders; all if none is given")
    asked = parser.parse_args(arguments)
    chosen = [d for d in DECODERS if not asked.names or d.name in asked.names]
    each = -(-asked.inputs // len(chosen))
    total = wrong = 0
    for decoder in chosen:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = fuzz(decoder, each, asked.seed)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > _MOST_GROWTH:
            report.findings.append((b"", f"the process grew by {grown} KiB"))
        total += report.inputs
        wrong += len(report.findings)
        print(
            f"{decoder.name:14} {report.inputs:8} inputs  {report.accepted:8} read  "
            f"{report.seconds:6.1f} s  slowest {report.slowest * 1000:6.1f} ms  "
            f"grown {grown:6} KiB  findings {len(report.findings)}",
            flush=True,
        )
        for data, what in report.findings:
            print(f"    ({decoder.name!r}, {data!r}),  # {what}")
    print(f"{total} inputs, {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
