"""Requests spoilt in every way that bytes can be, from recorded ones and from all APIs offered."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.messages.catalogue import layout_of
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.schema import ZERO_UUID, Kind, Layout, VersionField
from coordinator_sim_conformance.field_frames import Fields, request_frame

RECORDED: Final = Path(__file__).resolve().parents[1] / "data" / "wire"
_HEADER_BYTES: Final = 8
_EDGES: Final = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_LONGEST_TAIL: Final = 300

_FULLER_WEIGHT: Final = 3
_DRAWN_SHARE: Final = 0.6
"""Requests that are made by their schemas, of all that are sent."""
_WELL_SHARE: Final = 0.5
_NULL_SHARE: Final = 0.3
_TOPIC: Final = "hostile"
_BATCH: Final = encode_record_batch(
    batch_of((Record(offset=0, timestamp_ms=1, key=b"k", value=b"v"),))
)
FULLER: Final[dict[ApiKey, Fields]] = {
    ApiKey.CREATE_TOPICS: {
        "topics": [{"name": _TOPIC, "numPartitions": 2, "replicationFactor": 1}],
        "timeoutMs": 1_000,
    },
    ApiKey.CREATE_PARTITIONS: {"topics": [{"name": _TOPIC, "count": 3}], "timeoutMs": 1_000},
    ApiKey.DELETE_TOPICS: {"topicNames": [_TOPIC], "timeoutMs": 1_000},
    ApiKey.PRODUCE: {
        "acks": -1,
        "timeoutMs": 1_000,
        "topicData": [{"name": _TOPIC, "partitionData": [{"index": 0, "records": _BATCH}]}],
    },
    ApiKey.FETCH: {
        "maxWaitMs": 500,
        "minBytes": 1,
        "topics": [{"topic": _TOPIC, "partitions": [{"partition": 0, "partitionMaxBytes": 9999}]}],
    },
    ApiKey.LIST_OFFSETS: {
        "topics": [{"name": _TOPIC, "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]
    },
    ApiKey.METADATA: {"topics": [{"name": _TOPIC}], "allowAutoTopicCreation": True},
    ApiKey.DELETE_RECORDS: {
        "topics": [{"name": _TOPIC, "partitions": [{"partitionIndex": 0, "offset": 1}]}]
    },
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {
        "resources": [
            {
                "resourceType": 2,
                "resourceName": _TOPIC,
                "configs": [{"name": "segment.bytes", "configOperation": 0, "value": "2097152"}],
            }
        ]
    },
    ApiKey.INIT_PRODUCER_ID: {"transactionalId": "hostile", "transactionTimeoutMs": 60_000},
    ApiKey.ADD_OFFSETS_TO_TXN: {
        "transactionalId": "hostile",
        "producerId": 0,
        "producerEpoch": 0,
        "groupId": "hostile",
    },
    ApiKey.END_TXN: {
        "transactionalId": "hostile",
        "producerId": 0,
        "producerEpoch": 0,
        "committed": True,
    },
    ApiKey.OFFSET_COMMIT: {
        "groupId": "hostile",
        "topics": [{"name": _TOPIC, "partitions": [{"partitionIndex": 0, "committedOffset": 5}]}],
    },
}

Spoil = Callable[[Random, bytearray], None]


def true_frames(cluster: Cluster) -> list[bytes]:
    """Requests that are well: recorded from real clients, and some that would do something."""
    frames = []
    for path in sorted(RECORDED.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("dir") == "req":
                frames.append(bytes.fromhex(record["frame"]))
    return frames + _fuller_frames(cluster)


def _fuller_frames(cluster: Cluster) -> list[bytes]:
    """Requests of operators and producers that would do something."""
    frames = []
    for api, fields in FULLER.items():
        oldest, newest = cluster.versions.ranges[api]
        for version in range(oldest, newest + 1):
            header = RequestHeader(
                api_key=api, api_version=version, correlation_id=8, client_id="spoilt"
            )
            try:
                frames.append(request_frame(header, fields))
            except (DataError, UnsupportedVersion):
                continue
    return frames * _FULLER_WEIGHT


def _truncate(random: Random, frame: bytearray) -> None:
    del frame[random.randrange(len(frame) + 1) :]


def _flip_bits(random: Random, frame: bytearray) -> None:
    for _ in range(random.choice((1, 1, 2, 8))):
        frame[random.randrange(len(frame))] ^= 1 << random.randrange(8)


def _flip_body(random: Random, frame: bytearray) -> None:
    if len(frame) > _HEADER_BYTES:
        frame[random.randrange(_HEADER_BYTES, len(frame))] = random.randrange(256)


def _put_edge(random: Random, frame: bytearray) -> None:
    """A length, a count or a number at the edge of what its type says."""
    form = random.choice((">B", ">H", ">I"))
    size = struct.calcsize(form)
    if len(frame) < _HEADER_BYTES + size:
        return
    value = random.choice(_EDGES) & ((1 << 8 * size) - 1)
    struct.pack_into(form, frame, random.randrange(_HEADER_BYTES, len(frame) - size + 1), value)


def _put_varint(random: Random, frame: bytearray) -> None:
    """A compact count, or a number of tags, that promises far more than comes."""
    at = random.randrange(len(frame))
    frame[at : at + 1] = random.choice(
        (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xc1\x84\x3d", b"\x80" * 12)
    )


def _another_version(random: Random, frame: bytearray) -> None:
    if len(frame) >= 4:
        struct.pack_into(">h", frame, 2, random.choice((-1, 0, 1, 2, 5, 9, 13, 18, 99, 0x7FFF)))


def _another_api(random: Random, frame: bytearray) -> None:
    if len(frame) >= 2:
        struct.pack_into(">h", frame, 0, random.randrange(-2, 100))


def _many_tags(random: Random, frame: bytearray) -> None:
    """Tagged fields nobody knows, at the end."""
    count = random.choice((1, 100, 5_000, 20_000))
    tags = b"".join(bytes((100 + index % 27, 0)) for index in range(min(count, 500)))
    varint = bytes((count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14))
    frame[-1:] = varint + tags


def _insert(random: Random, frame: bytearray) -> None:
    at = random.randrange(len(frame) + 1)
    frame[at:at] = random.randbytes(random.randrange(1, 40))


def _lengthen(random: Random, frame: bytearray) -> None:
    frame += random.randbytes(random.randrange(1, _LONGEST_TAIL))


def _randomise(random: Random, frame: bytearray) -> None:
    frame[:] = random.randbytes(random.randrange(_LONGEST_TAIL))


def _randomise_body(random: Random, frame: bytearray) -> None:
    frame[_HEADER_BYTES:] = random.randbytes(random.randrange(_LONGEST_TAIL))


def _leave(_random: Random, _frame: bytearray) -> None:
    """Some are well."""


SPOILERS: Final[tuple[Spoil, ...]] = (
    *(_truncate, _flip_bits, _flip_bits, _flip_body, _flip_body, _put_edge, _put_edge, _put_varint),
    *(_another_version, _another_api, _many_tags, _insert, _lengthen, _randomise, _randomise_body),
    _leave,
)


def spoilt(random: Random, frames: list[bytes], cluster: Cluster) -> bytes:
    """One of the frames or a request of any API, spoilt; some of the latter stay as they are."""
    if random.random() < _DRAWN_SHARE:
        frame = bytearray(drawn_frame(random, cluster))
        if random.random() < _WELL_SHARE:
            return bytes(frame)
    else:
        frame = bytearray(random.choice(frames))
    random.choice(SPOILERS)(random, frame)
    return bytes(frame)


# -- requests by their schemas -----------------------------------------------------------------


def drawn_frame(random: Random, cluster: Cluster) -> bytes:
    """A request of any API that is offered, each as likely as another, with values of any kind."""
    api, (oldest, newest) = random.choice(list(cluster.versions.ranges.items()))
    version = random.randint(oldest, newest)
    header = RequestHeader(api_key=api, api_version=version, correlation_id=9, client_id="drawn")
    topic = cluster.image.topics.get(_TOPIC)

    def value(each: VersionField) -> object:
        if each.is_nullable and random.random() < _NULL_SHARE:
            return None
        if each.layout is not None and each.field.kind is Kind.ARRAY:
            return [fields_by(each.layout, value)] * random.choice((0, 1, 1, 1, 2))
        if topic and each.field.kind is Kind.UUID and random.random() < _WELL_SHARE:
            return topic.topic_id
        return random.choice(values_of(each))

    return request_frame(header, fields_by(layout_of(api, version, response=False), value))


def fields_by(layout: Layout, value: Callable[[VersionField], object]) -> Fields:
    """A message with all fields of a version, each with a value that is chosen for it."""
    return {
        each.field.name: fields_by(each.layout, value)
        if each.layout is not None and each.field.kind is Kind.STRUCT
        else value(each)
        for each in layout.present
    }


def values_of(each: VersionField) -> list[object]:
    """Values of a field that is no struct: usual ones first, then those at an edge."""
    kind, element = each.field.kind, each.field.element
    if kind is Kind.ARRAY:
        one = _VALUES[element or Kind.INT32]
        return [[one[0]], [], [one[0]] * 2, *([other] for other in one[1:])]
    return _VALUES[kind]


def _numbers(bits: int, *usual: int) -> list[object]:
    most = (1 << bits - 1) - 1
    return [*usual, most, -1, -most - 1]


_VALUES: Final[dict[Kind, list[object]]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INT8: _numbers(8, 0, 1, 2),
    Kind.INT16: _numbers(16, 0, 1, 3),
    Kind.UINT16: [0, 9092, 65_535],
    Kind.INT32: _numbers(32, 0, 1, 1_000),
    Kind.INT64: _numbers(64, 0, 1, 1_000),
    Kind.FLOAT64: [1.0, 0.0, -1.0, float("inf"), float("nan")],
    Kind.UUID: [bytes(range(16)), ZERO_UUID, b"\xff" * 16],
    Kind.STRING: [_TOPIC, "", "1", "range", "x" * 250, "\u00e9\x00/.."],
    Kind.BYTES: [_BATCH, b"", b"junk", bytes(70_000)],
}
