"""The certificates of a connection."""

from __future__ import annotations

import os
from typing import Any

import attrs

__all__ = ["TLSConfig"]


def _file(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"TLSConfig.{attribute.name} is {value!r}, must be a path")
    if not os.path.isfile(value):
        raise ValueError(f"TLSConfig.{attribute.name}: there is no file {os.fspath(value)!r}")


def _switch(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"TLSConfig.{attribute.name} is {value!r}, must be True or False")


@attrs.frozen
class TLSConfig:
    """Certificates for ``https``, ``wss`` and ``grpcs``; all paths are PEM files.

    Args:
        certfile: Certificate (chain) to show to the peer; only together with ``keyfile``.
        keyfile: Its private key.
        cafile: The authorities to trust instead of the system's.
        require_client_cert: Of an agent hosted here: ask callers for a certificate. Needs
            ``cafile``.
        check_hostname: False accepts a trusted certificate of another host.

    Raises:
        TypeError: A path is no path, or a switch neither True nor False.
        ValueError: A file does not exist, or a file is given without its partner.

    Source:
        ProtoLink 0.8.3, ``TLSConfig``: the same fields and rules.
    """

    certfile: str | os.PathLike[str] | None = attrs.field(default=None, validator=_file)
    keyfile: str | os.PathLike[str] | None = attrs.field(default=None, validator=_file, repr=False)
    cafile: str | os.PathLike[str] | None = attrs.field(default=None, validator=_file)
    require_client_cert: bool = attrs.field(default=False, validator=_switch)
    check_hostname: bool = attrs.field(default=True, validator=_switch)

    def __attrs_post_init__(self) -> None:
        if (self.certfile is None) != (self.keyfile is None):
            given, missing = (
                ("certfile", "keyfile") if self.keyfile is None else ("keyfile", "certfile")
            )
            raise ValueError(f"TLSConfig has {given} but no {missing}: give both or none")
        if self.require_client_cert and self.cafile is None:
            raise ValueError("TLSConfig.require_client_cert needs cafile, the callers' authority")
