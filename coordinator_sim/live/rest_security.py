"""TLS and passwords of a worker's REST server, from the files that its settings name.

Key stores are PKCS12, which a JVM reads too, or PEM; the older JKS is not read.

Source: kafka 4.3, connect/runtime/.../rest/util/SSLUtils.java;
connect/basic-auth-extension/.../PropertyFileLoginModule.java.
"""

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from coordinator_sim.connect.settings.worker_config import parse_properties
from coordinator_sim.errors import ConfigError

PUBLIC: Final = "listeners.https."
ADMIN: Final = "admin.listeners.https."
"""Prefixes of the TLS settings of the ordinary listeners, and of those for admins."""
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OPTION: Final = re.compile(r"-Djava\.security\.auth\.login\.config=(\S+)")
_ENTRY: Final = re.compile(r"\bKafkaConnect\s*\{\s*(\S+)\s+\w+\s*([^}]*?);?\s*\}\s*;", re.DOTALL)
_MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_FILE: Final = re.compile(r'\bfile\s*=\s*(?:"([^"]*)"|(\S+))')
_COMMENTS: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def server_context(properties: Mapping[str, str], prefix: str) -> ssl.SSLContext:
    """Return the TLS of `https` listeners.

    Args:
        properties: Settings of the worker.
        prefix: Of their own settings; where there is one, no other counts.

    Raises:
        ConfigError: a store is missing, or cannot be read.
    """
    settings = _settings(properties, prefix)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = _versions(settings.get("enabled.protocols", ""))
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if "keystore.location" not in settings:
        raise ConfigError(f"https needs a certificate: {prefix}ssl.keystore.location=FILE")
    _load_key(context, settings)
    _load_trusted(context, settings)
    auth = settings.get("client.auth", "none")
    if auth not in _CLIENT_AUTH:
        raise ConfigError(f"ssl.client.auth={auth}: use none, requested or required")
    context.verify_mode = _CLIENT_AUTH[auth]
    if auth != "none" and "truststore.location" not in settings:
        raise ConfigError(f"ssl.client.auth={auth} needs {prefix}ssl.truststore.location=FILE")
    return context


def _versions(protocols: str) -> list[ssl.TLSVersion]:
    """Versions of TLS among `ssl.enabled.protocols`, those before 1.2 left out.

    Raises:
        ConfigError: there is none.
    """
    names = [each.strip() for each in protocols.split(",") if each.strip()] or list(_PROTOCOLS)
    versions = [_PROTOCOLS[name] for name in names if name in _PROTOCOLS]
    if not versions:
        raise ConfigError(f"ssl.enabled.protocols={protocols}: use {' or '.join(_PROTOCOLS)}")
    return versions


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS of calls to other workers, made of the settings of `https` listeners.

    Raises:
        ConfigError: a store cannot be read.
    """
    settings = _settings(properties, PUBLIC)
    context = ssl.create_default_context()
    if settings.get("endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    if "keystore.location" in settings:
        _load_key(context, settings)
    _load_trusted(context, settings)
    return context


def credentials(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the passwords of the login module's file, by user.

    DEVIATION: a worker without a login configuration is not started; Kafka's refuses each request.

    Args:
        environment: With `KAFKA_OPTS`, the options of a JVM; None for that of the process.

    Raises:
        ConfigError: `KAFKA_OPTS` names no login configuration, it has no `KafkaConnect`, that is
            another module than Kafka's own, or a file cannot be read.
    """
    options = (os.environ if environment is None else environment).get("KAFKA_OPTS", "")
    named = _OPTION.search(options)
    if named is None:
        raise ConfigError(
            "basic authentication needs a login configuration: set "
            "KAFKA_OPTS=-Djava.security.auth.login.config=FILE"
        )
    entry = _ENTRY.search(_COMMENTS.sub("", _text(named[1])))
    if entry is None:
        raise ConfigError(f"{named[1]} has no entry KafkaConnect {{ MODULE required ...; }};")
    if entry[1] != _MODULE:
        raise ConfigError(f"{named[1]}: {entry[1]} is not built in; use {_MODULE}")
    file = _FILE.search(entry[2])
    if file is None:
        raise ConfigError(f'{named[1]}: Property Credentials file must be specified: file="FILE"')
    return parse_properties(_text(file[1] or file[2], "latin-1"))


def _text(name: str, encoding: str = "utf-8") -> str:
    try:
        return Path(name).read_text(encoding)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise ConfigError(f"{name}: {reason}") from None


def _settings(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Settings of TLS without `ssl.`. Source: AbstractConfig.valuesWithPrefixAllOrNothing."""
    is_own = any(name.startswith(prefix) for name in properties)
    start = f"{prefix}ssl." if is_own else "ssl."
    return {
        name.removeprefix(start): value
        for name, value in properties.items()
        if name.startswith(start)
    }


def _store(settings: Mapping[str, str], store: str) -> tuple[str, bytes]:
    """Return the type and the content of a store.

    Raises:
        ConfigError: it is neither PKCS12 nor PEM, or cannot be read.
    """
    location = settings[f"{store}.location"]
    kind = settings.get(f"{store}.type", "JKS")
    if kind not in {"PKCS12", "PEM"}:
        text = f"ssl.{store}.type={kind} is not read; use PKCS12, as `keytool` makes by default"
        raise ConfigError(text)
    try:
        return kind, Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"ssl.{store}.location={location}: {error.strerror}") from None


def _pkcs12(
    settings: Mapping[str, str], store: str, data: bytes
) -> pkcs12.PKCS12KeyAndCertificates:
    password = settings.get(f"{store}.password", "")
    try:
        return pkcs12.load_pkcs12(data, password.encode())
    except ValueError:
        location = settings[f"{store}.location"]
        text = f"ssl.{store}.location={location}: no PKCS12, or another ssl.{store}.password"
        raise ConfigError(text) from None


def _load_key(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    """Load a key and its certificates, by way of a private file, for Python reads no others."""
    kind, data = _store(settings, "keystore")
    if kind == "PKCS12":
        found = _pkcs12(settings, "keystore", data)
        if found.key is None or found.cert is None:
            raise ConfigError(f"ssl.keystore.location={settings['keystore.location']}: no key")
        chain = [found.cert, *found.additional_certs]
        data = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        data += b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(data)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=settings.get("key.password", ""))
        except ssl.SSLError as error:
            location = settings["keystore.location"]
            reason = error.reason or "no PEM, or another ssl.key.password"
            raise ConfigError(f"ssl.keystore.location={location}: {reason}") from None


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    if "truststore.location" not in settings:
        return
    kind, data = _store(settings, "truststore")
    if kind == "PKCS12":
        found = _pkcs12(settings, "truststore", data)
        trusted = [*([found.cert] if found.cert else []), *found.additional_certs]
        data = b"".join(each.certificate.public_bytes(Encoding.PEM) for each in trusted)
    try:
        context.load_verify_locations(cadata=data.decode("ascii"))
    except (ssl.SSLError, ValueError):
        location = settings["truststore.location"]
        raise ConfigError(f"ssl.truststore.location={location}: no certificates") from None
