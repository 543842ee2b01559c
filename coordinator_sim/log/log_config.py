"""Settings of a topic's logs, by Kafka's names with underscores, with Kafka's defaults."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.log.format.compression import DEFAULT_BOUNDS, Compression, ContentBounds

_DAY_MS: Final = 86_400_000
NEVER_MS: Final = 2**63 - 1
"""A time span without end: Java's largest long."""

PRODUCER: Final = "producer"
"""`compression.type` of a topic that keeps the producers' codec."""
UNCOMPRESSED: Final = "uncompressed"


class BatchBounds(Struct, frozen=True, kw_only=True, gc=False):
    """Limits of one batch, beside Kafka's `max.message.bytes`; bounds of our own.

    DEVIATION: Kafka takes as many records as fit into `max.message.bytes`, however well they
    compress. Here a batch beyond these bounds is refused with MESSAGE_TOO_LARGE; Java's producer
    then splits it.

    Args:
        max_records: Records of one batch, or of one message set of an old format. librdkafka's
            `batch.num.messages` has the same maximum, and a default of 10,000.
        content: Limits of decompressed content.
    """

    max_records: int = 1_000_000
    content: ContentBounds = DEFAULT_BOUNDS


class LogConfig(Struct, frozen=True, kw_only=True):
    """Settings of a topic's logs; times in milliseconds, -1 for no limit.

    Args:
        message_format_magic: Format of stored batches: 2, or 1 and 0 by an old
            `log.message.format.version`.
        message_timestamp_type: CreateTime, or LogAppendTime if appends stamp records.
        producer_id_expiration_ms: How long a producer is remembered; a broker setting.
        bounds: Our own limits of a batch.

    Source: kafka trunk, storage/.../internals/log/LogConfig.java and ServerLogConfigs.java.
    """

    cleanup_policy: str = "delete"
    compression_type: str = PRODUCER
    delete_retention_ms: int = _DAY_MS
    flush_messages: int = NEVER_MS
    flush_ms: int = NEVER_MS
    index_interval_bytes: int = 4_096
    max_compaction_lag_ms: int = NEVER_MS
    max_message_bytes: int = 1_048_588
    message_format_magic: int = 2
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = NEVER_MS
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    producer_id_expiration_ms: int = _DAY_MS
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_ms: int = 7 * _DAY_MS
    bounds: BatchBounds = BatchBounds()

    @property
    def is_compacted(self) -> bool:
        """Whether the cleaner keeps the last record of each key."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments are deleted by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def stamps(self) -> bool:
        """Whether appends set the timestamps: LogAppendTime."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_segment_ms(self) -> int:
        """How long a segment stays active. Source: LogConfig.maxSegmentMs."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    def codec_for(self, source: Compression) -> Compression:
        """The codec in which batches with a given codec are stored.

        Source: BrokerCompressionType.targetCompression.
        """
        if self.compression_type == PRODUCER:
            return source
        if self.compression_type == UNCOMPRESSED:
            return Compression.NONE
        return Compression[self.compression_type.upper()]


def config_of(settings: Mapping[str, str], base: LogConfig | None = None) -> LogConfig:
    """The config made from a topic's settings.

    Args:
        settings: Values by names such as `retention.ms`; settings of other things are ignored.
        base: Values of settings that are not given; by default Kafka's defaults.

    Raises:
        ValueError: A value is not the number that it should be.
    """
    base = LogConfig() if base is None else base
    known = {name: getattr(base, name) for name in base.__struct_fields__}
    for name, text in settings.items():
        field = name.replace(".", "_")
        if field in known:
            known[field] = type(known[field])(text)
    return LogConfig(**known)
