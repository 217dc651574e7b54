"""By what a peer recognises a submission: its idempotency key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protolink_sync.models import Task

__all__ = ["key_of_task", "task_id"]

# The peers' servers take any key; a header needs printable ASCII, and proxies limit its length.
_LONGEST_ID = 200


def key_of_task(task: Any, body: bytes) -> str:
    """Return the idempotency key of a submission: the same for the same task, sent again.

    The digest tells a task that was continued with a new message from the old one; the peer
    looks at nothing but the key.

    Args:
        task: The task, as a model or as JSON values. An id that is not 1 to 200 printable ASCII
            characters is replaced by its SHA-256.
        body: The encoded task.
    """
    sha256 = _sha256 or _find_sha256()
    text = str(task.id if type(task) is Task else task_id(task))
    if not (0 < len(text) <= _LONGEST_ID and text.isascii() and text.isprintable()):
        text = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text}:{sha256(body).hexdigest()[:32]}"


# Unknown until the first use: to import it loads OpenSSL.
_sha256: Callable[[bytes], Any] | None = None


def _find_sha256() -> Callable[[bytes], Any]:
    global _sha256
    from hashlib import sha256

    _sha256 = sha256
    return sha256


def task_id(data: Any) -> Any:
    """Return the id of a task, given as a model or as JSON values."""
    return data.get("id") if isinstance(data, Mapping) else getattr(data, "id", None)
