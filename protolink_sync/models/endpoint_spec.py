"""EndpointSpec: one served endpoint, described for every transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import attrs

from protolink_sync.models.request_spec import check_path, one_of
from protolink_sync.types import (
    EndpointContentType,
    EndpointMode,
    HttpMethod,
    RequestSourceType,
)

__all__ = ["EndpointSpec"]


@attrs.frozen
class EndpointSpec:
    """Describe an endpoint that an agent or a registry serves.

    Args:
        name: Name of the endpoint in diagnostics.
        path: Where it is served, beginning with ``/``.
        method: GET, POST, DELETE, PUT or PATCH.
        handler: What answers a request.
        content_type: What it answers, ``json`` or ``html``.
        streaming: True if the handler returns a stream of events.
        mode: ``request_response`` or ``stream``.
        request_parser: Makes the handler's argument out of what came.
        request_source: Where the data of a request is found.

    Raises:
        ValueError: One of the words is unknown, or the path does not begin with ``/``.

    Source:
        ProtoLink, Models reference, "EndpointSpec".
    """

    name: str
    path: str = attrs.field(validator=check_path)
    method: HttpMethod = attrs.field(validator=one_of(get_args(HttpMethod)))
    handler: Callable[..., Any]
    content_type: EndpointContentType = attrs.field(
        default="json", validator=one_of(get_args(EndpointContentType))
    )
    streaming: bool = False
    mode: EndpointMode = attrs.field(
        default="request_response", validator=one_of(get_args(EndpointMode))
    )
    request_parser: Callable[[Any], Any] | None = None
    request_source: RequestSourceType = attrs.field(
        default="none", validator=one_of(get_args(RequestSourceType))
    )
