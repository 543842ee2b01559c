"""SCRAM as Kafka implements it: credentials, and the server side of an exchange.

Passwords and names are taken as UTF-8, without SASLprep, as in Kafka's ScramFormatter. Channel
binding is not offered.

Source: RFC 5802; kafka trunk, clients/.../security/scram/internals/{ScramFormatter,ScramMessages,
ScramMechanism,ScramSaslServer}.java; ScramControlManager.java (bounds).
"""

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.metadata.changes import ScramSet
from coordinator_sim.broker.security.sasl import SaslStep, refused

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384


class ScramMechanism(Struct, frozen=True):
    """A SCRAM mechanism.

    Args:
        name: Name in SASL.
        number: Number in Kafka's requests.
        digest: Hash function, as `hashlib` names it.
    """

    name: str
    number: int
    digest: str


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
SCRAM_MECHANISMS: Final = {
    mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)
}
SCRAM_NUMBERS: Final = {mechanism.number: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}

_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,(?:m={_VALUE},)?"
    rf"n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS})"
)
_CLIENT_FINAL: Final = re.compile(
    rf"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)
_OTHER_USER: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """The salted password, which clients send instead of the password; Hi of RFC 5802."""
    return pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def verifier(
    mechanism: ScramMechanism, user: str, salted: bytes, *, salt: bytes, iterations: int
) -> ScramSet:
    """The credential of a salted password, which a broker stores. Source: finishUpsertion."""
    stored_key = _hash(mechanism, _hmac(mechanism, salted, b"Client Key"))
    server_key = _hmac(mechanism, salted, b"Server Key")
    return ScramSet(user, mechanism.number, iterations, salt, stored_key, server_key)


def verifier_of(
    mechanism: ScramMechanism,
    user: str,
    password: str,
    *,
    salt: bytes,
    iterations: int = MIN_ITERATIONS,
) -> ScramSet:
    """The credential of a password, which a broker stores."""
    salted = salted_password(mechanism, password, salt, iterations)
    return verifier(mechanism, user, salted, salt=salt, iterations=iterations)


class ScramServer:
    """Server side of one exchange.

    Args:
        mechanism: The mechanism.
        find: Finds the credential of a user; None if there is none.
        nonce: The server's part of the nonce, without comma.
    """

    def __init__(
        self, mechanism: ScramMechanism, find: Callable[[str], ScramSet | None], nonce: str
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._verifier: ScramSet | None = None
        self._first = ""
        self._said = ""

    def take(self, token: bytes) -> SaslStep:
        """Take a message of the client: first its name, then its proof."""
        text = token.decode(errors="replace")
        return self._take_first(text) if self._verifier is None else self._take_final(text)

    def _take_first(self, text: str) -> SaslStep:
        found = _CLIENT_FIRST.fullmatch(text)
        user = None if found is None else _user_of(found["name"])
        if found is None or user is None:
            return refused()
        known = self._find(user)
        if known is None:
            return refused()
        if found["authzid"] and found["authzid"] != user:
            return refused(_OTHER_USER)
        if known.iterations < MIN_ITERATIONS:
            return refused()
        self._verifier = known
        self._nonce = found["nonce"] + self._nonce
        self._first = f"n={found['name']},r={found['nonce']}{found['extensions']}"
        salt = b64encode(known.salt).decode()
        self._said = f"r={self._nonce},s={salt},i={known.iterations}"
        return SaslStep(self._said.encode())

    def _take_final(self, text: str) -> SaslStep:
        found = _CLIENT_FINAL.fullmatch(text)
        known = self._verifier
        if found is None or known is None or not found["nonce"].endswith(self._nonce):
            return refused()
        # The channel binding is encoded again in its shortest form, as by Kafka's parser.
        channel = b64encode(b64decode(found["channel"])).decode()
        message = f"{self._first},{self._said},c={channel},r={found['nonce']}".encode()
        signature = _hmac(self._mechanism, known.stored_key, message)
        proof = b64decode(found["proof"])
        if len(proof) != len(signature):
            return refused()
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(_hash(self._mechanism, client_key), known.stored_key):
            return refused()
        answer = b64encode(_hmac(self._mechanism, known.server_key, message)).decode()
        return SaslStep(f"v={answer}".encode(), user=known.user)


def _user_of(saslname: str) -> str | None:
    """Decode a user name; None if it is malformed. Source: ScramFormatter.username."""
    user = saslname.replace("=2C", ",")
    return None if "=" in user.replace("=3D", "") else user.replace("=3D", "=")


def _hmac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.digest)


def _hash(mechanism: ScramMechanism, data: bytes) -> bytes:

    return new_hash(mechanism.digest, data).digest()
