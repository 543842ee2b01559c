"""The `LogConfig` of a topic's logs, made from the settings of the topic and the brokers.

Source: kafka trunk, storage/.../internals/log/LogConfig.java; LogManager.fetchOrCreateConfig;
kafka 2.8, LogManager.apply (maxPidExpirationMs).
"""

from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import TOPIC_RESOURCE, MetadataImage
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.log_config import NEVER_MS, LogConfig

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
