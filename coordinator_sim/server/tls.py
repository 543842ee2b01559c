"""TLS of a listener: its certificate, its trusted CAs, and principals from client certificates.

Certificates and keys are PEM; Java's key stores are not read.

Source: kafka trunk, clients/.../security/ssl/DefaultSslEngineFactory.java (PEM stores),
SslFactory.java; SslConfigs.java.
"""

import ssl
import tempfile
from pathlib import Path
from typing import Final, cast

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.security.certificate_names import PrincipalRules, Subject
from coordinator_sim.broker.security.sasl import ANONYMOUS
from coordinator_sim.errors import ConfigError

_PEM: Final = "PEM"
_KEY: Final = "ssl.keystore.key"
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PROTOCOLS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


class ListenerTls:
    """TLS of one listener.

    Args:
        configs: Settings of the cluster.
        listener: Name of the listener.
    """

    __slots__ = ("_rules", "context")

    def __init__(self, configs: Configs, listener: str) -> None:
        self.context = _context(configs, listener)
        rules = configs.listener_value(listener, "ssl.principal.mapping.rules")
        self._rules = PrincipalRules(str(rules))

    def principal(self, socket: ssl.SSLObject) -> str | None:
        """The principal of a connection's client; None when no rule matches its name."""
        certificate = socket.getpeercert()
        if not certificate:
            return ANONYMOUS
        return self._rules.principal(cast("Subject", certificate["subject"]))


def _context(configs: Configs, listener: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanted = configs.listener_value(listener, "ssl.enabled.protocols")
    spoken = [_PROTOCOLS[each] for each in _names(wanted) if each in _PROTOCOLS]
    context.minimum_version = min(spoken, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(spoken, default=ssl.TLSVersion.TLSv1_3)
    secret = configs.listener_value(listener, "ssl.key.password")
    chain = _pem(configs, listener, "keystore", ("ssl.keystore.certificate.chain", _KEY))
    if chain is None:
        raise ConfigError(
            f"listener {listener} needs a certificate: --tls-cert and --tls-key, or "
            "ssl.keystore.location with ssl.keystore.type=PEM"
        )
    trusted = _pem(configs, listener, "truststore", ("ssl.truststore.certificates",))
    try:
        _load_chain(context, chain, _password(secret))
        if trusted is not None:
            context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigError(f"TLS of listener {listener}: {error.reason or 'no PEM'}") from None
    context.verify_mode = _client_auth(configs, listener, is_trusting=trusted is not None)
    return context


def _client_auth(configs: Configs, listener: str, *, is_trusting: bool) -> ssl.VerifyMode:
    wanted = str(configs.listener_value(listener, "ssl.client.auth"))
    mode = _CLIENT_AUTH[wanted]
    if mode is not ssl.CERT_NONE and not is_trusting:
        raise ConfigError(
            f"ssl.client.auth={wanted} wants certificates to trust: --tls-ca, or "
            "ssl.truststore.location with ssl.truststore.type=PEM"
        )
    return mode


def _pem(configs: Configs, listener: str, store: str, inline: tuple[str, ...]) -> str | None:
    """The PEM text of a store, from its file or from the settings; None without one.

    Raises:
        ConfigError: the store is not PEM, or its file cannot be read.
    """
    location = configs.listener_value(listener, f"ssl.{store}.location")
    said = [configs.listener_value(listener, name) for name in inline]
    if not location and not said[0]:
        return None
    kind = configs.listener_value(listener, f"ssl.{store}.type")
    if kind != _PEM:
        raise ConfigError(f"ssl.{store}.type={kind}: only PEM is read")
    if not location:
        return "\n".join(str(each) for each in said if each)
    try:
        return Path(str(location)).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no PEM"
        raise ConfigError(f"ssl.{store}.location={location}: {reason}") from None


def _load_chain(context: ssl.SSLContext, chain: str, password: str) -> None:
    """Load a chain through a private temporary file, as Python only reads files."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:
        file.write(chain)
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _password(secret: object) -> str:
    """The password, empty if none is set, so that an encrypted key is an error and no prompt."""
    return secret if isinstance(secret, str) else ""


def _names(value: object) -> list[str]:
    return value if isinstance(value, list) else []
