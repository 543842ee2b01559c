"""The small files of a log directory, as Kafka writes them."""

import pytest

from coordinator_sim.disk import checkpoints
from coordinator_sim.errors import DataError
from coordinator_sim.log.contract import EpochStart, ProducerEntry

TOPIC_ID = bytes.fromhex("e0b5d1eeb0f84f6e9a3b7e7d5c1f2a90")


def test_checkpoints_are_read_as_they_are_written() -> None:
    """Version, count, one line an entry; the file that a broker has just made is empty."""
    offsets = {("b", 2): 7, ("a", 10): 5}
    assert checkpoints.offsets_checkpoint_bytes(offsets) == b"0\n2\na 10 5\nb 2 7\n"
    assert checkpoints.offsets_of_checkpoint("0\n2\na 10 5\nb 2 7\n") == offsets
    epochs = [EpochStart(0, 0), EpochStart(3, 12)]
    assert checkpoints.epochs_checkpoint_bytes(epochs) == b"0\n2\n0 0\n3 12\n"
    assert checkpoints.epochs_of_checkpoint("0\n2\n0 0\n3 12\n") == epochs
    assert checkpoints.offsets_of_checkpoint("") == {}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n", "0\n2\na 1 2\n", "0\n1\na 1\n", "0\nx\n", "0\n1\na b c\n"]
)
def test_a_damaged_checkpoint_is_refused(text: str) -> None:
    """Another version, a wrong count, or what is no number."""
    with pytest.raises(DataError):
        checkpoints.offsets_of_checkpoint(text)


def test_properties_of_both_versions_are_read() -> None:
    """Ours are read, those that Java escapes, and those of brokers with ZooKeeper."""
    meta = checkpoints.MetaProperties(
        cluster_id="4L6g3nShT-eMCtK--X86sw", node_id=3, directory_id="x"
    )
    assert checkpoints.meta_properties_of(checkpoints.meta_properties_bytes(meta).decode()) == meta
    java = "#\n#Sat Nov 21 18:00:00 UTC 2026\nnode.id=3\ndirectory.id=x\nversion=1\n"
    assert checkpoints.meta_properties_of(f"{java}cluster.id=4L6g3nShT-eMCtK--X86sw\n") == meta
    old = checkpoints.meta_properties_of(
        "version=0\nbroker.id=3\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    assert (old.node_id, old.directory_id) == (3, None)
    with pytest.raises(DataError, match="lacks"):
        checkpoints.meta_properties_of("version=1\nnode.id=x\ncluster.id=c\n")


def test_ids_are_written_as_kafka_does() -> None:
    """16 bytes are 22 characters of URL-safe base64."""
    assert checkpoints.id_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert checkpoints.id_from_text(checkpoints.id_text(TOPIC_ID)) == TOPIC_ID
    assert (
        checkpoints.topic_id_of(checkpoints.partition_metadata_bytes(TOPIC_ID).decode()) == TOPIC_ID
    )
    for bad in ("AAAA", "", "A"):
        with pytest.raises(DataError):
            checkpoints.id_from_text(bad)
    with pytest.raises(DataError, match="names no topic id"):
        checkpoints.topic_id_of("version: 0\n")


def test_a_snapshot_holds_producers_and_notices_damage() -> None:
    """Every field comes back; a file with any wrong byte is none."""
    producers = (
        ProducerEntry(
            producer_id=2**40,
            producer_epoch=7,
            last_sequence=12,
            last_offset=100,
            offset_delta=3,
            timestamp_ms=1_700_000_000_000,
            coordinator_epoch=-1,
            current_txn_first_offset=97,
        ),
    )
    data = checkpoints.snapshot_bytes(producers)
    assert checkpoints.producers_of_snapshot(data) == producers
    assert checkpoints.producers_of_snapshot(checkpoints.snapshot_bytes(())) == ()
    for position in range(len(data)):
        wrong = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        assert checkpoints.producers_of_snapshot(wrong) is None
        assert checkpoints.producers_of_snapshot(data[:position]) is None


def test_the_mark_of_a_clean_shutdown_is_json() -> None:
    """With the broker's epoch, as CleanShutdownFileHandler writes it."""
    assert checkpoints.clean_shutdown_bytes(12) == b'{"version":0,"brokerEpoch":12}'
