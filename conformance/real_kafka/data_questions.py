"""Raw requests about records, for any broker.

The same questions go to real brokers and to ours, in each version that both offer: Produce, Fetch,
ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers. They use only one broker, and
nothing that depends on the time of asking.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim_conformance.field_frames import Fields

TOPICS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    "plain": (2, {}),
    "numbered": (1, {}),
    "compacted": (1, {"cleanup.policy": "compact"}),
    "small": (1, {"max.message.bytes": "200"}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
    "replicated": (1, {"min.insync.replicas": "3"}),
    "zipped": (1, {"compression.type": "gzip"}),
}
"""Topic names, with number of partitions and settings."""
TIME_MS: Final = 1_600_000_000_000
"""Time of the records, long before the questions."""
_FAR_MS: Final = 9_999_999_999_999
_BIG: Final = 1 << 20

Versions = dict[ApiKey, tuple[int, int]]
"""Oldest and newest version of each API."""


class IdOf(Struct, frozen=True):
    """Placeholder for a topic's id in a broker; for an unknown topic, an id without topic."""

    topic: str


class SessionOf(Struct, frozen=True):
    """Placeholder for the session that a broker created last."""


class Question(Struct, frozen=True):
    """One request.

    Args:
        fields: Fields by Kafka's names, with `IdOf` and `SessionOf` in them.
    """

    label: str
    api: ApiKey
    version: int
    fields: Fields


def batch(*values: bytes, magic: int, **settings: Any) -> bytes:  # noqa: ANN401 - any field
    """Return one batch as a producer sends it."""
    start_ms = settings.pop("start_ms", TIME_MS)
    key = settings.pop("key", None)
    records = tuple(
        Record(offset=index, timestamp_ms=start_ms + index, key=key, value=value)
        for index, value in enumerate(values)
    )
    fields: dict[str, Any] = {
        "base_offset": 0,
        "last_offset": len(values) - 1,
        "records": records,
        "base_timestamp_ms": start_ms,
        "max_timestamp_ms": start_ms + len(values) - 1,
        "magic": magic,
        **settings,
    }
    return encode_record_batch(RecordBatch(**fields))


def questions(versions: Versions) -> Iterator[Question]:
    """Yield all questions in order: later ones ask about records of earlier ones."""
    for ask in (_produce, _numbered, _fetch, _sessions, _list_offsets, _epochs, _delete):
        yield from ask(versions)
    for api, fields in _described():
        for version in _of(versions, api):
            yield Question("described", api, version, fields)


def _of(versions: Versions, api: ApiKey) -> range:
    oldest, newest = versions.get(api, (0, -1))
    return range(oldest, newest + 1)


# -- Produce ---------------------------------------------------------------------------------


def _produced(topic: str, records: bytes, partition: int = 0, **fields: object) -> Fields:
    data = [{"index": partition, "records": records}]
    named = {"name": topic, "topicId": IdOf(topic), "partitionData": data}
    return {"acks": 1, "timeoutMs": 5_000, "topicData": [named], **fields}


def _produce(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.PRODUCE):
        magic = 2 if version >= 3 else 1  # noqa: PLR2004 - since then batches are sent
        for label, fields in _written(magic):
            yield Question(label, ApiKey.PRODUCE, version, fields)


def _written(magic: int) -> Iterator[tuple[str, Fields]]:
    one, two = batch(b"a", magic=magic), batch(b"a", b"b", magic=magic)
    yield "two records", _produced("plain", two)
    yield "acks of all", _produced("plain", one, acks=-1)
    yield "unknown acks", _produced("plain", one, acks=3)
    yield "unknown topic", _produced("absent", one)
    yield "unknown partition", _produced("plain", one, 9)
    yield "no batch", _produced("plain", b"")
    yield "a torn batch", _produced("plain", one[:-3])
    yield "a wrong checksum", _produced("plain", one[:-1] + bytes([one[-1] ^ 1]))
    yield "format 0", _produced("plain", batch(b"a", magic=0))
    yield "format 1", _produced("plain", batch(b"a", magic=1))
    yield "format 2", _produced("plain", batch(b"a", magic=2))
    yield "no keys", _produced("compacted", two)
    yield "keys", _produced("compacted", batch(b"a", b"b", magic=magic, key=b"k"))
    yield "too large", _produced("small", batch(b"a" * 300, magic=magic))
    yield "stamped", _produced("stamped", one)
    yield "too few replicas", _produced("replicated", one, acks=-1)
    yield "compressed anew", _produced("zipped", batch(b"a" * 40, b"b" * 40, magic=magic))
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4):
        zipped = batch(b"a" * 40, b"b" * 40, magic=magic, compression=codec)
        yield codec.name, _produced("plain", zipped)
    if magic == 2:  # noqa: PLR2004 - a format
        yield from _written_in_batches(one)


def _written_in_batches(one: bytes) -> Iterator[tuple[str, Fields]]:
    yield "two batches", _produced("plain", one + one)
    yield "a size of 3", _produced("plain", bytes(8) + b"\0\0\0\3abcdefgh")
    yield "format 7", _produced("plain", one[:16] + b"\7" + one[17:])
    yield "a wrong count", _produced("plain", batch(b"a", b"b", magic=2, last_offset=5))
    yield "a marker", _produced("plain", batch(b"a", magic=2, control=True))
    yield "the far future", _produced("plain", batch(b"a", b"b", magic=2, start_ms=_FAR_MS))
    of_nobody = batch(
        b"a", magic=2, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    yield "a transaction of nobody", _produced("plain", of_nobody)


def _numbered(versions: Versions) -> Iterator[Question]:
    """Yield questions of an idempotent producer."""
    newest = versions[ApiKey.PRODUCE][1]
    if newest < 3:  # noqa: PLR2004 - since then there are producer ids
        return
    for epoch, sequence, count in (
        (0, 0, 1),
        (0, 0, 1),
        (0, 5, 1),
        (0, 1, 3),
        (0, 0, 1),
        (1, 4, 1),
        (1, 0, 1),
        (0, 4, 1),
    ):
        records = batch(
            *[b"x"] * count, magic=2, producer_id=7, producer_epoch=epoch, base_sequence=sequence
        )
        label = f"{count} records of epoch {epoch} from {sequence}"
        yield Question(label, ApiKey.PRODUCE, newest, _produced("numbered", records))
    unknown = batch(b"x", magic=2, producer_id=8, producer_epoch=0, base_sequence=9)
    yield Question("an unknown one", ApiKey.PRODUCE, newest, _produced("numbered", unknown))


# -- Fetch -----------------------------------------------------------------------------------


def _fetched(topic: str, *partitions: Fields, **fields: object) -> Fields:
    named = {"topic": topic, "topicId": IdOf(topic), "partitions": list(partitions)}
    topics = [named] if partitions else []
    return {"maxWaitMs": 0, "minBytes": 1, "topics": topics, **fields}


def _at(offset: int = 0, partition: int = 0, **fields: int) -> Fields:
    return {"partition": partition, "fetchOffset": offset, "partitionMaxBytes": _BIG, **fields}


def _fetch(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.FETCH):
        for label, fields in _read(version):
            yield Question(label, ApiKey.FETCH, version, fields)


def _read(version: int) -> Iterator[tuple[str, Fields]]:
    yield "from the start", _fetched("plain", _at(), _at(0, 1))
    yield "inside a batch", _fetched("plain", _at(1))
    yield "compacted", _fetched("compacted", _at())
    yield "beyond the end", _fetched("plain", _at(9_999), maxWaitMs=100)
    yield "before the start", _fetched("plain", _at(-5), maxWaitMs=100)
    yield "unknown topic", _fetched("absent", _at())
    yield "unknown partition", _fetched("plain", _at(), _at(0, 9))
    yield "nothing there", _fetched("plain", _at(0, 1), maxWaitMs=50)
    yield "no room", _fetched("plain", _at(partitionMaxBytes=0))
    if version >= 4:  # noqa: PLR2004 - since then records are committed or not
        yield "committed", _fetched("plain", _at(2), isolationLevel=1)
    if version >= 9:  # noqa: PLR2004 - since then consumers know epochs
        yield "a newer epoch", _fetched("plain", _at(currentLeaderEpoch=5))
        yield "the epoch", _fetched("plain", _at(currentLeaderEpoch=0))
    if version >= 12:  # noqa: PLR2004 - since then logs are compared
        for epoch in (0, 9):
            yield f"read in epoch {epoch}", _fetched("plain", _at(1, lastFetchedEpoch=epoch))


def _sessions(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.FETCH):
        if version < 7:  # noqa: PLR2004 - since then there are sessions
            continue
        steps: list[tuple[str, int, Fields]] = [
            ("founded", 0, _fetched("plain", _at(), _at(0, 1))),
            ("unchanged", 1, _fetched("plain")),
            ("moved on", 2, _fetched("plain", _at(2))),
            ("a wrong epoch", 9, _fetched("plain")),
            ("again", 3, _fetched("plain")),
            ("one forgotten", 4, _fetched("plain", forgottenTopicsData=_gone(0))),
            ("none left", 5, _fetched("plain", forgottenTopicsData=_gone(1))),
            ("over", 6, _fetched("plain")),
            ("of an unknown topic", 0, _fetched("absent", _at())),
            ("still unknown", 1, _fetched("absent")),
        ]
        for label, epoch, fields in steps:
            session: Fields = {"sessionId": SessionOf() if epoch else 0, "sessionEpoch": epoch}
            yield Question(f"session {label}", ApiKey.FETCH, version, {**fields, **session})


def _gone(partition: int) -> list[Fields]:
    return [{"topic": "plain", "topicId": IdOf("plain"), "partitions": [partition]}]


# -- the other APIs --------------------------------------------------------------------------


def _list_offsets(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.LIST_OFFSETS):
        # Version 0 asks for the times of files.
        times = range(-2, 0) if not version else (*range(-7, 0), TIME_MS, TIME_MS + 1, _FAR_MS + 9)
        for topic, partition in (("plain", 0), ("plain", 1), ("plain", 9), ("absent", 0)):
            for timestamp_ms in times:
                asked = {"partitionIndex": partition, "timestamp": timestamp_ms}
                named = [{"name": topic, "partitions": [asked]}]
                fields = {"replicaId": -1, "topics": named}
                label = f"{timestamp_ms} of {topic}-{partition}"
                yield Question(label, ApiKey.LIST_OFFSETS, version, fields)


def _epochs(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.OFFSET_FOR_LEADER_EPOCH):
        for epoch in (-1, 0, 1):
            asked = [{"partition": each, "leaderEpoch": epoch} for each in (0, 1, 9)]
            fields = {"topics": [{"topic": "plain", "partitions": asked}]}
            yield Question(f"epoch {epoch}", ApiKey.OFFSET_FOR_LEADER_EPOCH, version, fields)


def _delete(versions: Versions) -> Iterator[Question]:
    for version in _of(versions, ApiKey.DELETE_RECORDS):
        for topic, partition, offset in (
            ("plain", 0, 1),
            ("plain", 0, 99_999),
            ("plain", 0, -2),
            ("plain", 9, 1),
            ("absent", 0, 1),
            ("compacted", 0, 1),
            ("numbered", 0, -1),
        ):
            asked = {"partitionIndex": partition, "offset": offset}
            named = [{"name": topic, "partitions": [asked]}]
            fields = {"topics": named, "timeoutMs": 5_000}
            yield Question(f"before {offset}", ApiKey.DELETE_RECORDS, version, fields)
    for version in list(_of(versions, ApiKey.FETCH))[-1:]:
        for offset in (0, 1):
            yield Question("after that", ApiKey.FETCH, version, _fetched("plain", _at(offset)))


def _described() -> Iterator[tuple[ApiKey, Fields]]:
    for name in ("numbered", "absent", "a b", "", ".."):
        topics = [{"name": name, "partitionIndexes": [0, 5]}]
        yield ApiKey.DESCRIBE_PRODUCERS, {"topics": topics}
