"""The interrupt button of a notebook ends a call, and the next cell can call again."""

from __future__ import annotations

import json

import pytest

from tests.processes.calls import output_of
from tests.processes.packages import needs, posix

pytestmark = [pytest.mark.slow, posix, needs("nbclient")]


def test_the_interrupt_of_a_kernel_ends_what_blocks(counted_peer):
    first, *rest = json.loads(output_of("notebook", counted_peer("sse").peer)[-1])

    assert first == "first"
    assert rest == ["KeyboardInterrupt", "[] 0 again"] * 2, "in a call, in a stream"
