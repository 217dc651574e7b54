"""Feed a decoder many inputs; what it does then that it must not do is a finding."""

from __future__ import annotations

import random
import time

import attrs

from tests.fuzz.decoders import Decoder, Input

# Seconds of the processor for one input: far more than any needs, also on a slow machine.
_MOST_SECONDS = 2.0

_KEPT_FINDINGS = 20


@attrs.define
class Report:
    """What came of it.

    Args:
        inputs: How many were fed.
        accepted: How many were read without an error.
        seconds: How long it took.
        slowest: Seconds of the processor for the slowest.
        findings: An input and what was wrong, for each kind of wrong once.
    """

    inputs: int = 0
    accepted: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: list[tuple[Input, str]] = attrs.Factory(list)


def feed(decoder: Decoder, data: Input) -> str | None:
    """Feed one input; return what is wrong: an error that nobody is prepared for."""
    try:
        decoder.read(data)
    except decoder.may_raise:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None


def fuzz(decoder: Decoder, inputs: int, seed: int) -> Report:
    """Feed mutated inputs, the same ones for the same seed."""
    chance = random.Random(f"{decoder.name} {seed}")
    report = Report()
    known: set[str] = set()
    began = time.perf_counter()
    for _ in range(inputs):
        data = decoder.make(chance)
        wrong = None
        before = time.process_time()
        try:
            decoder.read(data)
            report.accepted += 1
        except decoder.may_raise:
            pass
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"[:300]
        took = time.process_time() - before
        report.slowest = max(report.slowest, took)
        if took > _MOST_SECONDS:
            wrong = f"took {took:.1f} s"
        if wrong is not None and wrong[:40] not in known and len(known) < _KEPT_FINDINGS:
            known.add(wrong[:40])
            report.findings.append((data, wrong))
        report.inputs += 1
    report.seconds = time.perf_counter() - began
    return report
