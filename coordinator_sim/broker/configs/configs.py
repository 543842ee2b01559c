"""The value of each setting of a topic, a broker or a group, and the source of that value.

Source: kafka trunk, metadata/.../metadata/KafkaConfigSchema.java (resolveEffectiveTopicConfig);
server-common ServerTopicConfigSynonyms.java; core DynamicBrokerConfig.scala. Orders:
ConfigHelperUtils.createResponseConfig, ConfigHelper.scala (allConfigs) before 4.2. Of logs:
storage LogConfig.java; LogManager.fetchOrCreateConfig; kafka 2.8, LogManager.apply
(maxPidExpirationMs).
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.configs.setting_types import (
    Setting,
    Settings,
    SettingType,
    Value,
    default_of,
    parse,
    settings_of,
    text_of,
)
from coordinator_sim.broker.metadata.image import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, scala_map_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.compression import ContentBounds
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.log_config import NEVER_MS, BatchBounds, LogConfig

_LONGEST_SIMILAR: Final = 100
"""Longest name, in characters, to search a similar one for; the longest known one has 59."""
_SEARCHED: Final = 100
_LISTENER_PREFIX: Final = "listener.name."
_OF_PLUGINS: Final = {
    setting.name: setting
    for setting in (
        Setting(of="broker", name="super.users", type=SettingType.STRING),
        Setting(of="broker", name="allow.everyone.if.no.acl.found", type=SettingType.BOOLEAN),
    )
}
"""Settings that only the authorizer reads."""
MAX_RECORDS: Final = "simulator.batch.max.records"
MAX_CONTENT_BYTES: Final = "simulator.batch.max.content.bytes"
MAX_BLOCKS: Final = "simulator.batch.max.blocks"
_OWN: Final = {
    name: Setting(of="broker", name=name, type=SettingType.LONG, default=str(usual), at_least="1")
    for name, usual in (
        (MAX_RECORDS, BatchBounds().max_records),
        (MAX_CONTENT_BYTES, BatchBounds().content.max_bytes),
        (MAX_BLOCKS, BatchBounds().content.max_blocks),
    )
}
"""Settings that Kafka does not have: the limits in `BatchBounds`."""
NO_PERSISTER: Final = ("", "org.apache.kafka.server.share.persister.NoOpStatePersister")
"""Values of `group.share.persister.class.name` with which no state is kept."""
NO_DEAD_LETTERS: Final = ("", "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager")
"""Values of `group.share.dlq.manager.class.name` with which dead letters are dropped."""
_CLASSES: Final = {
    "group.share.persister.class.name": NO_PERSISTER,
    "group.share.dlq.manager.class.name": NO_DEAD_LETTERS,
    "group.streams.topology.description.plugin.class": ("",),
}
"""Settings that name a class, with the classes that are known here beside Kafka's default."""
ALL_BROKERS: Final = ""
"""Resource name that stands for all brokers (resource type broker)."""


@unique
class ConfigSource(IntEnum):
    """Where a value comes from, by Kafka's number. Source: DescribeConfigsResponse.ConfigSource."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(Struct, frozen=True):
    """One place that gives a setting a value, with that value as text."""

    name: str
    value: str
    source: ConfigSource


class TopicDefault(Struct, frozen=True):
    """A topic's setting that the topic does not set: its value as text, and whose it is."""

    name: str
    value: str | None
    source: ConfigSource
    is_secret: bool


_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_SHARED_NAMES: Final = {"streams.assignor.name": "group.streams.assignors"}
"""Settings of groups whose default has another name among those of brokers: the first listed."""
_SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "log.flush.interval.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
}
"""Broker settings with their fallbacks, each with the factor that converts it to the same unit."""
_GROUP_OF: Final = {name: key for key, names in _SYNONYMS.items() for name, _ in names}
_BROKER_TABLES: Final = {"0.10.2": "3.9"}
"""Profiles with another's table: 0.10.2 cannot list settings, and the server needs later ones."""


def unknown_settings(profile: Profile, names: Iterable[str]) -> dict[str, str | None]:
    """The names that are no broker setting of this Kafka version, each with the nearest known one.

    Kafka ignores such names in `server.properties`. Source: AbstractConfig.logUnused.

    Returns:
        In the order of the names; None where no known name is near, and for all after the first
        100, because a search takes a millisecond.
    """
    known = _broker_settings(profile)
    unknown = [name for name in names if _found(known, name) is None]
    found: dict[str, str | None] = dict.fromkeys(unknown)
    return found | {name: _nearest(known, name) for name in unknown[:_SEARCHED]}


def _broker_settings(profile: Profile) -> Settings:
    return settings_of(_BROKER_TABLES.get(profile.name, profile.name), "broker")


def _found(known: Settings, name: str) -> Setting | None:
    return known.get(base_name(name)) or _OF_PLUGINS.get(name) or _OWN.get(name)


def _nearest(known: Settings, name: str) -> str | None:
    if len(name) > _LONGEST_SIMILAR:
        return None
    return next(iter(get_close_matches(name, [*known, *_OF_PLUGINS, *_OWN], n=1)), None)


def _hint(nearest: str | None) -> str:
    none = "Kafka's brokers have none so named"
    return none if nearest is None else f"{none}; the nearest is {nearest}"


def _check_class(setting: Setting, text: str) -> None:
    """Refuse a class that would have to be loaded."""
    accepted = dict.fromkeys((*_CLASSES.get(setting.name, (text,)), setting.default or ""))
    if text not in accepted:
        names = " or ".join(name for name in accepted if name)
        fix = f"use {names}, or leave it empty" if names else "leave it out"
        raise ConfigError(f"{setting.name}={text}: no class can be loaded here; {fix}")


class Configs:
    """The settings of one cluster.

    Args:
        profile: The Kafka version that defines which settings exist.
        given: Settings of `server.properties`: texts by name, the same for all brokers.
        image: The metadata, which holds the settings that clients changed.
        implied: Settings given by other means than `server.properties`; `given` wins, and
            settings that this Kafka version lacks or rejects are ignored.

    Raises:
        ConfigError: a name that this Kafka does not know, or a value that it does not allow.
    """

    __slots__ = (
        "_cache",
        "_cached_version",
        "_given",
        "_image",
        "_listed",
        "_topic_defaults",
        "broker",
        "group",
        "profile",
        "topic",
    )

    def __init__(
        self,
        profile: Profile,
        given: Mapping[str, str],
        image: MetadataImage,
        *,
        implied: Mapping[str, str] | None = None,
    ) -> None:
        self.broker: Settings = _broker_settings(profile)
        self.topic: Settings = settings_of(profile.name, "topic")
        self.group: Settings = settings_of(profile.name, "group")
        self._image = image
        self.profile = profile
        self._listed: dict[str, list[str]] = {}
        self._cache: dict[tuple[int, str, str], Value] = {}
        self._cached_version = -1
        self._topic_defaults: tuple[TopicDefault, ...] = ()
        for name, text in given.items():
            setting = self._known(name)
            parse(setting, text)
            _check_class(setting, text.strip())
        sayable = {name: text for name, text in (implied or {}).items() if self._can_be(name, text)}
        self._given = {**sayable, **given}

    def _can_be(self, name: str, text: str) -> bool:
        """Whether this Kafka version has the setting and accepts the value."""
        try:
            parse(self._known(name), text)
        except ConfigError:
            return False
        return True

    def _known(self, name: str) -> Setting:
        setting = _found(self.broker, name)
        if setting is None:
            nearest = _nearest(self.broker, name)
            raise ConfigError(f"unknown broker setting {name!r}: {_hint(nearest)}")
        return setting

    def batch_bounds(self) -> BatchBounds:
        """Limits of one batch, set by the simulator's own settings in `server.properties`."""
        records, content_bytes, blocks = (
            parse(_OWN[name], self._given.get(name, _OWN[name].default))
            for name in (MAX_RECORDS, MAX_CONTENT_BYTES, MAX_BLOCKS)
        )
        content = ContentBounds(max_bytes=int(str(content_bytes)), max_blocks=int(str(blocks)))
        return BatchBounds(max_records=int(str(records)), content=content)

    @property
    def given(self) -> Mapping[str, str]:
        """Settings of `server.properties` and the implied ones."""
        return self._given

    def broker_value(self, name: str, broker_id: int | None = None) -> Value:
        """A broker's setting: dynamic, else dynamic for all brokers, else static, else default.

        Args:
            name: A setting that this Kafka version knows.
            broker_id: The broker; None for the value that all brokers share.
        """
        place = ALL_BROKERS if broker_id is None else str(broker_id)
        return self._cached(BROKER_RESOURCE, place, name)

    def listener_value(self, listener: str, name: str, mechanism: str = "") -> Value:
        """A broker's setting on a listener, for one SASL mechanism if given.

        Args:
            listener: Name of the listener, in any case.
            name: Name of the setting.
            mechanism: SASL mechanism, for example `PLAIN`; empty for none.
        """
        prefix = f"{_LISTENER_PREFIX}{listener.lower()}."
        for each in (f"{prefix}{mechanism.lower()}.{name}", f"{prefix}{name}"):
            for values, _ in self._places(None):
                if each in values:
                    return parse(self.broker[name], values[each])
        return self.broker_value(name)

    def topic_value(self, topic: str, name: str) -> Value:
        """A topic's setting: its own, else the brokers' default for topics.

        Args:
            topic: Any name, also of a topic that does not exist.
            name: A setting that this Kafka version knows.
        """
        return self._cached(TOPIC_RESOURCE, topic, name)

    def topic_value_at(self, broker_id: int, topic: str, name: str) -> Value:
        """A topic's setting as one broker sees it, with that broker's own defaults for topics."""
        own = self._image.configs_of(TOPIC_RESOURCE, topic)
        if name in own:
            return parse(self.topic[name], own[name])
        return self.topic_default(self.topic[name], broker_id)

    def group_value(self, group: str, name: str) -> Value:
        """A group's setting: its own, else the brokers' default for groups."""
        return self._cached(GROUP_RESOURCE, group, name)

    def group_value_at(self, broker_id: int, group: str, name: str) -> Value:
        """A group's setting as one broker sees it, with that broker's own defaults for groups."""
        own = self._image.configs_of(GROUP_RESOURCE, group)
        return (
            parse(self.group[name], own[name])
            if name in own
            else self._group_default(name, str(broker_id))
        )

    def _group_default(self, name: str, resource: str) -> Value:
        shared = shared_name(name)
        if shared not in self.broker:
            return default_of(self.group[name])
        value = self._broker_found(resource, shared)
        return value[0] if isinstance(value, list) and name in _SHARED_NAMES else value

    def topic_default(self, setting: Setting, broker_id: int | None = None) -> Value:
        """Value of a setting that the topic leaves unset. Source: LogConfig.extractLogConfigMap."""
        if setting.synonym is None:
            return default_of(setting)
        value = self.broker_value(setting.synonym, broker_id)
        return default_of(setting) if value is None else value

    def topic_defaults(self) -> tuple[TopicDefault, ...]:
        """The default settings of a new topic, sorted by name; internal settings are omitted.

        Source: KafkaConfigSchema.resolveEffectiveTopicConfigs.
        """
        self._forget_old()
        if not self._topic_defaults:
            places = self._places(None)
            self._topic_defaults = tuple(
                self._topic_default(setting, places)
                for _, setting in sorted(self.topic.items())
                if not setting.internal
            )
        return self._topic_defaults

    def _topic_default(
        self, setting: Setting, places: list[tuple[Mapping[str, str], ConfigSource]]
    ) -> TopicDefault:
        names = synonym_names(setting.synonym) if setting.synonym else []
        sources = [source for values, source in places if any(each in values for each in names)]
        value = self.topic_default(setting) if sources else default_of(setting)
        source = sources[0] if sources else ConfigSource.DEFAULT
        return TopicDefault(setting.name, text_of(value), source, setting.is_secret)

    def listed(self, known: Settings, own: Iterable[str]) -> list[str]:
        """The names that a description of a resource lists, in the release's order.

        Args:
            known: The settings of such resources.
            own: Names that have a value of their own; internal and unknown ones are listed, too.
        """
        kind = next((setting.of for setting in known.values()), "")
        if kind not in self._listed:
            self._listed[kind] = self._in_order([], known)
        usual = self._listed[kind]
        more = [name for name in own if name not in known or known[name].internal]
        return self._in_order(more, known) if more else usual

    def _in_order(self, more: list[str], known: Settings) -> list[str]:
        hides = not self.profile.describes_internal_settings
        names = [name for name in java_hash_order(known) if not (hides and known[name].internal)]
        if self.profile.describes_settings_in_java_order:
            return [*java_hash_order(more), *java_hash_order(names)]
        return scala_map_order([*more, *names])

    def shared(self) -> Mapping[str, str]:
        """Settings that clients set for all brokers."""
        return self._image.configs_of(BROKER_RESOURCE, ALL_BROKERS)

    def set_names(self, broker_id: int) -> list[str]:
        """Every setting with a value for a broker other than the default."""
        return [name for values, _ in self._places(broker_id) for name in values]

    def synonyms(self, name: str, broker_id: int | None) -> list[Synonym]:
        """Places that set a broker's setting, the effective one first. Source: configSynonyms.

        Empty when the name itself has no value anywhere, even if a fallback has one.
        """
        names = synonym_names(name)
        found: list[Synonym] = []
        for values, source in self._places(broker_id):
            found += [Synonym(each, values[each], source) for each in names if each in values]
        for each in names:
            default = self.broker[each].default if each in self.broker else None
            if default is not None:
                found.append(Synonym(each, default, ConfigSource.DEFAULT))
        first = next((index for index, each in enumerate(found) if each.name == name), len(found))
        return found[first:]

    def _places(self, broker_id: int | None) -> list[tuple[Mapping[str, str], ConfigSource]]:
        own = {} if broker_id is None else self._image.configs_of(BROKER_RESOURCE, str(broker_id))
        shared = self._image.configs_of(BROKER_RESOURCE, ALL_BROKERS)
        return [
            (own, ConfigSource.DYNAMIC_BROKER),
            (shared, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._static(broker_id), ConfigSource.STATIC_BROKER),
        ]

    def _static(self, broker_id: int | None) -> Mapping[str, str]:
        """`server.properties` of a broker: the shared settings, and its id."""
        if broker_id is None:
            return self._given
        ids = [name for name in ("broker.id", "node.id") if name in self.broker]
        return {**dict.fromkeys(ids, str(broker_id)), **self._given}

    def _cached(self, resource_type: int, resource: str, name: str) -> Value:
        if self._cached_version != self._image.configs_version:
            self._forget_old()
        key = (resource_type, resource, name)
        if key not in self._cache:
            self._cache[key] = self._found(resource_type, resource, name)
        return self._cache[key]

    def _forget_old(self) -> None:
        """Forget what was read before the settings changed."""
        if self._cached_version != self._image.configs_version:
            self._cache.clear()
            self._topic_defaults = ()
            self._cached_version = self._image.configs_version

    def _found(self, resource_type: int, resource: str, name: str) -> Value:
        if resource_type == BROKER_RESOURCE:
            return self._broker_found(resource, name)
        of = self.topic if resource_type == TOPIC_RESOURCE else self.group
        own = self._image.configs_of(resource_type, resource).get(name)
        if own is not None:
            return parse(of[name], own)
        if resource_type == TOPIC_RESOURCE:
            return self.topic_default(of[name])
        return self._group_default(name, "")

    def _broker_found(self, resource: str, name: str) -> Value:
        """A broker setting's value or that of its fallback, converted to the unit of the name."""
        broker_id = int(resource) if resource else None
        for each, factor in _SYNONYMS.get(name, ((name, 1),)):
            value = self.own_value(each, broker_id)
            if value is not None:
                is_time = isinstance(value, int) and factor > 1 and value > 0
                return value * factor if is_time and isinstance(value, int) else value
        return None

    def own_value(self, name: str, broker_id: int | None) -> Value:
        """A broker's setting under exactly that name, without fallbacks."""
        if name not in self.broker:
            return None
        for values, _ in self._places(broker_id):
            if name in values:
                return parse(self.broker[name], values[name])
        return default_of(self.broker[name])


def shared_name(name: str) -> str:
    """The setting of brokers that is a group's default. Source: GroupConfig, the synonyms."""
    return _SHARED_NAMES.get(name, f"group.{name}")


def synonym_names(name: str) -> list[str]:
    """A broker's setting and its fallbacks. Source: brokerConfigSynonyms."""
    family = _SYNONYMS.get(_GROUP_OF.get(name, name))
    if name == "log.flush.scheduler.interval.ms" or family is None:
        base = base_name(name)
        return [name] if base == name else [name, base]
    return [each for each, _ in family]


def base_name(name: str) -> str:
    """The name of a setting without its listener prefix and SASL mechanism."""
    if not name.startswith(_LISTENER_PREFIX):
        return name
    base = name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    return next((each for each in _PER_MECHANISM if base.endswith(each)), base)


_PER_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


COMPACTED_IN_MEMORY_BYTES: Final = 1 << 20
"""Largest segment of a compacted topic in memory."""

_PRODUCER_EXPIRATION: Final = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""How long producers are remembered: the second where the release lacks the first (2.8)."""
_INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
_FORMAT_VERSION: Final = "message.format.version"
_DIFFERENCE: Final = "message.timestamp.difference.max.ms"
"""Setting that both bounds of timestamps fall back to. Source: KIP-937."""
_FORMATS: Final = (((0, 10), 0), ((0, 11), 1))
"""Magic numbers in use before these versions of Kafka. Source: MetadataVersion."""


class LogSettings:
    """The `LogConfig` of each topic, rebuilt when settings change; topics set alike share one.

    Args:
        configs: Settings of topics and brokers.
        image: The metadata.
        profile: The Kafka version; decides the format of logs.
        in_memory: Whether logs are kept in memory: compacted topics then get small segments, as the
            cleaner never cleans the newest one.
    """

    __slots__ = ("_bounds", "_configs", "_found", "_image", "_in_memory", "_profile", "_version")

    def __init__(
        self, configs: Configs, image: MetadataImage, profile: Profile, *, in_memory: bool = False
    ) -> None:
        self._in_memory = in_memory
        self._configs = configs
        self._bounds = configs.batch_bounds()
        self._image = image
        self._profile = profile
        self._version = -1
        self._found: dict[frozenset[tuple[str, str]], LogConfig] = {}

    def of(self, topic: str) -> LogConfig:
        """The current config of a topic's logs."""
        if self._version != self._image.configs_version:
            self._found.clear()
            self._version = self._image.configs_version
        own = frozenset(self._image.configs_of(TOPIC_RESOURCE, topic).items())
        found = self._found.get(own)
        if found is None:
            found = self._found[own] = self._made(topic)
        return found

    def wanted_in_sync(self, topic: str, replica_count: int) -> int:
        """How many in-sync replicas acks=-1 needs. Source: Partition.effectiveMinIsr."""
        wanted = int(str(self._configs.topic_value(topic, "min.insync.replicas")))
        return min(wanted, replica_count) if self._profile.caps_min_isr else wanted

    def _made(self, topic: str) -> LogConfig:
        configs = self._configs
        values: dict[str, object] = {}
        for field in LogConfig.__struct_fields__:
            name = field.replace("_", ".")
            if name in configs.topic:
                value = configs.topic_value(topic, name)
            elif field == "producer_id_expiration_ms":
                known = next(each for each in _PRODUCER_EXPIRATION if each in configs.broker)
                value = configs.broker_value(known)
            else:
                continue
            values[field] = ",".join(value) if isinstance(value, list) else value
        if _INTERNAL_SEGMENT_BYTES in configs.topic:
            inner = configs.topic_value(topic, _INTERNAL_SEGMENT_BYTES)
            values["segment_bytes"] = inner or values["segment_bytes"]
        if _DIFFERENCE in configs.topic:
            difference = configs.topic_value(topic, _DIFFERENCE)
            for bound in ("message_timestamp_before_max_ms", "message_timestamp_after_max_ms"):
                if values.get(bound, NEVER_MS) == NEVER_MS:
                    values[bound] = difference
        values["message_format_magic"] = self._magic(topic)
        config = LogConfig(**values, bounds=self._bounds)  # type: ignore[arg-type] # parsed by the same names
        if self._in_memory and config.is_compacted:
            segment_bytes = min(config.segment_bytes, COMPACTED_IN_MEMORY_BYTES)
            return replace(config, segment_bytes=segment_bytes)
        return config

    def _magic(self, topic: str) -> int:
        """The record format of the profile's logs, or an older one that the topic sets."""
        magic = self._profile.log_magic
        own = self._image.configs_of(TOPIC_RESOURCE, topic).get(_FORMAT_VERSION)
        if magic == CURRENT_MAGIC or own is None:
            return magic
        version = tuple(int(part) for part in own.partition("-")[0].split(".")[:2])
        return next((number for before, number in _FORMATS if version < before), magic)
