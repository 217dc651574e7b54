"""One request on its way through an agent: from its parsed data to the bytes of the answer.

In two steps, because only the first one runs the agent's own code, which may take any time: a
caller that must be able to leave has another thread make it. The second one may then be made by
either, and made again if it was interrupted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

from protolink_sync.models import EndpointSpec
from protolink_sync.server.idempotency import Answers, Claim
from protolink_sync.server.refusal import RefusedError

__all__ = ["Execution"]

_log = logging.getLogger("protolink_sync.server")


class Execution:
    """One request that is being carried out.

    Args:
        spec: The endpoint.
        data: What its handler gets.
        principal: Who asks.
        answers: What was answered before.
        identity: By what a repetition is recognised; None if the answer is not remembered.
        encode: Makes the bytes of the answer.
        largest: Most bytes of an answer.
    """

    __slots__ = (
        "_answer",
        "_answers",
        "_claim",
        "_data",
        "_encode",
        "_error",
        "_identity",
        "_largest",
        "_principal",
        "_result",
        "_spec",
    )

    def __init__(
        self,
        spec: EndpointSpec,
        data: Any,
        principal: Hashable,
        answers: Answers,
        identity: Hashable,
        encode: Callable[[Any], bytes],
        largest: int,
    ) -> None:
        self._spec = spec
        self._data = data
        self._principal = principal
        self._answers = answers
        self._identity = identity
        self._encode = encode
        self._largest = largest
        self._claim: Claim | None = None
        self._result: Any = None
        self._answer: bytes | None = None
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is an answer or an error, and those who wait for it have it."""
        return self._answer is not None or self._error is not None

    def handle(self) -> None:
        """Have the agent do what is asked, unless that was done before; raises nothing."""
        try:
            if self._identity is not None:
                claim = self._answers.claim(self._identity)
                if isinstance(claim, bytes):
                    self._answer = claim
                    return
                self._claim = claim
            self._result = self._spec.handler(self._data, self._principal)
        except BaseException as error:
            self._fail(error)

    def finish(self) -> bytes:
        """Return the answer, remembered for repetitions.

        Raises:
            RefusedError: There is none; it says why.
        """
        if not self.is_over:
            try:
                answer = self._encode(self._result)
                if len(answer) > self._largest:
                    raise self._too_large(len(answer))
                if self._claim is not None:
                    self._answers.store(self._claim, answer)
                self._answer = answer
            except Exception as error:
                self._fail(error)
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def give_up(self) -> None:
        """Let go of a request that was interrupted; one that is over is not touched."""
        if not self.is_over:
            self._fail(RefusedError(500, "the request was interrupted", "InterruptedError"))

    def _fail(self, error: BaseException) -> None:
        # Outside the main thread nobody can mean the process: sys.exit(), a cancelled task.
        is_main = threading.current_thread() is threading.main_thread()
        is_failure = isinstance(error, Exception) or not is_main
        if is_failure and not isinstance(error, RefusedError):
            _log.error("%s failed", self._spec.name, exc_info=error)
            refused = RefusedError(500, str(error), type(error).__name__, told=False)
            refused.__cause__ = error
            error = refused
        if self._claim is not None:
            self._answers.fail(self._claim, error)
        self._error = error

    def _too_large(self, size: int) -> RefusedError:
        return RefusedError(
            500,
            f"the answer has {size} bytes, limit is {self._largest}. Raise "
            "TransportLimits.max_response_bytes of the agent",
            "TransportLimitError",
        )
