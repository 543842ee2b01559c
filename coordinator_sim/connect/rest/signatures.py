"""Signatures of requests between workers: make, send and check them.

The herder owns the session key and its rotation; this module applies a key to a body.

Source: kafka trunk, connect/runtime/.../rest/InternalRequestSignature.java.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.errors import CoordinatorSimError

SIGNATURE_HEADER: Final = "x-connect-authorization"
"""Header with the MAC of the body, in base64; lower case, as requests keep headers."""
ALGORITHM_HEADER: Final = "x-connect-request-signature-algorithm"
"""Header with the name of the MAC's algorithm."""

_DIGESTS: Final = {
    "hmacmd5": "md5",
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
}
MAC_ALGORITHMS: Final = (
    "HmacMD5",
    "HmacSHA1",
    "HmacSHA224",
    "HmacSHA256",
    "HmacSHA384",
    "HmacSHA512",
)
"""Algorithms that are supported, by Java's names."""
DEFAULT_KEY_SIZE_BITS: Final = {"HmacMD5": 512, "HmacSHA1": 512}
"""Session keys of the other algorithms are as long as the digest."""


class BadSignature(CoordinatorSimError):
    """Headers that cannot be a signature; the message is Java's."""


class RequestSignature:
    """The signature that came with a request.

    Args:
        body: Body of the request, as received.
        key_algorithm: Algorithm of the MAC, as the header names it.
        mac: MAC in the header.
    """

    def __init__(self, body: bytes, key_algorithm: str, mac: bytes) -> None:
        self._body = body
        self.key_algorithm = key_algorithm
        self._mac = mac

    def is_valid(self, key: bytes) -> bool:
        """Whether the MAC that was sent matches the body under this session key."""
        return hmac.compare_digest(sign(key, self._body, self.key_algorithm), self._mac)


def sign(key: bytes, body: bytes, algorithm: str) -> bytes:
    """Return the MAC of a body.

    Args:
        key: The session key.
        body: Bytes to sign; empty without a body.
        algorithm: Java's name, such as HmacSHA256.
    """
    return hmac.digest(key, body, _DIGESTS[algorithm.lower()])


def signature_headers(key: bytes, body: bytes, algorithm: str) -> dict[str, str]:
    """Return the two headers that sign a request."""
    return {
        SIGNATURE_HEADER: base64.b64encode(sign(key, body, algorithm)).decode("ascii"),
        ALGORITHM_HEADER: algorithm,
    }


def signature_of(headers: Mapping[str, str], body: bytes) -> RequestSignature | None:
    """Return the signature of a request; None when one of its headers is missing.

    Raises:
        BadSignature: the algorithm is unknown, or the MAC not base64. The caller answers 400.
    """
    algorithm, encoded = headers.get(ALGORITHM_HEADER), headers.get(SIGNATURE_HEADER)
    if algorithm is None or encoded is None:
        return None
    if algorithm.lower() not in _DIGESTS:
        raise BadSignature(f"Algorithm {algorithm} not available")
    return RequestSignature(body, algorithm, _decoded(encoded))


def key_size_bytes(algorithm: str, size_bits: int | None) -> int:
    """Return the length of a session key that Java's KeyGenerator makes.

    Args:
        algorithm: Java's name.
        size_bits: `inter.worker.key.size`; None for the algorithm's default.
    """
    if size_bits is not None:
        return (size_bits + 7) // 8
    default = DEFAULT_KEY_SIZE_BITS.get(algorithm)
    return default // 8 if default else hashlib.new(_DIGESTS[algorithm.lower()]).digest_size


def _decoded(encoded: str) -> bytes:
    bad = re.search(r"[^A-Za-z0-9+/=]", encoded)
    if bad is not None:
        raise BadSignature(f"Illegal base64 character {ord(bad.group(0)):x}")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise BadSignature("Input byte array has wrong 4-byte ending unit") from None
