"""Signatures of internal requests: what the headers hold, and what is no signature at all."""

import base64
import hashlib
import hmac

import pytest

from coordinator_sim.connect.rest import signatures

KEY = bytes(range(32))
BODY = b'[{"file":"in.txt"}]'


@pytest.mark.parametrize("algorithm", signatures.MAC_ALGORITHMS)
def test_what_is_signed_is_found_valid(algorithm: str) -> None:
    """The MAC is over the body alone, under the session key."""
    headers = signatures.signature_headers(KEY, BODY, algorithm)
    signature = signatures.signature_of(headers, BODY)
    assert signature is not None
    assert signature.key_algorithm == algorithm
    assert signature.is_valid(KEY)
    assert not signature.is_valid(KEY[::-1])


def test_the_header_holds_the_mac_in_base64() -> None:
    """The header names are Connect's, in the lower case that requests keep."""
    headers = signatures.signature_headers(KEY, BODY, "HmacSHA256")
    mac = hmac.new(KEY, BODY, hashlib.sha256).digest()
    assert headers == {
        "x-connect-authorization": base64.b64encode(mac).decode(),
        "x-connect-request-signature-algorithm": "HmacSHA256",
    }


def test_another_body_is_not_what_was_signed() -> None:
    """A changed body is found invalid."""
    signature = signatures.signature_of(
        signatures.signature_headers(KEY, BODY, "HmacSHA256"), BODY + b" "
    )
    assert signature is not None
    assert not signature.is_valid(KEY)


def test_one_missing_header_is_no_signature() -> None:
    """Both headers are needed."""
    headers = signatures.signature_headers(KEY, BODY, "HmacSHA256")
    for name in (signatures.SIGNATURE_HEADER, signatures.ALGORITHM_HEADER):
        rest = {key: value for key, value in headers.items() if key != name}
        assert signatures.signature_of(rest, BODY) is None


@pytest.mark.parametrize(
    ("algorithm", "encoded", "message"),
    [
        ("Nope", "AAAA", "Algorithm Nope not available"),
        ("HmacSHA256", "!!", "Illegal base64 character 21"),
        ("HmacSHA256", "AAAAA", "Input byte array has wrong 4-byte ending unit"),
    ],
)
def test_headers_that_cannot_be_read_are_refused(
    algorithm: str, encoded: str, message: str
) -> None:
    """The message is the one of Java's library."""
    with pytest.raises(signatures.BadSignature, match=message):
        signatures.signature_of(
            {signatures.SIGNATURE_HEADER: encoded, signatures.ALGORITHM_HEADER: algorithm}, BODY
        )


def test_session_keys_are_as_long_as_javas() -> None:
    """A size in bits is rounded up to bytes; without one the algorithm decides."""
    assert signatures.key_size_bytes("HmacSHA256", None) == 32
    assert signatures.key_size_bytes("HmacSHA1", None) == 64
    assert signatures.key_size_bytes("HmacSHA512", None) == 64
    assert signatures.key_size_bytes("HmacSHA256", 41) == 6
