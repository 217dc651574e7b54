"""``protolink-sync doctor``: what is between here and an agent."""

from __future__ import annotations

import click

from protolink_sync.cli._exits import exit_code
from protolink_sync.cli._settings import Settings, shared
from protolink_sync.client import CheckReport
from protolink_sync.wire import one_line

__all__ = ["COMMANDS"]

# A check that takes longer than this says as much.
_LONGEST = 30.0

_MARKS = {"ok": "ok", "warning": "look", "failed": "FAILED", "skipped": "-"}


@click.command()
@click.argument("url")
@click.option("--text", help="Also send this to the agent's model, as a task and as a stream.")
@shared
def doctor(url: str, text: str | None, settings: Settings) -> int:
    """Find out what is wrong between here and the agent at URL, and say what to do.

    Nothing is sent to the agent's model unless --text is given.
    """
    report = _checked(url, text, settings)
    if settings.output.as_json:
        settings.output.value(report.to_dict())
    else:
        _show(report)
    if report.ok:
        return 0
    error = report.error
    return 1 if error is None else exit_code(error) or 1


def _checked(url: str, text: str | None, settings: Settings) -> CheckReport:
    longest = min(settings.timeout, _LONGEST)
    with settings.peer(url) as agent:
        report = agent.client.check(url, text=text, timeout=longest)
    if _is_card_missing(report) and url.startswith("http"):
        with settings.peer(url, a2a=True) as agent:
            other = agent.client.check(url, text=text, timeout=longest)
        if other.ok or not _is_card_missing(other):
            return other
    return report


def _is_card_missing(report: CheckReport) -> bool:
    return any(step.name == "card" and step.status == "failed" for step in report.steps)


def _show(report: CheckReport) -> None:
    print(f"{report.url} over {report.transport}\n")
    for step in report.steps:
        took = "" if step.seconds is None else f"  ({step.seconds * 1000:.1f} ms)"
        print(f"  {_MARKS[step.status]:7} {step.name:9} {one_line(step.found)}{took}")
        if step.hint:
            print(f"  {'':7} {'':9} -> {one_line(step.hint)}")
    print("\nall is well" if report.ok else "\nsomething is wrong")


COMMANDS = (doctor,)
