"""Which source a file is, told by what it begins with; never by its name alone.

A segment's name helps only where its content says nothing: one that is empty, all zeros or
damaged from its first byte.
"""

import re
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC, MIN_LEGACY_SIZE
from coordinator_sim.log.format.stored_batches import MAGIC_AT
from coordinator_sim.trace.events import Source

SAMPLE_BYTES: Final = 65_536
"""How much of a file is looked at."""
REQUEST_MARK: Final = "Completed request:"
"""What every line of a request log has. Source: kafka trunk, RequestChannel.scala."""
UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_BINARY_SHARE: Final = 0.02
"""Share of control characters above which a file is no text; a log has next to none."""
_CAPTURE_MAGICS: Final = (
    *(b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"),
    b"\x0a\x0d\x0d\x0a",
)
"""First bytes of pcap files, in both byte orders, with micro- and nanoseconds; and of pcapng.

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""
_DUMP: Final = re.compile(
    rb"Dumping \S+\.log|Log starting offset: |Starting offset: |baseOffset: -?\d"
    rb"|offset: -?\d+ position: |\| offset: -?\d"
)
_FORMATTER_TEXT: Final = re.compile(
    rb"\[[^\n]*,[^\n]*,-?\d+\]::(?:\[OffsetMetadata\[|OffsetAndMetadata\(|NULL)"
    rb"|[^\n]*::(?:GroupMetadata\(|NULL)|[^\n]+::\[[^\n]*,(?:Empty|Stable|Dead|\w+Rebalance|\w+Sync),Map\("
)
_FORMATTER_RECORD: Final = re.compile(
    rb",-?\d{1,9}\]::(?:\[OffsetMetadata\[|OffsetAndMetadata\(|NULL)|::GroupMetadata\(groupId="
)
_DESCRIPTION: Final = re.compile(
    rb"^[>#\s]{0,8}GROUP +(?:TOPIC +PARTITION|CONSUMER-ID +\S+|COORDINATOR \(ID\)) ", re.MULTILINE
)
"""Headings of the tables of `kafka-consumer-groups --describe`."""
_COORDINATOR_MARKS: Final = (b"[GroupCoordinator ", b"[GroupMetadataManager ")
_FORMATTER_JSON: Final = re.compile(rb'\{\s*"key"\s*:\s*(?:\{|null)')
_SEGMENT_NAME: Final = re.compile(r"(\d{20})\.log(?:\.(?:deleted|cleaned|swap))?(?:\.gz)?$")
_PARTITION: Final = re.compile(rf"{OFFSETS_TOPIC}-(\d{{1,9}})(?!\d)")
_FOLDER: Final = re.compile(r"(.+)-\d{1,9}(?:\.[0-9a-f]{32}-(?:delete|future|stray))?")


@unique
class Kind(Enum):
    """What a file can be; the value is what people call it."""

    LOG = "log"
    REQUEST_LOG = "request log"
    SEGMENT = "segment"
    DUMP = "kafka-dump-log text"
    FORMATTER_TEXT = "console formatter text"
    FORMATTER_JSON = "console formatter JSON"
    CAPTURE = "capture"
    DESCRIPTION = "kafka-consumer-groups output"


SOURCE_OF: Final = {
    Kind.CAPTURE: Source.WIRE,
    Kind.REQUEST_LOG: Source.REQUEST_LOG,
    Kind.LOG: Source.BROKER_LOG,
    Kind.SEGMENT: Source.OFFSETS_SEGMENT,
    Kind.DUMP: Source.DUMP_LOG,
    Kind.FORMATTER_JSON: Source.FORMATTER_JSON,
    Kind.FORMATTER_TEXT: Source.FORMATTER_TEXT,
    Kind.DESCRIPTION: Source.GROUP_DESCRIPTION,
}
"""The source that a kind's events name; in the order of precedence, the most exact one first."""


class Unread(Struct, frozen=True):
    """A kind of Kafka's files that holds nothing of a group.

    Args:
        mark: What its beginning has.
        what: What the file is.
        fix: What to do for lines about groups.
    """

    mark: re.Pattern[bytes]
    what: str
    fix: str


_JAVA: Final = "log org.apache.kafka.clients.consumer.internals at INFO"
_ELSE: Final = "name the broker's server.log, or the log of a consumer"
_UNREAD: Final = tuple(
    Unread(re.compile(mark), what, fix)
    for mark, what, fix in (
        (rb"#consumer-\d", "a librdkafka log without debug lines of groups", "set debug=cgrp"),
        (rb"#producer-\d", "a librdkafka log of producers, which are in no group", _ELSE),
        (rb"\[thrd:", "a librdkafka log without debug lines of groups", "set debug=cgrp"),
        (rb"kafkajs", "a kafkajs log without lines of a consumer", "set its logLevel to INFO"),
        (rb"\[[Ss]arama\]|client/metadata |consumer/broker/\d", "a Sarama log, not read", _ELSE),
        (
            rb"\bkgo\b|new group session begun|joined, balancing group",
            "a franz-go log, which is not read",
            _ELSE,
        ),
        (
            rb"as member \S+ in generation \d|entering loop for consumer group",
            "a kafka-go (segmentio) log, which is not read",
            _ELSE,
        ),
        (rb"org\.apache\.zookeeper", "a ZooKeeper log", _ELSE),
        (rb"\[gc[,\] ]|\[(?:Full )?GC ", "a log of the JVM's garbage collection", _ELSE),
        (rb"state\.change\.logger", "a broker's state-change.log", _ELSE),
        (
            rb"kafka\.controller\.|[ \[]org\.apache\.kafka\.controller|\[QuorumController ",
            "a controller's log",
            _ELSE,
        ),
        (rb"kafka\.log\.LogCleaner", "a broker's log-cleaner.log", _ELSE),
        (rb"kafka\.authorizer\.logger", "a broker's kafka-authorizer.log", _ELSE),
        (rb"stream-thread \[", "a Kafka Streams log without lines of its consumers", _JAVA),
        (
            rb"\[ShareConsumer ",
            "a log of share consumers, which is not read",
            "name the broker's server.log, or segments of __consumer_offsets",
        ),
        (
            rb"\[Consumer |ConsumerConfig",
            "a Java consumer's log without lines of a group",
            _JAVA,
        ),
        (rb"\[Producer |ProducerConfig", "a Java producer's log; it is in no group", _ELSE),
        (
            rb"org\.apache\.kafka\.connect\.|connect\.runtime",
            "a Connect log without lines of the worker's group",
            "log org.apache.kafka.connect.runtime.distributed at INFO",
        ),
        (
            rb"aiokafka\.\w|(?<![\w.])kafka\.(?:conn|cluster|net\.\w+|consumer\.\w+)[: ]",
            "a Python client's log without lines of a consumer's group",
            "log the package kafka or aiokafka at INFO",
        ),
    )
)


def unread(sample: bytes) -> str | None:
    """Return what a file without events is, and what to do; None for no kind of Kafka's files.

    Args:
        sample: The first `SAMPLE_BYTES`, decompressed.
    """
    found = next((one for one in _UNREAD if one.mark.search(sample)), None)
    return None if found is None else f"{found.what}; {found.fix}"


def kind_of(sample: bytes, name: str) -> Kind | None:
    """The kind of a file, by its first bytes; None for one that is binary and no known kind.

    Args:
        sample: The first `SAMPLE_BYTES`, decompressed; empty for an empty file.
        name: The file's name.
    """
    if sample.startswith(_CAPTURE_MAGICS):
        return Kind.CAPTURE
    if begins_batch(sample) or (is_segment_name(name) and _is_binary(sample)):
        return Kind.SEGMENT
    if sample.startswith(UTF16_MARKS):
        return Kind.LOG
    if _is_binary(sample):
        return None
    return _kind_of_text(sample.lstrip(b"\xef\xbb\xbf \t\r\n"))


def _kind_of_text(text: bytes) -> Kind:
    if _DUMP.match(text):
        return Kind.DUMP
    if _FORMATTER_JSON.match(text):
        return Kind.FORMATTER_JSON
    first_line = text.partition(b"\n")[0]
    mark = REQUEST_MARK.encode()
    if mark in text:
        return Kind.REQUEST_LOG
    # Somebody's notes, the command or a prompt may come before the first record.
    is_logged = any(mark in text for mark in _COORDINATOR_MARKS)
    if not is_logged and b"clientId=" not in text and _DESCRIPTION.search(text):
        return Kind.DESCRIPTION
    is_told = _FORMATTER_TEXT.match(first_line) or (
        _FORMATTER_RECORD.search(text) and not is_logged
    )
    return Kind.FORMATTER_TEXT if is_told else Kind.LOG


def begins_batch(sample: bytes) -> bool:
    """Whether bytes begin as a batch of magic 0, 1 or 2 does; no text of any encoding does."""
    if len(sample) <= MAGIC_AT or sample[MAGIC_AT] > CURRENT_MAGIC or sample[0]:
        return False
    return int.from_bytes(sample[8:12], "big", signed=True) >= MIN_LEGACY_SIZE


def _is_binary(sample: bytes) -> bool:
    if not sample:
        return True
    controls = sum(1 for byte in sample if byte < ord(" ") and byte not in b"\t\n\r\x1b")
    return controls > len(sample) * _BINARY_SHARE


def is_segment_name(name: str) -> bool:
    """Whether a file is named as segments are: 20 digits, also behind other text."""
    return _SEGMENT_NAME.search(name) is not None


def base_offset_in(name: str) -> int:
    """The base offset that a segment's name says; 0 where it says none."""
    found = _SEGMENT_NAME.search(name)
    return 0 if found is None else int(found[1])


def is_left_over(name: str) -> bool:
    """Whether a segment waits to be deleted, or was never finished: what it holds is elsewhere."""
    return is_segment_name(name) and not name.removesuffix(".gz").endswith(".log")


def topic_of(folder: str) -> str | None:
    """The topic of a partition's folder; None for a name of another form."""
    found = _FOLDER.fullmatch(folder)
    return None if found is None else found[1]


def partition_in(path: str) -> int | None:
    """The partition of the offsets topic that a path names, in a folder's name or the file's."""
    found = _PARTITION.findall(path)
    return int(found[-1]) if found else None
