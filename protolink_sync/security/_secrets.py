"""What a caller shows to agents: tokens, keys, passwords.

No secret shows in a ``repr`` or an error, and none is pickled: pickle a credential that names
an environment variable instead (``BearerToken.from_env("NAME")``).
"""

from __future__ import annotations

import base64
import os
from typing import Any

from protolink_sync.security._headers import check_header, check_not_own

__all__ = ["APIKey", "BasicAuth", "BearerToken"]


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
        check_not_own(header, what="APIKey")
        self._value, self._variable, self.header = key, None, header

    @classmethod
    def from_env(cls, variable: str, header: str = "X-API-Key") -> APIKey:
        """Read the key from an environment variable, anew for each call."""
        check_header(header, "", what="APIKey")
        check_not_own(header, what="APIKey")
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
