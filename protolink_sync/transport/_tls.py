"""TLS contexts: one for each process and setting, made when the first TLS connection is."""

from __future__ import annotations

import errno
import functools
import os
import ssl
from typing import Any

from protolink_sync.security import TLSConfig

__all__ = ["client_context"]


class _Checked:
    """What keeps ``ssl.SSLSocket`` from being lost unclosed while it is made."""

    def getpeername(self) -> Any:
        """Return the peer's address; asked by ``ssl`` before it begins the handshake.

        ``ssl`` wraps a connection that has ended too, without TLS, and loses it when a reset
        arrives meanwhile.
        """
        try:
            return super().getpeername()  # type: ignore[misc]
        except OSError as error:
            if not hasattr(self, "_connected"):  # ssl sets it when the socket is made
                self.close()  # type: ignore[attr-defined]
                raise ConnectionResetError(
                    errno.ECONNRESET, "the connection ended before TLS began"
                ) from error
            raise

    def do_handshake(self, *args: Any) -> None:
        """Begin TLS; ``ssl`` forgets the socket when Ctrl-C ends this."""
        try:
            super().do_handshake(*args)  # type: ignore[misc]
        except BaseException:
            self.close()  # type: ignore[attr-defined]
            raise


def client_context(
    tls: TLSConfig | None, authority: str | None, trust_env: bool = True
) -> ssl.SSLContext:
    """Return the context for connections to peers.

    Args:
        tls: The caller's certificates.
        authority: File or folder of authorities, where ``tls`` names none; None for the
            system's.
        trust_env: False for the system's authorities without what the environment says of them.

    Raises:
        ValueError: A file cannot be read, is no PEM file, or certificate and key do not belong
            together.
    """
    return _context(ssl.SSLSocket, tls or TLSConfig(), authority, trust_env)


# By the class of its sockets too: gevent replaces it, and what was made before (under gunicorn
# --preload) is of no use then.
@functools.lru_cache(maxsize=64)
def _context(
    sockets: type[ssl.SSLSocket], tls: TLSConfig, authority: str | None, trust_env: bool
) -> ssl.SSLContext:
    cafile = tls.cafile if tls.cafile is not None else authority
    if cafile is None:
        context = ssl.create_default_context() if trust_env else _of_the_system()
    else:
        source = "TLSConfig.cafile" if tls.cafile is not None else "the environment's CA bundle"
        folder = os.path.isdir(cafile)
        try:
            context = ssl.create_default_context(
                cafile=None if folder else cafile, capath=cafile if folder else None
            )
        except OSError as error:
            raise ValueError(
                f"{source} {os.fspath(cafile)!r} cannot be used: {error.strerror or error}"
            ) from error
    # The default ends at TLS 1.2 in supported Pythons; said here so that it stays so.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.check_hostname = tls.check_hostname
    context.sslsocket_class = type("TLSSocket", (_Checked, sockets), {})
    if tls.certfile is not None:
        try:
            context.load_cert_chain(tls.certfile, tls.keyfile, password=_no_password)
        except OSError as error:
            raise ValueError(
                f"TLSConfig.certfile {os.fspath(tls.certfile)!r} and keyfile cannot be used "
                f"together: {getattr(error, 'reason', None) or error}"
            ) from error
    return context


def _of_the_system() -> ssl.SSLContext:
    # OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR itself when it is asked for the default ones.
    if os.name != "posix":
        return ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    file = paths.openssl_cafile
    return ssl.create_default_context(
        cafile=file if os.path.isfile(file) else None, capath=paths.openssl_capath
    )


def _no_password() -> str:
    # Else OpenSSL asks for it at the terminal, for ever.
    raise ValueError("TLSConfig.keyfile is encrypted: decrypt it where it is stored")
