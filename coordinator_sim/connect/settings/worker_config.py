"""A distributed Connect worker's configuration, from the properties it is started with.

Elsewhere: the definitions one by one (`worker_settings`). The group member's timeouts in the form
of its port (`clients.config.WorkerConfig`) are derived here.

Source: kafka trunk, connect/runtime/.../distributed/DistributedConfig.java, WorkerConfig.java,
rest/RestServer.java (advertisedUrl), util/ConnectUtils.java (clientIdBase).
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum, unique
from typing import Final, Self

from msgspec import Struct

from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.connect.rest.filters import (
    BASIC_AUTH_EXTENSION,
    CrossOrigin,
    HeaderRule,
    header_rules,
)
from coordinator_sim.connect.settings.client_overrides import OverridePolicy, override_policy
from coordinator_sim.connect.settings.config_def import (
    ClassLookup,
    ConfigInput,
    invalid,
    itself,
)
from coordinator_sim.connect.settings.worker_settings import PASSED_ON_PREFIXES, WORKER_CONFIG_DEF
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim.errors import ConfigError

_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_SCHEMES: Final = ("http", "https")
_PURPOSES: Final = {
    "config": "connector configurations",
    "status": "connector and task statuses",
    "offset": "source connector offsets",
}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*|.)")
"""One escape; those by number together, because Java writes some characters as two."""
_SMALLEST_KEY_BITS: Final = 40
"""Smallest key size of a JVM's key generators."""


@unique
class PluginDiscovery(Enum):
    """Modes of plugin discovery."""

    ONLY_SCAN = "only_scan"
    HYBRID_WARN = "hybrid_warn"
    HYBRID_FAIL = "hybrid_fail"
    SERVICE_LOAD = "service_load"


@unique
class ExactlyOnceSupport(Enum):
    """Exactly-once support of source connectors."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    @property
    def uses_transactional_leader(self) -> bool:
        """Whether the leader writes the config topic in transactions."""
        return self is not ExactlyOnceSupport.DISABLED


class Listener(Struct, frozen=True):
    """One address of the REST server; an empty host means every interface."""

    scheme: str
    host: str
    port: int


class DistributedConfig(Struct, frozen=True, kw_only=True):
    """Configuration of a worker. Durations in milliseconds.

    Args:
        member: Settings of the group membership.
        properties: The properties as given, for settings read by prefix.
        unknown: Unknown keys, in the order given; Kafka only warns of them.
        key_size_bits: Size of session keys; None for the algorithm's default.
        admin_listeners: None for the ordinary listeners; empty for no admin resources at all.
        has_basic_auth: Whether requests need a user and a password.
    """

    group_id: str
    bootstrap_servers: tuple[str, ...]
    client_id: str
    member: WorkerConfig
    offset_topic: InternalTopic
    config_topic: InternalTopic
    status_topic: InternalTopic
    exactly_once: ExactlyOnceSupport
    key_ttl_ms: int
    key_algorithm: str
    key_size_bits: int | None
    signature_algorithm: str
    verification_algorithms: tuple[str, ...]
    key_converter: str
    offset_flush_interval_ms: int
    plugin_path: tuple[str, ...]
    plugin_discovery: PluginDiscovery
    topic_tracking_enable: bool
    topic_tracking_allow_reset: bool
    listeners: tuple[Listener, ...]
    admin_listeners: tuple[Listener, ...] | None
    advertised_host: str | None
    advertised_port: int | None
    advertised_scheme: str
    cross_origin: CrossOrigin | None
    response_headers: tuple[HeaderRule, ...]
    has_basic_auth: bool
    override_policy: OverridePolicy
    properties: dict[str, str]
    unknown: tuple[str, ...]

    @classmethod
    def from_properties(cls, props: Mapping[str, str], class_of: ClassLookup = itself) -> Self:
        """Parse, fill in defaults, and check.

        Args:
            props: Settings by Kafka's names.
            class_of: Looks up installed classes, for converters.

        Raises:
            ConfigError: the first error, in Kafka's words where Kafka checks it.
        """
        values = _Values(WORKER_CONFIG_DEF.parse(props, class_of))
        listeners = tuple(_listener(each) for each in values.texts("listeners"))
        config = cls(
            group_id=values.text("group.id"),
            bootstrap_servers=values.texts("bootstrap.servers"),
            client_id=values.text("client.id"),
            member=_member(values),
            offset_topic=_topic("offset", values, props),
            config_topic=_topic("config", values, props),
            status_topic=_topic("status", values, props),
            exactly_once=ExactlyOnceSupport(values.text("exactly.once.source.support").lower()),
            key_ttl_ms=values.number("inter.worker.key.ttl.ms"),
            key_algorithm=values.text("inter.worker.key.generation.algorithm"),
            key_size_bits=values.number_or_none("inter.worker.key.size"),
            signature_algorithm=values.text("inter.worker.signature.algorithm"),
            verification_algorithms=values.texts("inter.worker.verification.algorithms"),
            key_converter=values.text("key.converter"),
            offset_flush_interval_ms=values.number("offset.flush.interval.ms"),
            plugin_path=values.texts("plugin.path"),
            plugin_discovery=PluginDiscovery(values.text("plugin.discovery").lower()),
            topic_tracking_enable=values.flag("topic.tracking.enable"),
            topic_tracking_allow_reset=values.flag("topic.tracking.allow.reset"),
            listeners=listeners,
            admin_listeners=_admin_listeners(values),
            advertised_host=values.text_or_none("rest.advertised.host.name"),
            advertised_port=values.number_or_none("rest.advertised.port"),
            advertised_scheme=_advertised_scheme(values, listeners),
            cross_origin=CrossOrigin.from_settings(
                values.text("access.control.allow.origin"),
                values.text("access.control.allow.methods"),
            ),
            response_headers=header_rules(values.text("response.http.headers.config")),
            has_basic_auth=_has_basic_auth(values.texts("rest.extension.classes")),
            override_policy=override_policy(
                values.text("connector.client.config.override.policy"),
                props.get("connector.client.config.override.allowlist", ""),
            ),
            properties=dict(props),
            unknown=tuple(
                name
                for name in props
                if name not in WORKER_CONFIG_DEF.keys and not name.startswith(PASSED_ON_PREFIXES)
            ),
        )
        _check_key_settings(config)
        return config

    def advertised_url(self, machine: str) -> str:
        """Return the URL advertised to the other workers, ending with a slash.

        Args:
            machine: Host to use when neither setting nor listener names one.

        Source: RestServer.advertisedUrl.
        """
        host, port = self._advertised(machine)
        return f"{self.advertised_scheme}://{host}:{port}/"

    def worker_id(self, machine: str) -> str:
        """Return `host:port` of the advertised URL: the worker's name in statuses."""
        host, port = self._advertised(machine)
        return f"{host}:{port}"

    @property
    def client_id_base(self) -> str:
        """Prefix of the client ids of the worker's own clients."""
        own = f"-{self.client_id}" if self.client_id.strip() else ""
        return f"{self.group_id}{own}-"

    @property
    def transactional_id(self) -> str:
        """Transactional id of the leader's producer, used when it writes in transactions."""
        return f"connect-cluster-{self.group_id}"

    def _advertised(self, machine: str) -> tuple[str, int]:
        match = next((e for e in self.listeners if e.scheme == self.advertised_scheme), None)
        listener = match or self.listeners[0]
        host = self.advertised_host or (match.host if match is not None else "") or machine
        port = listener.port if self.advertised_port is None else self.advertised_port
        return host, port


def discovery_in(props: Mapping[str, str]) -> PluginDiscovery:
    """Return the mode of plugin discovery, which is needed before the settings are parsed.

    Raises:
        ConfigError: the mode is unknown.

    Source: WorkerConfig.pluginDiscovery.
    """
    given = props.get("plugin.discovery", PluginDiscovery.HYBRID_WARN.value)
    try:
        return PluginDiscovery(given.lower())
    except ValueError:
        known = ", ".join(each.value for each in PluginDiscovery)
        raise ConfigError(f"Invalid plugin.discovery value, must be one of [{known}]") from None


def parse_properties(text: str) -> dict[str, str]:
    """Parse a Java properties file.

    Comments begin with `#` or `!`, a backslash at the end continues a line, the key ends at the
    first `=`, `:` or blank; of repeated keys the last counts.

    Source: java.util.Properties.load.
    """
    settings: dict[str, str] = {}
    logical = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for line in logical.splitlines():
        stripped = line.lstrip()
        if not stripped or stripped[0] in "#!":
            continue
        match = re.match(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", stripped, re.DOTALL)
        if match is not None:
            key, value = (_ESCAPE.sub(_unescaped, part) for part in match.groups())
            settings[key] = value
    return settings


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) > 1:
        units = bytes.fromhex(escaped.replace("\\u", "")[1:])
        return units.decode("utf-16-be", errors="replace")
    return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(escaped, escaped)


class _Values:
    """Parsed settings, read with the type of their definition."""

    def __init__(self, values: Mapping[str, ConfigInput]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return str(self._values[name])

    def text_or_none(self, name: str) -> str | None:
        return None if self._values[name] is None else self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        return value if isinstance(value, tuple) else ()

    def number(self, name: str) -> int:
        return int(self.text(name))

    def number_or_none(self, name: str) -> int | None:
        return None if self._values[name] is None else self.number(name)

    def flag(self, name: str) -> bool:
        return self._values[name] is True


def _member(values: _Values) -> WorkerConfig:
    return WorkerConfig(
        session_timeout_ms=values.number("session.timeout.ms"),
        heartbeat_interval_ms=values.number("heartbeat.interval.ms"),
        rebalance_timeout_ms=values.number("rebalance.timeout.ms"),
        retry_backoff_ms=values.number("retry.backoff.ms"),
        retry_backoff_max_ms=values.number("retry.backoff.max.ms"),
        reconnect_backoff_ms=values.number("reconnect.backoff.ms"),
        reconnect_backoff_max_ms=values.number("reconnect.backoff.max.ms"),
        request_timeout_ms=values.number("request.timeout.ms"),
        metadata_max_age_ms=values.number("metadata.max.age.ms"),
        socket_connection_setup_timeout_ms=values.number("socket.connection.setup.timeout.ms"),
        socket_connection_setup_timeout_max_ms=values.number(
            "socket.connection.setup.timeout.max.ms"
        ),
        connect_protocol=ConnectProtocolCompatibility[values.text("connect.protocol").upper()],
        scheduled_rebalance_max_delay_ms=values.number("scheduled.rebalance.max.delay.ms"),
        worker_sync_timeout_ms=values.number("worker.sync.timeout.ms"),
        worker_unsync_backoff_ms=values.number("worker.unsync.backoff.ms"),
        task_shutdown_graceful_timeout_ms=values.number("task.shutdown.graceful.timeout.ms"),
    )


def _topic(kind: str, values: _Values, props: Mapping[str, str]) -> InternalTopic:
    """Return one of the internal topics. Source: DistributedConfig.topicSettings, the stores."""
    prefix = f"{kind}.storage."
    own = ("topic", "partitions", "replication.factor", "cleanup.policy")
    exactly_once = values.text("exactly.once.source.support").lower()
    return InternalTopic(
        name=values.text(f"{prefix}topic"),
        setting=f"{prefix}topic",
        purpose=_PURPOSES[kind],
        partitions=1 if kind == "config" else values.number(f"{prefix}partitions"),
        replication_factor=values.number(f"{prefix}replication.factor"),
        configs={
            name.removeprefix(prefix): value
            for name, value in props.items()
            if name.startswith(prefix) and name.removeprefix(prefix) not in own
        },
        read_committed=kind != "status" and exactly_once == ExactlyOnceSupport.ENABLED.value,
        retry_backoff_ms=values.number("retry.backoff.ms"),
    )


def _listener(text: str) -> Listener:
    """Parse one listener. Source: RestServer.createConnector."""
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ConfigError("Listener doesn't have the right format (protocol://hostname:port).")
    scheme = match.group(1).lower()
    if scheme not in _SCHEMES:
        raise ConfigError('Listener protocol must be either "http" or "https".')
    return Listener(scheme, match.group(2), int(match.group(3)))


def _admin_listeners(values: _Values) -> tuple[Listener, ...] | None:
    if values.text_or_none("admin.listeners") is None:
        return None
    return tuple(_listener(each) for each in values.texts("admin.listeners"))


def _has_basic_auth(extensions: tuple[str, ...]) -> bool:
    """Whether the basic authentication extension is registered, the only one that is built in.

    Raises:
        ConfigError: another class is named.
    """
    for name in extensions:
        if name != BASIC_AUTH_EXTENSION:
            raise ConfigError(
                f"rest.extension.classes: {name} is not built in; use {BASIC_AUTH_EXTENSION}"
            )
    return bool(extensions)


def _advertised_scheme(values: _Values, listeners: tuple[Listener, ...]) -> str:
    """Return the advertised scheme. Source: RestServer.determineAdvertisedProtocol."""
    chosen = values.text_or_none("rest.advertised.listener")
    if chosen is not None:
        return chosen.lower()
    schemes = [listener.scheme for listener in listeners]
    return "https" if "http" not in schemes and "https" in schemes else "http"


def _check_key_settings(config: DistributedConfig) -> None:
    """Check the session key settings. Source: DistributedConfig.validateInterWorkerKeyConfigs."""
    size = config.key_size_bits
    if size is not None and size < _SMALLEST_KEY_BITS:
        raise ConfigError(
            f"Unable to create key generator with algorithm {config.key_algorithm} and key size "
            f"{size}: Key length must be at least {_SMALLEST_KEY_BITS} bits"
        )
    if config.signature_algorithm not in config.verification_algorithms:
        raise ConfigError(
            invalid(
                "inter.worker.signature.algorithm",
                config.signature_algorithm,
                "Signature algorithm must be present in inter.worker.verification.algorithms list",
            )
        )


def told_of_unknown(names: tuple[str, ...]) -> str | None:
    """Return one line about unknown settings, each with the nearest known name; None for none.

    Source: AbstractConfig.logUnused, which lets the process start all the same.
    """
    if not names:
        return None
    told: list[str] = []
    for name in names:
        near = get_close_matches(name, list(WORKER_CONFIG_DEF.keys), n=1, cutoff=0.6)
        told.append(f"{name} (did you mean {near[0]}?)" if near else name)
    return f"no settings of a Connect worker, ignored: {', '.join(told)}"
