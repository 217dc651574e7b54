"""What a caller holds: TLS files, and credentials that become headers.

No secret shows in a ``repr`` or an error, and none is pickled: pickle a credential that names
an environment variable instead (``BearerToken.from_env("NAME")``).
"""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

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

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}

# In the names of headers whose values are secrets.
_SECRET_WORDS = ("auth", "cookie", "credential", "key", "pass", "secret", "token")

# What the transports set themselves; a second value would be a contradiction.
_OWN_HEADERS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "idempotency-key")
)


@functools.lru_cache(maxsize=1024)
def origin(url: str) -> str:
    """Return the origin of a URL in one spelling: scheme, host, and the port if not the default.

    Args:
        url: An absolute URL.

    Raises:
        ValueError: The URL has no scheme or no host, or its port is no number.

    Source:
        RFC 6454, 4 and 6.1.

    >>> origin("https://H.example:443/x") == origin("https://h.example")
    True
    >>> origin("http://[0:0::1]:8")
    'http://[::1]:8'
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if not scheme or not host:
        raise ValueError(f"{url!r} is no absolute URL: it needs a scheme and a host")
    if ":" in host:
        import ipaddress  # few addresses are IPv6

        host = f"[{ipaddress.ip_address(host).compressed}]"
    port = parts.port
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def check_header(name: str, value: str, *, what: str) -> None:
    """Refuse a header that could end its line or cannot be sent; the value is not shown.

    Args:
        name: Name of the header.
        value: Its value.
        what: Where the caller gave it, for the message.

    Raises:
        TypeError: Name or value is no text.
        ValueError: Name or value has a character that is not allowed.

    Source:
        RFC 9110, 5.1 and 5.5: a name is a token, a value printable ASCII.
    """
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(f"{what} must have text as name and value of {name!r}")
    if not name or not all(c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name):
        raise ValueError(f"{what} has the header name {name!r}, which is not allowed in HTTP")
    for position, character in enumerate(value):
        if character in "\r\n\0":
            raise ValueError(
                f"{what} holds a line break or NUL at position {position} (header {name}): "
                "strip() it where it is read"
            )
        if not " " <= character <= "~" and character != "\t":
            raise ValueError(
                f"{what} holds a character at position {position} that is not printable ASCII "
                f"(header {name})"
            )


def _check_not_own(name: str, *, what: str) -> None:
    """Refuse a header that the transport sets itself."""
    if name.lower() in _OWN_HEADERS or name.lower().startswith("x-protolink-"):
        raise ValueError(f"{what} has {name}, which the transport sets itself: leave it out")


def caller_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers a caller gives to a transport, checked.

    Raises:
        TypeError: A name or a value is no text.
        ValueError: A header is not allowed in HTTP, or is one the transport sets itself.
    """
    result: dict[str, str] = {}
    for name, value in (headers or {}).items():
        check_header(name, value, what="headers=")
        _check_not_own(name, what="headers=")
        result[name] = value
    return result


def refuse_secret_headers(headers: Mapping[str, str], *, what: str) -> None:
    """Refuse to pickle headers whose names say that their values are secrets.

    Args:
        headers: The headers.
        what: Whose they are, for the message.

    Raises:
        TypeError: One is a secret.
    """
    secret = sorted(name for name in headers if any(word in name.lower() for word in _SECRET_WORDS))
    if secret:
        raise TypeError(
            f"{what} holds a secret ({', '.join(secret)}) and cannot be pickled: use "
            'credentials=BearerToken.from_env("NAME")'
        )


def _secret(value: str | None, variable: str | None, *, what: str) -> str:
    """Return a secret given as text or as the name of an environment variable."""
    if variable is None:
        return value or ""
    found = os.environ.get(variable)
    if not found:
        raise ValueError(f"{what}: the environment variable {variable} is not set")
    return found


def _is_half(character: str) -> bool:
    """Return whether a character is half a surrogate pair, so no text outside of Python."""
    return "\ud800" <= character <= "\udfff"


class _Secret:
    """A credential: its ``repr`` masks it, and only a reference to it can be pickled."""

    __slots__ = ("_value", "_variable")

    _value: str | None
    _variable: str | None

    @classmethod
    def _referring(cls, variable: str, **fields: Any) -> Any:
        if not isinstance(variable, str) or not variable:
            raise ValueError(
                f"{cls.__name__}.from_env needs the name of an environment variable, "
                f"not {variable!r}"
            )
        self = cls.__new__(cls)
        self._value, self._variable = None, variable
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def _reveal(self) -> str:
        value = _secret(self._value, self._variable, what=f"{type(self).__name__}.from_env")
        if self._variable is not None:
            # A literal was checked when it was given; this one is seen for the first time.
            self._check(value, what=f"the environment variable {self._variable}")
        return value

    @staticmethod
    def _check(value: str, *, what: str) -> None:
        """Refuse a secret that cannot be sent, without showing it."""
        check_header("Authorization", value, what=what)

    def _shown(self) -> str:
        return "***" if self._variable is None else f"from environment {self._variable}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    def _refuse_pickle(self) -> None:
        if self._variable is None:
            raise TypeError(
                f"{type(self).__name__} holds a secret and cannot be pickled: use "
                f'{type(self).__name__}.from_env("NAME"), which pickles the name only'
            )


class BearerToken(_Secret):
    """Send ``Authorization: Bearer <token>``.

    Args:
        token: The token; printable ASCII without line breaks.

    Raises:
        TypeError: The token is no text.
        ValueError: The token is empty or holds a character that cannot be sent.
    """

    __slots__ = ()

    def __init__(self, token: str) -> None:
        if not isinstance(token, str):
            raise TypeError(f"BearerToken needs a text, not {type(token).__name__}")
        if not token:
            raise ValueError("BearerToken is empty")
        self._check(token, what="BearerToken")
        self._value, self._variable = token, None

    @classmethod
    def from_env(cls, variable: str) -> BearerToken:
        """Read the token from an environment variable, anew for each call."""
        self: BearerToken = cls._referring(variable)
        return self

    def headers(self) -> dict[str, str]:
        """Return the headers to send."""
        return {"Authorization": f"Bearer {self._reveal()}"}

    def __reduce__(self) -> Any:
        self._refuse_pickle()
        return type(self).from_env, (self._variable,)


class APIKey(_Secret):
    """Send an API key in a header of its own.

    Args:
        key: The key; printable ASCII without line breaks.
        header: Name of the header.

    Raises:
        TypeError: Key or header is no text.
        ValueError: The key is empty or cannot be sent.
    """

    __slots__ = ("header",)

    def __init__(self, key: str, header: str = "X-API-Key") -> None:
        if not isinstance(key, str):
            raise TypeError(f"APIKey needs a text, not {type(key).__name__}")
        if not key:
            raise ValueError("APIKey is empty")
        check_header(header, key, what="APIKey")
        _check_not_own(header, what="APIKey")
        self._value, self._variable, self.header = key, None, header

    @classmethod
    def from_env(cls, variable: str, header: str = "X-API-Key") -> APIKey:
        """Read the key from an environment variable, anew for each call."""
        check_header(header, "", what="APIKey")
        _check_not_own(header, what="APIKey")
        self: APIKey = cls._referring(variable, header=header)
        return self

    def headers(self) -> dict[str, str]:
        """Return the headers to send."""
        return {self.header: self._reveal()}

    def __reduce__(self) -> Any:
        self._refuse_pickle()
        return type(self).from_env, (self._variable, self.header)


class BasicAuth(_Secret):
    """Send ``Authorization: Basic`` with user and password, base64-encoded as UTF-8.

    Args:
        user: Name of the user; without a colon.
        password: The password.

    Raises:
        TypeError: User or password is no text.
        ValueError: The user is empty or has a colon, or a character cannot be sent.

    Source:
        RFC 7617, 2 and 2.1.
    """

    __slots__ = ("user",)

    def __init__(self, user: str, password: str) -> None:
        if not isinstance(user, str) or not isinstance(password, str):
            raise TypeError("BasicAuth needs user and password as text")
        self._check_user(user)
        self._check(password, what="BasicAuth")
        self._value, self._variable, self.user = password, None, user

    @classmethod
    def _check_user(cls, user: str) -> None:
        if not user or ":" in user:
            raise ValueError("BasicAuth needs a user without a colon: the colon ends the name")
        cls._check(user, what="BasicAuth")

    @staticmethod
    def _check(value: str, *, what: str) -> None:
        """Refuse control characters, and what UTF-8 cannot hold (RFC 7617, 2)."""
        for position, character in enumerate(value):
            if character < " " or "\x7f" <= character <= "\x9f" or _is_half(character):
                raise ValueError(
                    f"{what} holds a character at position {position} that BasicAuth cannot send: "
                    "a line break, another control character, or half a surrogate pair"
                )

    @classmethod
    def from_env(cls, user: str, variable: str) -> BasicAuth:
        """Read the password from an environment variable, anew for each call."""
        cls._check_user(user)
        self: BasicAuth = cls._referring(variable, user=user)
        return self

    def headers(self) -> dict[str, str]:
        """Return the headers to send."""
        pair = f"{self.user}:{self._reveal()}".encode()
        return {"Authorization": "Basic " + base64.b64encode(pair).decode("ascii")}

    def __repr__(self) -> str:
        return f"BasicAuth({self.user!r}, {self._shown()})"

    def __reduce__(self) -> Any:
        self._refuse_pickle()
        return type(self).from_env, (self.user, self._variable)


# One value for every origin the client is told to call; a mapping from origin to value; or a
# callable (origin, refresh) -> headers or None, asked for each attempt.
Credentials = (
    str
    | BearerToken
    | APIKey
    | BasicAuth
    | Mapping[str, str | BearerToken | APIKey | BasicAuth]
    | Callable[[str, bool], Mapping[str, str] | None]
)


def check_credentials(credentials: Credentials | None) -> Credentials | None:
    """Return credentials ready for use: texts become bearer tokens, origins one spelling.

    Raises:
        TypeError: The value is none of the forms of ``Credentials``.
        ValueError: A text cannot be sent, or a key of a mapping is no origin.
    """
    if credentials is None or isinstance(credentials, (BearerToken, APIKey, BasicAuth)):
        return credentials
    if isinstance(credentials, str):
        return BearerToken(credentials)
    if isinstance(credentials, Mapping):
        result: dict[str, Any] = {}
        for key, value in credentials.items():
            if not isinstance(value, (str, BearerToken, APIKey, BasicAuth)):
                raise TypeError(
                    f"credentials for {key!r} are a {type(value).__name__}, must be a str, "
                    "BearerToken, APIKey or BasicAuth"
                )
            result[origin(key)] = BearerToken(value) if isinstance(value, str) else value
        return result
    if callable(credentials):
        return credentials
    raise TypeError(
        f"credentials is a {type(credentials).__name__}, must be a str, BearerToken, APIKey, "
        "BasicAuth, a mapping from origin to one of these, or a callable (origin, refresh)"
    )


def credential_headers(
    credentials: Credentials | None, url: str, *, refresh: bool = False
) -> Mapping[str, str] | None:
    """Return the headers that carry the credentials for one address.

    Args:
        credentials: As :func:`check_credentials` returned them.
        url: The address that is called.
        refresh: True when the peer refused what was sent before; only a callable can answer
            differently then.

    Raises:
        TypeError: A callable returned no mapping.
        ValueError: A callable returned a header that cannot be sent, or an environment variable
            is not set.
    """
    if credentials is None:
        return None
    if isinstance(credentials, (BearerToken, APIKey, BasicAuth)):
        return credentials.headers()
    if isinstance(credentials, Mapping):
        value = credentials.get(origin(url))
        return None if value is None else value.headers()  # type: ignore[union-attr]
    headers = credentials(origin(url), refresh)  # type: ignore[operator]
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise TypeError(
            f"the credentials callable returned a {type(headers).__name__}, "
            "must be a mapping of headers or None"
        )
    for name, value in headers.items():
        check_header(name, value, what="the credentials callable's result")
        _check_not_own(name, what="the credentials callable's result")
    return headers


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
