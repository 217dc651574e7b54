"""``python -m protolink_sync`` and the command ``protolink-sync``."""

from __future__ import annotations

import sys

from protolink_sync.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
