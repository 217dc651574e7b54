"""Soak: ``python -m tests.soak [--minutes 30] [--threads 16] [--seed 0]``.

Prints how the calls ended, memory and descriptors over time, and what is wrong; the exit code is
1 if anything is.
"""

from __future__ import annotations

import argparse
import sys

from tests.soak.run import soak

# How much the second half of the samples may lie above the first quarter behind the warm-up.
_MOST_GROWTH = 0.10
_MOST_DESCRIPTORS = 40


def main(arguments: list[str]) -> int:
    """Soak, print, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    result = soak(asked.minutes * 60, threads=asked.threads, seed=asked.seed, samples=20)
    for name, count in sorted(result.outcomes.items()):
        print(f"{name:16} {count:9}")
    print(f"{'together':16} {result.calls:9}, {result.cuts} connections were cut")
    print("KiB resident:", *result.rss)
    print("descriptors:", *result.descriptors)
    print("counted:", result.counted)
    wrong = [*result.wrong, *_growth(result.rss, result.descriptors)]
    for what in wrong[:50]:
        print("WRONG:", what)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


def _growth(rss: list[int], descriptors: list[int]) -> list[str]:
    """Compare the end with the time behind the warm-up."""
    quarter = max(1, len(rss) // 4)
    early, late = max(rss[quarter : 2 * quarter]), min(rss[-quarter:])
    grown = []
    if late > early * (1 + _MOST_GROWTH):
        grown.append(f"memory grew from {early} to {late} KiB")
    early, late = max(descriptors[quarter : 2 * quarter]), min(descriptors[-quarter:])
    if late > early + _MOST_DESCRIPTORS:
        grown.append(f"descriptors grew from {early} to {late}")
    return grown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
