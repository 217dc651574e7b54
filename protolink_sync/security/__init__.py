"""What a caller holds: TLS files, and credentials that become headers."""

from __future__ import annotations

# For the rooms that take credentials and headers from a caller: not listed.
from protolink_sync.security._credentials import Credentials, credential_headers, origin
from protolink_sync.security._credentials import check_credentials as check_credentials
from protolink_sync.security._headers import caller_headers as caller_headers
from protolink_sync.security._headers import check_header
from protolink_sync.security._headers import refuse_secret_headers as refuse_secret_headers
from protolink_sync.security._secrets import APIKey, BasicAuth, BearerToken
from protolink_sync.security._tls import TLSConfig

__all__ = [
    "APIKey",
    "BasicAuth",
    "BearerToken",
    "Credentials",
    "TLSConfig",
    "check_header",
    "credential_headers",
    "origin",
]
