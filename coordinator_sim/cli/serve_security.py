"""Parses the options of `serve` for users, certificates and mechanisms; shows no secret."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from coordinator_sim.broker.security.plain import PlainUsers
from coordinator_sim.broker.security.security import MECHANISMS
from coordinator_sim.errors import ConfigError, check_new


def users_of(pairs: Iterable[str], file: Path | None) -> PlainUsers:
    """Users by `NAME:PASSWORD`, from the command line and from the lines of a file.

    Raises:
        ConfigError: one without a colon, or without a name; its text is not repeated.
    """
    lines = [("--user", pair) for pair in pairs]
    if file is not None:
        text = text_of(file)
        lines += [(f"{file}:{number}", line) for number, line in enumerate(text.splitlines(), 1)]
    passwords: dict[str, str] = {}
    for where, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not name or not colon or not password:
            raise ConfigError(f"{where}: wants NAME:PASSWORD")
        check_new(name, passwords, where)
        passwords[name] = password
    return PlainUsers(passwords)


def text_of(file: Path) -> str:
    """What a file of an option holds.

    Raises:
        ConfigError: bytes that are no UTF-8.
        OSError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is no text: wants UTF-8") from None


def _pem_of(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise ConfigError(
            f"{file} is no PEM: Java's key stores are not read, convert it with openssl"
        ) from None


def with_tls(
    properties: Mapping[str, str], *, cert: Path | None, key: Path | None, ca: Path | None
) -> dict[str, str]:
    """The properties, and the settings that certificates and keys of files stand for.

    Raises:
        ConfigError: a key without a certificate, or the other way round.
    """
    found = dict(properties)
    if (key is None) != (cert is None):
        raise ConfigError("--tls-cert and --tls-key want each other")
    if cert is not None and key is not None:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = _pem_of(cert)
        found["ssl.keystore.key"] = _pem_of(key)
    if ca is not None:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = _pem_of(ca)
    return found


def with_mechanisms(properties: Mapping[str, str], listeners: Iterable[str]) -> dict[str, str]:
    """The properties, with all mechanisms of SASL where a listener wants some and none is named."""
    found = dict(properties)
    named = any(name.endswith("sasl.enabled.mechanisms") for name in found)
    protocols = found.get("listener.security.protocol.map", "")
    if not named and any("SASL" in name for name in (*listeners, protocols)):
        found["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
    return found
