"""Cancel from a signal handler at random moments: ``python -m tests.transport.matrix_signals``.

With ``call`` the handler cancels the token of the call that runs, with ``wait`` the one the main
thread waits for. It prints how often, and exits with 1 if something else than the answer or
``CallCancelledError`` came; when it hangs it prints all stacks and ends.
"""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import tempfile
from typing import Any

from protolink_sync import CallCancelledError, CancelToken
from protolink_sync.security import TLSConfig
from protolink_sync.transport import HTTPTransport
from tests.transport import matrix_watch
from tests.transport.matrix_peer import ASK, running_peer

SIGNALS = 3000
_HANG = 60.0


class _Alarm:
    """An interval timer that fires at random moments and cancels the token of the day."""

    def __init__(self) -> None:
        self.token = CancelToken()
        self.fired = 0
        self._luck = random.Random(1)
        signal.signal(signal.SIGALRM, self._fire)
        signal.signal(signal.SIGUSR1, self._fire)

    def next(self, longest: float) -> CancelToken:
        """Return a new token and have it cancelled within some seconds."""
        self.token = CancelToken()
        signal.setitimer(signal.ITIMER_REAL, self._luck.uniform(1e-5, longest))
        return self.token

    def _fire(self, *_: Any) -> None:
        self.fired += 1
        self.token.cancel()


def _waits(alarm: _Alarm) -> int:
    misses = 0
    while alarm.fired < SIGNALS:
        if not alarm.next(0.0005).wait(5):
            misses += 1
    return misses


def _calls(alarm: _Alarm) -> int:
    misses = answered = 0
    with tempfile.TemporaryDirectory() as folder, running_peer(folder) as peer:
        transport = HTTPTransport(tls=TLSConfig(cafile=peer.cafile), trust_env=False)
        while alarm.fired < SIGNALS:
            scheme = "http" if alarm.fired % 4 else "https"
            question = {"n": alarm.fired}
            try:
                answer = transport.send(
                    ASK, peer.url(scheme, "echo"), question, cancel=alarm.next(0.001), timeout=10
                )
                answered += 1
                misses += answer["question"] != question
            except CallCancelledError:
                pass
            except BaseException as error:
                misses += 1
                print(f"MISS: {error!r}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        if transport.metrics.active_requests:
            misses += 1
            print("MISS: a slot is in use")
        transport.send(ASK, peer.url("https", "echo"), {}, timeout=10)
        transport.close()
    if matrix_watch.threads():
        misses += 1
        print(f"MISS: threads {matrix_watch.threads()}")
    print(f"{answered} answered")
    return misses


def main(how: str) -> int:
    """Run one of the two; return the exit code."""
    faulthandler.dump_traceback_later(_HANG, exit=True)
    alarm = _Alarm()
    misses = _waits(alarm) if how == "wait" else _calls(alarm)
    print(f"{how}: {alarm.fired} signals, {misses} misses")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main((sys.argv[1:] or ["call"])[0]))
