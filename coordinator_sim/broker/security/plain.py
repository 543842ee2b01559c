"""SASL/PLAIN: users with their passwords, and the server side of an exchange.

Source: RFC 4616; kafka trunk, clients/.../security/plain/internals/PlainSaslServer.java,
PlainServerCallbackHandler.java.
"""

import hmac
import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.broker.security.sasl import SaslStep, refused

_PARTS: Final = 3
_JAAS_USER: Final = re.compile(r"""\buser_([^\s="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))""")
"""A user in the options of Kafka's PlainLoginModule: `user_alice="secret"`."""


class PlainUsers:
    """Passwords by user; they never appear in `repr`.

    Args:
        passwords: Passwords by user name.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)

    def __repr__(self) -> str:
        return f"PlainUsers({len(self._passwords)} users)"

    def __bool__(self) -> bool:
        return bool(self._passwords)

    def knows(self, user: str, password: str) -> bool:
        """Whether the password is the user's; any wrong one takes the same time."""
        known = self._passwords.get(user, "")
        is_right = hmac.compare_digest(known.encode(), password.encode())
        return is_right and user in self._passwords

    def items(self) -> list[tuple[str, str]]:
        """Pairs of user and password, to derive SCRAM credentials from."""
        return list(self._passwords.items())


def jaas_users(text: str) -> dict[str, str]:
    """Passwords by user, as named in a `sasl.jaas.config` of PLAIN."""
    return {
        name: quoted.replace('\\"', '"').replace("\\\\", "\\") if quoted else bare
        for name, quoted, bare in _JAAS_USER.findall(text)
    }


class PlainServer:
    """One exchange, which consists of one token.

    Args:
        users: The users that may log in.
    """

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    def take(self, token: bytes) -> SaslStep:
        """Take the token with user name and password."""
        parts = token.decode(errors="replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            text = f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            return refused(text)
        acts_for, user, password = parts
        if not user:
            return refused("Authentication failed: username not specified")
        if not password:
            return refused("Authentication failed: password not specified")
        if not self._users.knows(user, password):
            return refused("Authentication failed: Invalid username or password")
        if acts_for and acts_for != user:
            text = (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
            return refused(text)
        return SaslStep(user=user)
