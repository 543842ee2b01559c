"""How a client gets in, from the settings of a Java client: TLS, and SASL with a password.

Source: Kafka's SaslClientAuthenticator (SaslHandshake 1, then SaslAuthenticate); names of settings
from SaslConfigs, SslConfigs and CommonClientConfigs.
"""

import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from scramp import ScramClient, ScramException

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.wire.kio_bodies import Json

Ask = Callable[[str, int, Json], Json]
"""Sends a request of an API and a version, and returns its answer."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAAS_OPTION: Final = re.compile(r"\b(username|password)\s*=\s*\"((?:\\.|[^\"\\])*)\"")
_PEM: Final = "PEM"


class Security(Struct, frozen=True, kw_only=True):
    """How connections are made safe.

    Args:
        tls: Context of TLS; None for plain text.
        checks_host: Whether the certificate must name the host.
        mechanism: Mechanism of SASL; empty for none.
        username: Who logs in.
        password: With what.
    """

    tls: ssl.SSLContext | None = None
    checks_host: bool = True
    mechanism: str = ""
    username: str = ""
    password: str = ""


def security_of(settings: Mapping[str, str]) -> Security:
    """Return what a client's settings ask for.

    Raises:
        ConfigError: a protocol, mechanism or kind of store that is not known here, or no login.
    """
    protocol = settings.get("security.protocol", _PROTOCOLS[0]).upper()
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"security.protocol={protocol}: use one of {', '.join(_PROTOCOLS)}")
    checks_host = bool(settings.get("ssl.endpoint.identification.algorithm", "https"))
    tls = _context(settings, checks_host) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Security(tls=tls, checks_host=checks_host)
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in _MECHANISMS:
        raise ConfigError(f"sasl.mechanism={mechanism}: use one of {', '.join(_MECHANISMS)}")
    found = dict(_JAAS_OPTION.findall(settings.get("sasl.jaas.config", "")))
    if found.keys() != {"username", "password"}:
        raise ConfigError('sasl.jaas.config wants username="..." and password="..."')
    login = {name: re.sub(r"\\(.)", r"\1", text) for name, text in found.items()}
    return Security(tls=tls, checks_host=checks_host, mechanism=mechanism, **login)


def _context(settings: Mapping[str, str], checks_host: bool) -> ssl.SSLContext:
    """Return the context of TLS: whom the client trusts, and its own certificate."""
    for store in ("truststore", "keystore"):
        kind = settings.get(f"ssl.{store}.type", _PEM if not _named(settings, store) else "JKS")
        if kind.upper() != _PEM:
            raise ConfigError(
                f"ssl.{store}.type={kind}: only PEM is read here; convert the store with keytool "
                "and openssl, and set ssl.{store}.type=PEM".replace("{store}", store)
            )
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.truststore.location"),
            cadata=settings.get("ssl.truststore.certificates"),
        )
        own = settings.get("ssl.keystore.location")
        if own is not None:
            context.load_cert_chain(own, password=settings.get("ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificates of TLS cannot be read: {error}") from None
    context.check_hostname = checks_host
    return context


def _named(settings: Mapping[str, str], store: str) -> bool:
    return f"ssl.{store}.location" in settings


def log_in(security: Security, ask: Ask) -> None:
    """Log in on a connection, if the security asks for it.

    Args:
        security: With whom and how.
        ask: Sends a request on that connection, and returns its answer.

    Raises:
        DataError: the endpoint has no such mechanism, or refuses the login.
    """
    if not security.mechanism:
        return
    offered = ask("SaslHandshake", 1, {"mechanism": security.mechanism})
    if offered["errorCode"]:
        known = ", ".join(offered["mechanisms"]) or "none"
        raise DataError(f"no SASL mechanism {security.mechanism}; the endpoint offers {known}")

    def exchanged(data: bytes) -> bytes:
        answer = ask("SaslAuthenticate", 1, {"authBytes": b64encode(data).decode("ascii")})
        if answer["errorCode"]:
            raise DataError(f"the login as {security.username!r} failed: {answer['errorMessage']}")
        return b64decode(answer["authBytes"])

    if security.mechanism == "PLAIN":
        exchanged(f"\0{security.username}\0{security.password}".encode())
        return
    client = ScramClient([security.mechanism], security.username, security.password)
    try:
        client.set_server_first(exchanged(client.get_client_first().encode()).decode())
        client.set_server_final(exchanged(client.get_client_final().encode()).decode())
    except ScramException as refused:
        raise DataError(f"the login as {security.username!r} failed: {refused}") from None
