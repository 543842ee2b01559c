"""Key stores with a certificate of this machine that signs itself, for listeners in tests."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

PASSWORD = "secret"  # noqa: S105 - of stores in temporary folders


def key_store(folder: Path, kind: str, *, prefix: str) -> dict[str, str]:
    """The settings of a new key store, and of a trust store with its certificate.

    Args:
        folder: Of both.
        kind: PKCS12 or PEM.
        prefix: Of the settings, before `ssl.`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = BestAvailableEncryption(PASSWORD.encode())
    pem = certificate.public_bytes(Encoding.PEM)
    if kind == "PKCS12":
        own = pkcs12.serialize_key_and_certificates(b"worker", key, certificate, None, secret)
        trusted = pkcs12.serialize_key_and_certificates(None, None, None, [certificate], secret)
    else:
        own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem
        trusted = pem
    settings = {}
    for store, content in (("keystore", own), ("truststore", trusted)):
        file = folder / store
        file.write_bytes(content)
        settings[f"{prefix}ssl.{store}.location"] = str(file)
        settings[f"{prefix}ssl.{store}.type"] = kind
        settings[f"{prefix}ssl.{store}.password"] = PASSWORD
    return settings
