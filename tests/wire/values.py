"""JSON values of every kind, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["json_scalars", "json_values", "texts"]

# Half surrogate pairs too: JSON can carry them, as \\ud800.
texts = st.text() | st.text(st.characters(codec=None, categories=["Cs", "L"]), max_size=5)

json_scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**64) - 2, 2**64 + 2)
    | st.integers(10**30, 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)

json_values: st.SearchStrategy[Any] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
