"""Kafka reads our `__transaction_state`, and answers as it was recorded."""

import json
from pathlib import Path

import pytest

from coordinator_sim.broker.transactions.metadata import TV_0, TV_2, TransactionState, TxnTransit
from coordinator_sim.broker.transactions.state_records import entry_of
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.messages.codec.records import key_bytes
from coordinator_sim.messages.transaction_log_records import TransactionLogKey
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, run_java
from tools.record_transactions import FOLDER, VERSIONS, transcript

pytestmark = pytest.mark.real_kafka

ONGOING = TxnTransit(
    state=TransactionState.ONGOING,
    producer_id=5,
    previous_producer_id=4,
    next_producer_id=-1,
    producer_epoch=3,
    last_producer_epoch=-1,
    timeout_ms=60_000,
    partitions=(TopicPartition("a", 0), TopicPartition("b", 7)),
    started_ms=900,
    updated_ms=1_000,
    client_version=0,
)


def test_the_dump_tool_reads_our_state_log(tmp_path: Path) -> None:
    """Both versions of the value, and a tombstone."""
    folder = tmp_path / f"{TRANSACTIONS_TOPIC}-0"
    folder.mkdir()
    entries = [
        entry_of("old", ONGOING, TV_0),
        entry_of("new", ONGOING, TV_2),
        (key_bytes(TransactionLogKey("gone")), None),
    ]
    records = tuple(
        Record(offset=offset, timestamp_ms=1_000, key=key, value=value)
        for offset, (key, value) in enumerate(entries)
    )
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(encode_record_batch(batch_of(records)))

    tool = "org.apache.kafka.tools.DumpLogSegments"
    done = run_java(TOOLS_VERSION, tool, "--transaction-log-decoder", "--files", str(segment))

    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if "payload: " in line]
    keys = [json.loads(line.split("key: ")[1].split(" payload: ")[0]) for line in found]
    assert [key["data"]["transactionalId"] for key in keys] == ["old", "new", "gone"]
    values = [line.split("payload: ")[1] for line in found]
    told = {
        "producerId": 5,
        "producerEpoch": 3,
        "transactionTimeoutMs": 60_000,
        "transactionStatus": 1,
        "transactionPartitions": [
            {"topic": "a", "partitionIds": [0]},
            {"topic": "b", "partitionIds": [7]},
        ],
        "transactionLastUpdateTimestampMs": 1_000,
        "transactionStartTimestampMs": 900,
    }
    assert json.loads(values[0]) == {"version": "0", "data": told}
    assert json.loads(values[1]) == {"version": "1", "data": {**told, "previousProducerId": 4}}
    assert values[2] in {"null", "<DELETE>"}


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_a_real_broker_answers_as_it_was_recorded(version: str) -> None:
    """The everyday test of ours needs no JVM, because this one asks a real broker."""
    recorded = (FOLDER / f"kafka-{version}.jsonl").read_text("utf-8")

    assert transcript(version) == recorded
