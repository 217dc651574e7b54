"""The cases that a client has to master, each played as it is written.

Every id stands in exactly one of two tables: played here from its script, set up by hand in
test_set_ups.py, test_stream_set_ups.py, test_grpc_cases.py or tests/processes.
"""

from __future__ import annotations

import pytest

from tests.cases import test_aio_cases, test_grpc_cases, test_set_ups, test_stream_set_ups
from tests.cases.play import load_cases
from tests.cases.runner import run_case
from tests.processes import test_gevent

CASES = load_cases()

PLAYED = """
    C001 C002 C005 C006 C008 C009 C010 C012 C013 C014 C015 C017 C019 C021 C022 C024 C025 C027 C028
    C029 C031 C136 C137 C153 C161 C162 C170 C173
    C051 C052
    C056 C057 C059 C061 C075
    C080 C084 C087 C093 C095 C101 C102 C104
    C105 C106 C108 C109 C112 C113 C115 C116 C117 C118 C120 C121 C122 C123 C124 C125 C126 C127 C128
    C133 C134 C139 C140
    C143 C144 C145 C146 C149 C150 C151 C155 C156 C159
    C174 C175 C182 C192
    C200 C203 C209 C210
    C213 C214 C219
    C034 C035 C036 C037 C040 C042 C044 C045 C048 C049 C053 C054 C058 C063 C065 C066 C068 C071 C072
    C074 C077 C078 C081 C083 C085 C086 C088 C090 C097 C098 C152 C171
    C221 C222 C223 C224 C226 C229 C231 C232 C233 C234 C237 C238 C240
"""

# C199 and C212 lack the transports beside http.
SET_UP = """
    C165 C167 C179 C181 C183 C184 C186 C189 C191 C193 C194 C195 C197 C199 C201 C205 C208 C212 C215
    C242 C243 C245 C246 C247 C249 C252 C255 C256 C258 C260
"""


@pytest.mark.parametrize("case_id", PLAYED.split())
def test_case(case_id):
    run_case(CASES[case_id])


def test_every_case_is_in_exactly_one_table():
    tables = (PLAYED, SET_UP)

    listed = [case_id for table in tables for case_id in table.split()]

    assert sorted(listed) == sorted(CASES)


def test_every_set_up_has_a_test_of_its_own():
    modules = (test_set_ups, test_stream_set_ups, test_grpc_cases, test_aio_cases, test_gevent)
    tests = [name for module in modules for name in vars(module)]
    names = [name.split("_")[1] for name in tests if name.startswith("test_C")]

    assert sorted(set(names)) == SET_UP.split()
