"""Records of any shape, as other clients' builders write them, through a log and back."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated function.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder
    from kafka.record.memory_records import MemoryRecords as PythonRecords

T_MS = 1_700_000_000_000
RECORD = st.tuples(
    st.integers(0, T_MS),
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20)), max_size=3),
)
BATCHES = st.lists(
    st.tuples(st.sampled_from(Compression), st.lists(RECORD, min_size=1, max_size=12)),
    min_size=1,
    max_size=6,
)
Shape = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def built(builder: Callable[..., Any], codec: Compression, records: list[Shape]) -> bytes:
    """A batch as that client sends it; kafka-python has snappy only with a library more."""
    if builder is PythonBuilder and codec is Compression.SNAPPY:
        codec = Compression.LZ4
    batch = builder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, (timestamp_ms, key, value, headers) in enumerate(records):
        batch.append(offset, timestamp=timestamp_ms, key=key, value=value, headers=headers)
    return bytes(batch.build())


def seen(records: Any) -> list[tuple[int, Shape]]:  # noqa: ANN401 - either client's reader
    """What that client reads."""
    found = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found += [
            (one.offset, (one.timestamp, one.key, one.value, list(one.headers))) for one in batch
        ]
    return found


@pytest.mark.property
@pytest.mark.parametrize(
    ("builder", "reader"), [(AioBuilder, AioRecords), (PythonBuilder, PythonRecords)]
)
@given(batches=BATCHES, topics_codec=st.sampled_from(["producer", "uncompressed", "zstd", "gzip"]))
def test_records_come_back_in_order(
    builder: Callable[..., Any],
    reader: Callable[[bytes], Any],
    batches: list[tuple[Compression, list[Shape]]],
    topics_codec: str,
) -> None:
    """Whatever codec the topic wants, every client reads what was sent, with the log's offsets."""
    log = PartitionLog("t", 0, MemoryStore(), LogConfig(compression_type=topics_codec))
    expected: list[Shape] = []
    for codec, records in batches:
        appended = log.append(
            built(builder, codec, records), now_ms=T_MS, leader_epoch=2, produce_version=9
        )
        assert (appended.error, appended.base_offset) == (ErrorCode.NONE, len(expected))
        expected += records
    data = b"".join(log.chunks())
    assert seen(reader(data)) == list(enumerate(expected))
    assert log.end_offset == len(expected)


@pytest.mark.property
@given(batches=BATCHES, cut=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_log_holds_whole_valid_batches_whatever_comes(
    batches: list[tuple[Compression, list[Shape]]], cut: int, byte: int
) -> None:
    """One byte of a batch is another one: it is refused, or what is stored still parses."""
    log = PartitionLog("t", 0, MemoryStore())
    for codec, records in batches:
        data = bytearray(built(AioBuilder, codec, records))
        data[cut % len(data)] = byte
        for version in (2, 9):
            log.append(bytes(data), now_ms=T_MS, leader_epoch=0, produce_version=version)
    read = b"".join(log.chunks())
    offsets = []
    for batch in batches_in(read):
        assert batch.is_valid
        offsets += [record.offset for record in batch.records()]
    assert offsets == list(range(log.end_offset))
