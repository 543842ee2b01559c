"""The log directory between our broker and Apache Kafka: its tools and brokers read ours."""

import shutil
import time
from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.records import EndTransactionMarker
from coordinator_sim.server.kept_cluster import KeptCluster
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka import kafka, offsets_log
from tests.unit.broker.frames_client import DataClient

pytestmark = pytest.mark.real_kafka

OFFSETS = "__consumer_offsets"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
COMPLAINTS = ("ismatch", "out of order", "not found", "isvalid: false", "orrupt")
BEGINS = "-1 is followed by"
"""The tool says this of the first record of any segment that does not begin at 0."""


def directory(path: Path) -> LogDirectory:
    """A directory of ours."""
    return LogDirectory(DirectorySettings(path=str(path), node_id=1, new_id=lambda: bytes(16)))


def filled(path: Path, now_ms: int) -> list[Path]:
    """Segments of one partition with producers and transactions of every end; all files."""
    opened = directory(path)
    opened.go_on()
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
    log = PartitionLog("orders", 0, opened.store("orders", 0, bytes(range(16))), config)
    for number in range(300):
        record = Record(
            offset=0, timestamp_ms=now_ms + number % 7 + number, key=b"k", value=bytes(150)
        )
        data = batch_of(
            (record,),
            producer_id=number % 9,
            producer_epoch=0,
            base_sequence=number // 9,
            transactional=number % 9 < 4,
        )
        log.append(encode_record_batch(data), now_ms=now_ms, leader_epoch=number // 100)
        if number % 9 < 4 and number % 2:
            marker = EndTransactionMarker(committed=number % 4 == 1, coordinator_epoch=0)
            log.append_marker(number % 9, 0, marker, now_ms=now_ms, leader_epoch=number // 100)
    log.close()
    opened.close()
    return sorted((path / "orders-0").glob("0*"))


def test_the_dump_tool_has_nothing_to_complain_about(tmp_path: Path) -> None:
    """Batches, indexes of offsets, times and aborted transactions and snapshots all fit."""
    files = filled(tmp_path / "data", int(time.time() * 1000))
    kinds = {path.suffix for path in files}
    assert kinds == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    for option in ("--deep-iteration", "--index-sanity-check"):
        done = kafka.run_java(
            kafka.TOOLS_VERSION, DUMP, option, "--files", ",".join(map(str, files))
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout + done.stderr
        assert [word for word in COMPLAINTS if word in printed] == []
        assert printed.count("is followed by") == printed.count(BEGINS)
    assert done.stdout.count("passed sanity check") == sum(
        path.suffix in {".index", ".timeindex"} for path in files
    )
    dumped = kafka.run_java(kafka.TOOLS_VERSION, DUMP, "--files", ",".join(map(str, files))).stdout
    assert dumped.count("Dumping ") == len(files)
    assert "producerId: 8 producerEpoch: 0" in dumped


class Ours:
    """A cluster of ours on a directory, without sockets."""

    def __init__(self, path: Path) -> None:
        now_ms = int(time.time() * 1000)
        self.now = Instants(now_ms, now_ms)
        kept = KeptCluster(directory(path))
        settings = kept.adapted(ClusterSettings())
        self.cluster = Cluster(
            settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092), kept=kept
        )
        self.cluster.begin(self.now)

    def call(self, api: ApiKey, version: int, request: Fields) -> Fields:
        """What its broker answers."""
        return DataClient(self.cluster).call(api, version, request, at_ms=self.now.group_ms)

    def commit(self, group_id: str, offsets: dict[int, int]) -> None:
        """Commit offsets of the topic orders."""
        partitions = [
            {
                "partitionIndex": partition,
                "committedOffset": offset,
                "committedLeaderEpoch": 0,
                "committedMetadata": f"at {offset}",
            }
            for partition, offset in offsets.items()
        ]
        request = {
            "groupId": group_id,
            "generationIdOrMemberEpoch": -1,
            "memberId": "",
            "topics": [{"name": "orders", "partitions": partitions}],
        }
        answer = self.call(ApiKey.OFFSET_COMMIT, 8, request)
        assert {p["errorCode"] for p in answer["topics"][0]["partitions"]} == {0}

    def fetched(self, groups: tuple[str, ...]) -> list[offsets_log.StoredOffset]:
        """All offsets of these groups; sorted."""
        wanted = [{"groupId": group_id, "topics": None} for group_id in groups]
        answer = self.call(ApiKey.OFFSET_FETCH, 8, {"groups": wanted})
        return sorted(
            offsets_log.StoredOffset(
                group["groupId"],
                topic["name"],
                found["partitionIndex"],
                found["committedOffset"],
                found["committedLeaderEpoch"],
                found["metadata"] or "",
            )
            for group in answer["groups"]
            for topic in group["topics"]
            for found in topic["partitions"]
        )


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "version",
    [
        kafka.BROKER_VERSION,
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in (kafka.TOOLS_VERSION, kafka.OLD_BROKER_VERSION)
        ),
    ],
)
def test_a_real_broker_loads_our_offsets_partitions(
    tmp_path: Path, version: str, *, is_clean: bool
) -> None:
    """Clients fetch there what ours committed, whether our indexes are trusted or recovered."""
    groups = tuple(f"g{number}" for number in range(12))
    with kafka.Broker(tmp_path / "broker", offsets_log.PROPERTIES, version) as broker:
        kafka.run_client("prepare", broker.bootstrap)
        broker.stop()
        shutil.copytree(broker.data, tmp_path / "ours")
        ours = Ours(tmp_path / "ours")
        for number, group_id in enumerate(groups):
            for offset in range(60):
                ours.commit(group_id, {number % 3: offset})
        expected = ours.fetched(groups)
        ours.cluster.leave()
        for partition in range(offsets_log.OFFSETS_PARTITIONS):
            folder = f"{OFFSETS}-{partition}"
            shutil.rmtree(broker.data / folder)
            shutil.copytree(tmp_path / "ours" / folder, broker.data / folder)
        if not is_clean:
            (broker.data / ".kafka_cleanshutdown").unlink()
        broker.start()
        fetched = [
            offsets_log.offset_of(line)
            for line in kafka.run_client("fetch", broker.bootstrap, *groups)
        ]
        said = broker.log.read_text()
    assert sorted(fetched) == expected
    assert len(fetched) == len(groups)
    assert "orrupt" not in said
    assert "Could not find offset index file" not in said


@pytest.mark.parametrize(
    "version",
    [kafka.BROKER_VERSION, pytest.param(kafka.OLD_BROKER_VERSION, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("is_killed", [False, True])
def test_we_serve_the_directory_of_a_real_broker(
    tmp_path: Path, version: str, *, is_killed: bool
) -> None:
    """Topics are found by their folders; offsets are as it had them, also when it was killed."""
    groups = ("plain", "simple", "txn", "gone")
    with kafka.Broker(tmp_path, offsets_log.PROPERTIES, version) as broker:
        kafka.run_client("prepare", broker.bootstrap)
        kafka.run_client("commit", broker.bootstrap)
        fetched = [
            offsets_log.offset_of(line)
            for line in kafka.run_client("fetch", broker.bootstrap, *groups)
        ]
        if is_killed:
            broker.kill()
    ours = Ours(broker.data)
    assert ours.fetched(groups) == sorted(fetched)
    assert len(fetched) == 5
    names = {name: len(topic.partitions) for name, topic in ours.cluster.image.topics.items()}
    assert names[OFFSETS] == offsets_log.OFFSETS_PARTITIONS
    assert names["orders"] == 3
    ours.commit("simple", {0: 1234})
    ours.cluster.leave()
    again = Ours(broker.data)
    assert 1234 in {found.offset for found in again.fetched(("simple",))}
    again.cluster.leave()
