"""What must hold, and whether it does."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

__all__ = ["Bound", "Ratio", "Verdict", "median", "ratio"]

# A contender's figures, round by round; one that could not be measured has a round that says why.
Rounds = Sequence[Mapping[str, Any]]

_TELLS: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda measured, limit: measured <= limit,
    ">=": lambda measured, limit: measured >= limit,
    "<": lambda measured, limit: measured < limit,
    "=": lambda measured, limit: measured == limit,
}


@attrs.frozen
class Ratio:
    """How much more one contender takes than another.

    Args:
        middle: The median of the ratios round by round.
        low: A quarter of the rounds is below.
        high: A quarter of the rounds is above.
    """

    middle: float
    low: float
    high: float


@attrs.frozen
class Verdict:
    """What became of one bound.

    Args:
        text: The bound in words.
        measured: The ratio, or a figure as it is; None if there is none.
        limit: What it must keep to, with the sign.
        state: ``ok``, ``MISS``, or ``not measured``.
    """

    text: str
    measured: Ratio | float | None
    limit: str
    state: Literal["ok", "MISS", "not measured"]


@attrs.frozen
class Bound:
    """One line of the table of what must hold.

    Args:
        contender: Whose figure is bounded.
        figure: Which one: ``wall_us``, ``cpu_us``, ``p99_us``, or one of the growth.
        sign: ``<=``, ``>=``, ``<`` or ``=``.
        limit: The number.
        base: The contender it is divided by; None for the figure as it is.
    """

    contender: str
    figure: str
    sign: Literal["<=", ">=", "<", "="]
    limit: float
    base: str | None = None

    def judge(self, results: Mapping[str, Rounds]) -> Verdict:
        """Return what the results of a case say about this bound."""
        over = "" if self.base is None else f" : {self.base}"
        text = f"{self.figure.removesuffix('_us')} of {self.contender}{over}"
        limit = f"{self.sign} {self.limit:g}"
        mine = results.get(self.contender, ())
        base = mine if self.base is None else results.get(self.base, ())
        if any("failed" in one for one in (*mine, *base)):
            return Verdict(text, None, limit, "MISS")
        if not mine or not base:
            return Verdict(text, None, limit, "not measured")
        measured = (
            median(mine, self.figure) if self.base is None else ratio(mine, base, self.figure)
        )
        number = measured.middle if isinstance(measured, Ratio) else measured
        return Verdict(
            text, measured, limit, "ok" if _TELLS[self.sign](number, self.limit) else "MISS"
        )


def median(rounds: Rounds, figure: str) -> float:
    """Return the median of a figure over the rounds."""
    return float(statistics.median(one[figure] for one in rounds))


def ratio(rounds: Rounds, base: Rounds, figure: str) -> Ratio:
    """Return how one contender's figure relates to another's, compared round by round.

    The rounds of one number were measured one after the other: what else the machine did then
    slowed both, and does not count.

    >>> slow, fast = [{"wall_us": 6.0}, {"wall_us": 9.0}], [{"wall_us": 3.0}, {"wall_us": 4.5}]
    >>> ratio(slow, fast, "wall_us").middle
    2.0
    """
    ratios = [mine[figure] / theirs[figure] for mine, theirs in zip(rounds, base, strict=True)]
    low, middle, high = (
        statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    )
    return Ratio(middle, low, high)
