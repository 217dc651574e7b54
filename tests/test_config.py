"""Settings: what each refuses and how it says so, and that a setting travels whole."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.config import RetryPolicy, TransportConfig, TransportLimits

SETTINGS = [TransportLimits, RetryPolicy, TransportConfig]

OTHER: dict[type, dict[str, Any]] = {
    TransportLimits: {
        "max_request_bytes": 1,
        "max_response_bytes": 2,
        "max_event_bytes": 3,
        "max_concurrent_requests": 4,
        "max_concurrent_streams": 5,
    },
    RetryPolicy: {
        "max_attempts": 5,
        "initial_backoff": 0.5,
        "max_backoff": 8,
        "jitter": 0,
        "retryable_methods": {"GET", "patch"},
        "retryable_statuses": [503],
        "max_retry_after": 0,
        "attempt_timeout": 3,
    },
    TransportConfig: {
        "limits": TransportLimits(max_request_bytes=7),
        "retry": RetryPolicy(max_attempts=7),
        "keepalive_interval": None,
        "keepalive_timeout": 1,
        "shutdown_timeout": 2.5,
        "idempotency_ttl": 60,
        "idempotency_cache_size": 1,
        "collect_metrics": False,
        "connect_timeout": 4,
        "max_idle_connections": 0,
    },
}


def both(cls: type) -> list[Any]:
    """Return settings as they are by default, and with another value in every field."""
    assert set(OTHER[cls]) == {field.name for field in attrs.fields(cls)}
    return [cls(), cls(**OTHER[cls])]


# --- defaults -----------------------------------------------------------------------------------


def test_the_defaults_are_the_peers():
    """wire/protolink.md 13 and 17."""
    limits, retry, config = TransportLimits(), RetryPolicy(), TransportConfig()

    assert attrs.astuple(limits) == (16 * 2**20, 16 * 2**20, 4 * 2**20, 100, 100)
    assert (retry.max_attempts, retry.initial_backoff, retry.max_backoff, retry.jitter) == (
        1,
        0.1,
        2.0,
        0.1,
    )
    assert retry.retryable_methods == {"DELETE", "GET", "POST", "PUT"}
    assert (config.keepalive_interval, config.keepalive_timeout) == (20.0, 20.0)
    assert (config.shutdown_timeout, config.idempotency_ttl) == (5.0, 300.0)
    assert (config.idempotency_cache_size, config.collect_metrics) == (1024, True)


def test_our_own_defaults():
    retry, config = RetryPolicy(), TransportConfig()

    assert retry.retryable_statuses == {429, 502, 503, 504}
    assert (retry.max_retry_after, retry.attempt_timeout) == (30.0, None)
    assert (config.connect_timeout, config.max_idle_connections) == (30.0, 10)


def test_documented_fields_are_positional_in_the_documented_order():
    assert TransportLimits(1, 2, 3, 4, 5).max_concurrent_streams == 5
    assert RetryPolicy(3, 0.2, 4.0, 0.0, {"GET"}).retryable_methods == {"GET"}
    limits, retry = TransportLimits(), RetryPolicy()
    assert TransportConfig(limits, retry, None, 1, 2, 3, 4, False).collect_metrics is False


def test_what_we_add_is_keyword_only():
    with pytest.raises(TypeError):
        RetryPolicy(1, 0.1, 2.0, 0.1, {"GET"}, {503})  # type: ignore[misc]
    with pytest.raises(TypeError):
        TransportConfig(TransportLimits(), RetryPolicy(), 20.0, 20.0, 5.0, 300.0, 1024, True, 30.0)  # type: ignore[misc]


# --- what is refused ----------------------------------------------------------------------------

WHOLE = [*OTHER[TransportLimits], "max_attempts", "idempotency_cache_size", "max_idle_connections"]
SECONDS_ABOVE_0 = [
    "attempt_timeout",
    "connect_timeout",
    "idempotency_ttl",
    "keepalive_interval",
    "keepalive_timeout",
    "shutdown_timeout",
]
SECONDS_FROM_0 = ["initial_backoff", "max_backoff", "jitter", "max_retry_after"]


def owner(name: str) -> Any:
    return next(cls for cls in SETTINGS if name in OTHER[cls])


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    *((name, value, TypeError, "int") for name in WHOLE for value in (1.5, "5", True, None)),
    *((name, -1, ValueError, "or more|more than") for name in WHOLE),
    *((name, 0, ValueError, "more than 0") for name in OTHER[TransportLimits]),
    ("max_attempts", 0, ValueError, "1 or more"),
    ("idempotency_cache_size", 0, ValueError, "more than 0"),
    *(
        (name, value, TypeError, "float")
        for name in (*SECONDS_ABOVE_0, *SECONDS_FROM_0)
        for value in ("5", True, [5])
    ),
    *(
        (name, value, ValueError, "more than 0")
        for name in SECONDS_ABOVE_0
        for value in (0, -1.5, math.nan)
    ),
    *((name, -0.1, ValueError, "0 or more") for name in SECONDS_FROM_0),
    *((name, math.nan, ValueError, "0 or more") for name in SECONDS_FROM_0),
    *(
        (name, None, TypeError, "float")
        for name in (*SECONDS_FROM_0, "connect_timeout", "idempotency_ttl", "shutdown_timeout")
    ),
    ("max_backoff", 0.05, ValueError, "initial_backoff"),
    ("retryable_methods", "GET", TypeError, "set of methods"),
    ("retryable_methods", None, TypeError, "set of methods"),
    ("retryable_methods", 5, TypeError, "set of methods"),
    ("retryable_methods", ["GET", "FETCH"], ValueError, "DELETE, GET, PATCH, POST, PUT"),
    ("retryable_methods", [5], ValueError, "DELETE, GET, PATCH, POST, PUT"),
    ("retryable_statuses", 503, TypeError, "set of HTTP statuses"),
    ("retryable_statuses", None, TypeError, "set of HTTP statuses"),
    ("retryable_statuses", "503", TypeError, "set of HTTP statuses"),
    ("retryable_statuses", [200], ValueError, "400 to 599"),
    ("retryable_statuses", [True], ValueError, "400 to 599"),
    ("retryable_statuses", ["503"], ValueError, "400 to 599"),
    ("retryable_statuses", [600], ValueError, "400 to 599"),
    ("limits", {"max_request_bytes": 5}, TypeError, "TransportLimits"),
    ("limits", None, TypeError, "TransportLimits"),
    ("retry", 3, TypeError, "RetryPolicy"),
    ("collect_metrics", 1, TypeError, "bool"),
    ("collect_metrics", None, TypeError, "bool"),
]


def test_a_wrong_value_is_refused_with_field_value_and_what_is_allowed():
    for name, value, error, allowed in REFUSED:
        cls = owner(name)
        with pytest.raises(error, match=allowed) as caught:
            cls(**{name: value})
        message = str(caught.value)
        assert f"{cls.__name__}.{name}" in message, message
        shown = value[-1] if isinstance(value, list) and "timeout" not in name else value
        assert str(shown) in message, (name, message)


@pytest.mark.parametrize("cls", SETTINGS)
def test_an_unknown_keyword_is_a_type_error(cls):
    with pytest.raises(TypeError, match="max_retries"):
        cls(max_retries=3)


@pytest.mark.parametrize("cls", SETTINGS)
def test_infinity_is_no_bound_where_seconds_are_asked(cls):
    for name in (*SECONDS_ABOVE_0, *SECONDS_FROM_0):
        if name in OTHER[cls] and name not in ("initial_backoff", "jitter"):
            assert getattr(cls(**{name: math.inf}), name) == math.inf


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", SETTINGS)
def test_settings_come_back_from_their_mapping(cls):
    for settings in both(cls):
        mapping = settings.to_dict()

        assert cls.from_dict(mapping) == settings
        assert cls.from_dict(json.loads(json.dumps(mapping))) == settings
        assert list(mapping) == [field.name for field in attrs.fields(cls)]


@pytest.mark.parametrize("cls", SETTINGS)
def test_a_part_of_the_mapping_leaves_the_rest_by_default(cls):
    assert cls.from_dict({}) == cls()


@pytest.mark.parametrize("cls", SETTINGS)
def test_an_unknown_key_of_a_mapping_is_a_type_error_that_lists_the_known(cls):
    with pytest.raises(TypeError, match="known: ") as caught:
        cls.from_dict({"max_retries": 3, "other": 1})

    for word in (cls.__name__, "'max_retries'", "'other'", *OTHER[cls]):
        assert word in str(caught.value)


def test_unknown_keys_inside_a_configuration_are_refused_too():
    with pytest.raises(TypeError, match="RetryPolicy has no 'tries'"):
        TransportConfig.from_dict({"retry": {"tries": 3}})


def test_from_dict_checks_values():
    with pytest.raises(ValueError, match=r"RetryPolicy\.max_attempts"):
        TransportConfig.from_dict({"retry": {"max_attempts": 0}})


def test_from_dict_leaves_what_it_was_given():
    data = {"limits": {"max_request_bytes": 5}, "retry": {"retryable_methods": ["GET"]}}

    config = TransportConfig.from_dict(data)

    assert config.limits.max_request_bytes == 5
    assert data == {"limits": {"max_request_bytes": 5}, "retry": {"retryable_methods": ["GET"]}}


@pytest.mark.parametrize("cls", SETTINGS)
def test_settings_are_frozen_values(cls):
    default, other = both(cls)

    assert default == cls()
    assert default != other
    assert len({default, cls(), other}) == 2
    for name in OTHER[cls]:
        with pytest.raises(AttributeError):
            setattr(default, name, getattr(other, name))


@pytest.mark.parametrize("cls", SETTINGS)
def test_settings_are_carried_to_another_process(cls):
    for settings in both(cls):
        for protocol in range(2, 6):
            assert pickle.loads(pickle.dumps(settings, protocol)) == settings
        assert copy.deepcopy(settings) == copy.copy(settings) == settings


def test_methods_are_known_in_any_case():
    assert RetryPolicy(retryable_methods=["get", "Post"]).retryable_methods == {"GET", "POST"}


# --- pauses -------------------------------------------------------------------------------------


def none() -> float:
    return 0.0


def test_the_pause_doubles_up_to_the_longest():
    policy = RetryPolicy(initial_backoff=0.1, max_backoff=1.0, jitter=0)

    pauses = [policy.delay_before(n) for n in range(1, 7)]

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_jitter_is_added_after_the_longest():
    policy = RetryPolicy(initial_backoff=1, max_backoff=2, jitter=0.5)

    assert policy.delay_before(9, luck=lambda: 1.0) == 2.5
    assert policy.delay_before(1, luck=lambda: 0.5) == 1.25


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 10),
    st.integers(1, 10**9),
    st.floats(0, 1),
)
def test_the_pause_follows_the_formula(initial, more, jitter, retry, luck):
    """min(initial * 2**(n-1), max) + uniform(0, jitter), for any number of retries."""
    policy = RetryPolicy(initial_backoff=initial, max_backoff=initial + more, jitter=jitter)

    pause = policy.delay_before(retry, luck=lambda: luck)

    expected = min(initial * 2.0 ** min(retry - 1, 64), initial + more) + luck * jitter
    assert pause == pytest.approx(expected)
    assert 0 <= pause <= policy.max_backoff + policy.jitter


def test_the_pause_is_a_matter_of_luck_within_the_jitter():
    policy = RetryPolicy(initial_backoff=1, max_backoff=1, jitter=0.5)

    pauses = {policy.delay_before(1) for _ in range(50)}

    assert len(pauses) > 1
    assert all(1 <= pause <= 1.5 for pause in pauses)


@pytest.mark.parametrize("retry", [0, -1])
def test_the_first_attempt_is_no_retry(retry):
    with pytest.raises(ValueError, match="1 or more"):
        RetryPolicy().delay_before(retry, luck=none)
