"""How the models show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["Shown"]


class Shown:
    """A model that a notebook shows as a table."""

    __slots__ = ()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        # Not at import: what is never shown is not to pay for it.
        from protolink_sync._display import bundle
        from protolink_sync.models._views import view_of

        return bundle(view_of(self), include, exclude)
