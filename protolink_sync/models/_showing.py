"""How the models show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["shown"]


def shown(
    value: Any, include: Collection[str] | None, exclude: Collection[str] | None
) -> dict[str, str]:
    """Return a model in the forms that a notebook chooses from."""
    # Not at import: what is never shown is not to pay for it.
    from protolink_sync._display import bundle
    from protolink_sync.models._views import view_of

    return bundle(view_of(value), include, exclude)
