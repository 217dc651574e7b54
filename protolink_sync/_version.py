"""The version of the distribution, read by ``setup.cfg`` and by the ``User-Agent`` header."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0.dev0"
