"""How things look: in a notebook, and in a terminal."""

from protolink_sync._display._bars import Bar, bar
from protolink_sync._display._cell import Cell, cell
from protolink_sync._display._view import View, bundle, printable

__all__ = ["Bar", "Cell", "View", "bar", "bundle", "cell", "printable"]
