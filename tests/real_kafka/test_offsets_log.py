"""The offsets log crosses between our core and Apache Kafka, in both directions."""

import time
from itertools import product
from pathlib import Path

import pytest

from coordinator_sim.disk.offsets_log import read_log, segment_files, write_log
from coordinator_sim.harness.harness import Harness
from coordinator_sim.log.compaction import DELETE_RETENTION_MS, CleaningPass, compacted
from coordinator_sim.log.dump_text import dump_segment
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm, encode_log
from coordinator_sim.messages.records import LogBatch
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker, run_client, run_java
from coordinator_sim_conformance.real_kafka.offsets_log import (
    EAGER_CLEANER,
    OFFSETS_PARTITIONS,
    PROPERTIES,
    cleaned_by,
    commit,
    decoded_segment,
    dump_by_kafka,
    end_transaction,
    erase,
    fetched_from,
    live_through_everything,
    loaded,
    offset_of,
    our_broker,
    place_log,
)

pytestmark = pytest.mark.real_kafka

GROUPS = ("plain", "simple", "txn", "gone")


def now_ms() -> int:
    """Wall-clock time, because a real broker expires what is old."""
    return int(time.time() * 1000)


def batches_of(harness: Harness) -> list[LogBatch]:
    """The whole log of our broker."""
    return [batch for index in range(OFFSETS_PARTITIONS) for batch in harness.log(index)]


def our_dump(files: list[Path]) -> str:
    """What we print of segments."""
    lines = (line for path in files for line in dump_segment(str(path), path.read_bytes()))
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_a_real_broker_serves_our_log(tmp_path: Path, codec: Compression) -> None:
    """Clients of the broker fetch what ours committed, and see the group that ours left Stable."""
    ours = our_broker(now_ms())
    groups = live_through_everything(ours)
    batches = batches_of(ours)
    with Broker(tmp_path, PROPERTIES) as broker:
        run_client("prepare", broker.bootstrap)
        broker.stop()
        files = place_log(broker, batches, BatchForm(compression=codec))
        dumped = dump_by_kafka(files)

        broker.start()
        fetched = [offset_of(line) for line in run_client("fetch", broker.bootstrap, *groups)]
        described = run_client("describe", broker.bootstrap, *groups)
        table = run_java(
            TOOLS_VERSION,
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *("--bootstrap-server", broker.bootstrap, "--describe", "--group", "stable"),
        )

    assert sorted(fetched) == fetched_from(ours, groups)
    assert len(fetched) == 6
    assert described == [
        "stable\tStable\trange\t[c1=[orders-0, orders-1], c2=[orders-2]]",
        "simple\tEmpty\t\t[]",
        "txn\tEmpty\t\t[]",
    ]
    assert "c1-" in table.stdout
    assert dumped == (our_dump(files), "")


def test_we_serve_the_log_of_a_real_broker(tmp_path: Path) -> None:
    """After real commits, plain and transactional, we answer as it did, from its own segments."""
    with Broker(tmp_path / "broker", PROPERTIES) as broker:
        run_client("prepare", broker.bootstrap)
        run_client("commit", broker.bootstrap)
        fetched = [offset_of(line) for line in run_client("fetch", broker.bootstrap, *GROUPS)]
    files = segment_files(broker.data)

    ours = loaded(read_log(broker.data), now_ms())

    assert fetched_from(ours, GROUPS) == sorted(fetched)
    assert len(fetched) == 5
    assert dump_by_kafka(files) == (our_dump(files), "")
    write_log(tmp_path / "copy", read_log(broker.data))
    for path in files:
        if path.stat().st_size:
            copy = tmp_path / "copy" / path.parent.name / path.name
            assert copy.read_bytes() == path.read_bytes()


def test_a_real_broker_goes_on_with_our_log(tmp_path: Path) -> None:
    """The broker appends to our segments, and we read on behind our own end."""
    ours = our_broker(now_ms())
    live_through_everything(ours)
    with Broker(tmp_path, PROPERTIES) as broker:
        run_client("prepare", broker.bootstrap)
        broker.stop()
        place_log(broker, batches_of(ours))
        broker.start()
        run_client("commit", broker.bootstrap)
        groups = ("stable", *GROUPS)
        fetched = [offset_of(line) for line in run_client("fetch", broker.bootstrap, *groups)]

    assert fetched_from(loaded(read_log(broker.data), now_ms()), groups) == sorted(fetched)


def test_the_cleaner_of_a_real_broker_leaves_what_ours_does(tmp_path: Path) -> None:
    """Replaced records, tombstones, aborted data, markers, headers of known producers."""
    ours = our_broker(now_ms())
    live_through_everything(ours)
    erase(ours, "simple", 2)
    end_transaction(ours, "txn", producer_id=1002, committed=True)
    commit(ours, "txn", {1: 71})
    commit(ours, "stable", {0: 99})
    batches = ours.log(ours.partition_of("txn"))
    before = decoded_segment(b"".join(batch.data for batch in encode_log(batches)))
    broker = Broker(tmp_path, {**PROPERTIES, **EAGER_CLEANER})
    with broker:
        run_client("prepare", broker.bootstrap)
        broker.stop()
        cleaned = cleaned_by(broker, batches)

    (horizon_ms,) = {one.delete_horizon_ms for one in cleaned if one.has_delete_horizon}
    pass_ = CleaningPass(now_ms=horizon_ms - DELETE_RETENTION_MS, clean_to=before[-1].base_offset)
    assert cleaned == compacted(before, pass_)[:-1]
    assert len(cleaned) < len(before) - 1


@pytest.mark.parametrize(
    ("magic", "codec"),
    [pair for pair in product((0, 1, 2), Compression) if pair not in ((0, 4), (1, 4))],
)
def test_kafka_reads_every_format_that_we_write(
    tmp_path: Path, magic: int, codec: Compression
) -> None:
    """All magics and compressions are printed by kafka-dump-log as by us."""
    ours = our_broker(now_ms())
    live_through_everything(ours)
    plain = [batch for batch in batches_of(ours) if not batch.transactional]
    files = write_log(tmp_path, plain, BatchForm(magic=magic, compression=codec))

    text, _complaints = dump_by_kafka(files)

    assert text == our_dump(files)
    assert text.count("\n|") >= 8
    assert "isvalid: false" not in text
