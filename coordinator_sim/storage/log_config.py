"""Settings of one topic's logs, by Kafka's names with underscores, with Kafka's defaults."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.wire.compression import DEFAULT_BOUNDS, Compression, ContentBounds

_DAY_MS: Final = 86_400_000
NEVER_MS: Final = 2**63 - 1
"""A time span that never ends: Java's largest long."""

PRODUCER: Final = "producer"
"""`compression.type` of a topic that keeps what producers chose."""
UNCOMPRESSED: Final = "uncompressed"


class BatchBounds(Struct, frozen=True, kw_only=True, gc=False):
    """How much one batch may hold, beside Kafka's `max.message.bytes`: bounds of our own.

    DEVIATION: Kafka takes as many records as fit into `max.message.bytes`, however small they
    become in it. Here a batch beyond these bounds is refused with MESSAGE_TOO_LARGE, upon which
    Java's producer splits it.

    Args:
        max_records: Of one batch, or of one message set of an old format. librdkafka's
            `batch.num.messages` goes up to as many, by default to 10,000.
        content: Of what is compressed.
    """

    max_records: int = 1_000_000
    content: ContentBounds = DEFAULT_BOUNDS


class LogConfig(Struct, frozen=True, kw_only=True):
    """What a topic's settings say of its logs; times in milliseconds, -1 for no limit.

    Args:
        message_format_magic: Of what is stored: 2, or 1 and 0 as an old
            `log.message.format.version` has it.
        message_timestamp_type: Whether appends stamp records: CreateTime or LogAppendTime.
        producer_id_expiration_ms: How long a producer is remembered, a broker's setting.
        bounds: Of a batch; our own.

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
        """Whether old segments go by time and size."""
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
        """How batches are stored that came compressed like that.

        Source: BrokerCompressionType.targetCompression.
        """
        if self.compression_type == PRODUCER:
            return source
        if self.compression_type == UNCOMPRESSED:
            return Compression.NONE
        return Compression[self.compression_type.upper()]


def config_of(settings: Mapping[str, str], base: LogConfig | None = None) -> LogConfig:
    """A topic's settings by Kafka's names as a config.

    Args:
        settings: Names such as `retention.ms`; those that are about no log are passed over.
        base: Where the rest comes from; Kafka's defaults unless told.

    Raises:
        ValueError: A number is none.
    """
    base = LogConfig() if base is None else base
    known = {name: getattr(base, name) for name in base.__struct_fields__}
    for name, text in settings.items():
        field = name.replace(".", "_")
        if field in known:
            known[field] = type(known[field])(text)
    return LogConfig(**known)
