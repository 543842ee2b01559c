"""A served cluster on a log directory, without sockets, that is left and begun again."""

from pathlib import Path

import pytest
from msgspec import structs

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.server.kept_cluster import KeptCluster
from coordinator_sim_conformance.field_frames import Fields
from tests.faulty_files import FaultyFiles
from tests.unit.broker.data_world import batch_of, partition_of
from tests.unit.broker.frames_client import DataClient

_DEFAULT_FACTOR_SINCE = 4
"""CreateTopics has -1 for the broker's replication factor from this version on."""

NOW = Instants(1_000_000, 1_000_000)
SETTINGS = ClusterSettings(
    coordinator=CoordinatorConfig(
        offsets_topic_num_partitions=4, group_initial_rebalance_delay_ms=0
    )
)


class KeptWorld:
    """One broker and its directory.

    Attributes:
        files: The disk.
        directory: Of the present process.
        cluster: Of the present process.
        troubles: What its log says.
    """

    def __init__(
        self,
        path: Path,
        brokers: int = 1,
        *,
        accept_loss: bool = False,
        settings: ClusterSettings = SETTINGS,
    ) -> None:
        self.path = path
        self.files = FaultyFiles()
        self.accept_loss = accept_loss
        self.settings = settings
        self.brokers = tuple(range(1, brokers + 1))
        self.begin()

    def begin(self) -> None:
        """A process begins."""
        self.troubles: list[str] = []
        how = DirectorySettings(
            path=str(self.path),
            node_id=1,
            node_ids=self.brokers,
            new_id=lambda: bytes(15) + b"\x01",
            accept_loss=self.accept_loss,
        )
        self.directory = LogDirectory(how, self.files)
        self.directory.on_report = self.troubles.extend
        try:
            self.kept = KeptCluster(self.directory)
        except BaseException:
            self.directory.abandon()
            raise
        finally:
            lines = self.directory.report.lines(accept_loss=self.accept_loss)
            self.troubles.extend(lines)
        self.serve()

    def serve(self) -> None:
        """A cluster begins on what is kept."""
        settings = structs.replace(self.settings, broker_ids=self.brokers)
        self.cluster = Cluster(
            self.kept.adapted(settings),
            endpoint=lambda broker_id, _name: Endpoint("localhost", 9091 + broker_id),
            kept=self.kept,
        )
        self.cluster.cluster_events.trouble.append(self.troubles.append)
        self.cluster.begin(NOW)

    def kill(self) -> None:
        """The process is killed, and another begins."""
        self.directory.abandon()
        self.begin()

    def leave(self) -> None:
        """The process ends in order, and another begins."""
        self.cluster.leave()
        self.begin()

    def call(self, api: ApiKey, version: int, request: Fields) -> Fields:
        """What broker 1 answers."""
        client = DataClient(self.cluster)
        try:
            return client.call(api, version, request)
        except IndexError:
            pytest.fail(f"{api.name} is not answered: {client.closed}")

    def create(self, name: str, partitions: int = 1, version: int = 7) -> ErrorCode:
        """Create a topic."""
        entry = {
            "name": name,
            "numPartitions": partitions,
            "replicationFactor": -1,
            "assignments": [],
            "configs": [{"name": "retention.ms", "value": "-1"}],
        }
        if version < _DEFAULT_FACTOR_SINCE:
            entry["replicationFactor"] = 1
        request = {"topics": [entry], "timeoutMs": 1_000, "validateOnly": False}
        answer = self.call(ApiKey.CREATE_TOPICS, version, request)
        return ErrorCode(answer["topics"][0]["errorCode"])

    def produce(self, topic: str, value: bytes) -> tuple[ErrorCode, int]:
        """Append a record to partition 0: the error, and its offset."""
        entry = {"name": topic, "partitionData": [{"index": 0, "records": batch_of(value)}]}
        request = {"acks": -1, "timeoutMs": 1_000, "topicData": [entry]}
        found = partition_of(self.call(ApiKey.PRODUCE, 9, request))
        return ErrorCode(found["errorCode"]), found["baseOffset"]

    def records(self, topic: str) -> bytes:
        """Everything in partition 0."""
        terms = {
            "partition": 0,
            "fetchOffset": 0,
            "partitionMaxBytes": 1 << 20,
            "currentLeaderEpoch": -1,
        }
        request = {
            "maxWaitMs": 0,
            "minBytes": 0,
            "topics": [{"topic": topic, "partitions": [terms]}],
        }
        return bytes(partition_of(self.call(ApiKey.FETCH, 11, request))["records"])

    def commit(self, group_id: str, offset: int) -> ErrorCode:
        """Commit an offset of t-0 for a group without members."""
        entry = {
            "partitionIndex": 0,
            "committedOffset": offset,
            "committedLeaderEpoch": -1,
            "committedMetadata": "",
        }
        request = {
            "groupId": group_id,
            "generationIdOrMemberEpoch": -1,
            "memberId": "",
            "topics": [{"name": "t", "partitions": [entry]}],
        }
        found = self.call(ApiKey.OFFSET_COMMIT, 8, request)
        return ErrorCode(found["topics"][0]["partitions"][0]["errorCode"])

    def committed(self, group_id: str) -> int:
        """The committed offset of t-0."""
        request = {
            "groups": [{"groupId": group_id, "topics": [{"name": "t", "partitionIndexes": [0]}]}]
        }
        found = self.call(ApiKey.OFFSET_FETCH, 8, request)
        return int(found["groups"][0]["topics"][0]["partitions"][0]["committedOffset"])

    def leader(self, topic: str) -> tuple[int, int]:
        """Leader and epoch of partition 0."""
        state = self.cluster.image.topics[topic].partitions[0]
        return state.leader_id, state.leader_epoch
