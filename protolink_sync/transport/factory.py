"""Transports by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from protolink_sync.transport.base import Transport

__all__ = ["get_transport", "known_transports", "register_transport"]

# Where each transport lives: it is imported when it is asked for, with what it stands on.
_BUILT_IN = {
    "grpc": ("protolink_sync.transport.grpc", "GRPCTransport"),
    "http": ("protolink_sync.transport.http", "HTTPTransport"),
    "json-rpc": ("protolink_sync.transport.sse", "SSEJSONRPCTransport"),
    "sse": ("protolink_sync.transport.sse", "SSEJSONRPCTransport"),
    "sse-json-rpc": ("protolink_sync.transport.sse", "SSEJSONRPCTransport"),
    "runtime": ("protolink_sync.transport.runtime", "RuntimeTransport"),
    "websocket": ("protolink_sync.transport.websocket", "WebSocketTransport"),
}

_registered: dict[str, Callable[..., Transport]] = {}


def known_transports() -> list[str]:
    """Return the names that :func:`get_transport` takes."""
    return sorted({*_BUILT_IN, *_registered})


def register_transport(alias: str, factory: Callable[..., Transport]) -> None:
    """Make a transport of your own available by name.

    Args:
        alias: The name; that of a built-in transport replaces it.
        factory: Called with the settings given to :func:`get_transport`; usually the class.

    Raises:
        TypeError: The alias is no text or the factory cannot be called.
        ValueError: The alias is empty.
    """
    if not isinstance(alias, str) or not callable(factory):
        raise TypeError(
            "register_transport needs a name and something that makes a transport, "
            f"not {alias!r} and {factory!r}"
        )
    if not alias:
        raise ValueError("register_transport needs a name that is not empty")
    _registered[alias.lower()] = factory


def get_transport(transport: str, **settings: Any) -> Transport:
    """Return a new transport by its name.

    Args:
        transport: ``"http"``, ``"sse"`` (also ``"json-rpc"``, ``"sse-json-rpc"``),
            ``"websocket"``, ``"grpc"``, ``"runtime"``, or a name given to
            :func:`register_transport`.
        **settings: Arguments of the transport's class.

    Raises:
        TypeError: The name is no text, or a setting is unknown to the transport.
        ValueError: There is no transport of this name; the message lists those there are.
    """
    if not isinstance(transport, str):
        raise TypeError(
            f"transport is a {type(transport).__name__}, must be a Transport or the name of one: "
            f"{', '.join(known_transports())}"
        )
    name = transport.lower()
    if name in _registered:
        return _registered[name](**settings)
    if name not in _BUILT_IN:
        raise ValueError(f"unknown transport {transport!r}; known: {', '.join(known_transports())}")
    module, cls = _BUILT_IN[name]
    made: Transport = getattr(importlib.import_module(module), cls)(**settings)
    return made
