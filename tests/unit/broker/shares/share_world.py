"""A served cluster with a share group, and what its members and administrators ask."""

from typing import Any

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import AclCreated
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_questions import batch
from tests.unit.broker.shares.share_clients import Client, Clients

GROUP = "g"
MEMBER = "member-1"
GROUP_RESOURCE = 32
TOPIC_ACL, GROUP_ACL, LITERAL = 2, 3, 3
ALLOW = 3
READ, DELETE, DESCRIBE = 3, 6, 8
ACCEPT, RELEASE, REJECT = 1, 2, 3
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class ShareWorld:
    """A cluster with a topic `lines`, five records in each of its partitions.

    Attributes:
        cluster: It.
        clients: Its clients, which share a clock.
        client: One of them, at broker 1.

    Args:
        cluster: It.
        partitions: Of the topic; 0 where it is there already.
    """

    def __init__(self, cluster: Cluster, partitions: int = 1) -> None:
        self.cluster = cluster
        self.clients = Clients(self.cluster)
        self.client = self.connect()
        if partitions:
            self.cluster.topics.create_asked_for("__consumer_offsets", self.now)
            self.cluster.topics.create_spread("lines", partitions, self.now)
        for partition in range(partitions):
            self.produce(5, partition)

    def connect(self, broker_id: int = 1) -> Client:
        """Another client."""
        return self.clients.connect(broker_id)

    @property
    def now(self) -> Instants:
        """The present."""
        return Instants(self.clients.now_ms, self.clients.now_ms)

    @property
    def topic_id(self) -> bytes:
        """Of `lines`."""
        return self.cluster.image.topics["lines"].topic_id

    def coordinator(self) -> Client:
        """A client at the group's coordinator."""
        count = len(self.cluster.image.topics["__consumer_offsets"].partitions)
        broker = self.cluster.groups.leader_of(partition_for(GROUP, count))
        assert broker is not None
        return self.connect(broker.broker_id)

    def produce(self, count: int, partition: int = 0) -> None:
        """Append a batch of so many records."""
        log = self.cluster.logs.log_of("lines", partition)
        assert log is not None
        values = (b"%d" % number for number in range(count))
        epoch = self.cluster.image.topics["lines"].partitions[partition].leader_epoch
        data = batch(*values, magic=2, start_ms=self.clients.now_ms)
        log.append(data, now_ms=self.now.group_ms, leader_epoch=epoch)
        self.cluster.cluster_events.touched(("lines", partition))

    def allow(self, kind: int, name: str, *operations: int) -> None:
        """Let everybody do something."""
        for operation in operations:
            rule = AclCreated(kind, name, LITERAL, "User:ANONYMOUS", "*", operation, ALLOW)
            self.cluster.change(rule)

    def set(self, **settings: str) -> None:
        """Set settings of the group; their names have `_` for a dot."""
        configs = [
            {"name": name.replace("_", "."), "configOperation": 0, "value": value}
            for name, value in settings.items()
        ]
        resource = {"resourceType": GROUP_RESOURCE, "resourceName": GROUP, "configs": configs}
        fields = {"resources": [resource], "validateOnly": False}
        answer = self.client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, fields)
        assert [each["errorCode"] for each in answer["responses"]] == [0]

    def start(self, offset: int = 0) -> None:
        """Let the group begin to read all partitions at an offset."""
        partitions = [
            {"partitionIndex": index, "startOffset": offset}
            for index in range(len(self.cluster.image.topics["lines"].partitions))
        ]
        topics = [{"topicName": "lines", "partitions": partitions}]
        fields = {"groupId": GROUP, "topics": topics}
        answer = self.coordinator().call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, fields)
        assert answer["errorCode"] == 0, answer

    def beat(self, epoch: int = 0, member: str = MEMBER, topics: list[str] | None = None) -> Fields:
        """The answer to a heartbeat; one with epoch 0 joins."""
        names = ["lines"] if topics is None and epoch == 0 else topics
        fields = {
            "groupId": GROUP,
            "memberId": member,
            "memberEpoch": epoch,
            "subscribedTopicNames": names,
        }
        return self.client.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, fields)

    def settle(self, member: str = MEMBER) -> Fields:
        """The answer by which a member that joins gets its partitions."""
        answer = self.beat(0, member)
        for _ in range(10):
            if answer["assignment"] and answer["assignment"]["topicPartitions"]:
                return answer
            self.client.wait(1_000)
            answer = self.beat(answer["memberEpoch"], member)
        raise AssertionError(answer)

    def fetch(
        self,
        epoch: int = 0,
        member: str = MEMBER,
        client: Client | None = None,
        version: int = 2,
        **settings: Any,  # noqa: ANN401 - any field
    ) -> Fields:
        """The answer to a ShareFetch of all partitions, or of none that is new."""
        asked = self.client if client is None else client
        fields = self.fetching(epoch, member, version, **settings)
        return asked.call(ApiKey.SHARE_FETCH, version, fields)

    def fetching(
        self,
        epoch: int = 0,
        member: str = MEMBER,
        version: int = 2,
        **settings: Any,  # noqa: ANN401 - any field
    ) -> Fields:
        """A ShareFetch of all partitions, or of none that is new."""
        count = 0 if epoch else len(self.cluster.image.topics["lines"].partitions)
        partitions: list[Fields] = [
            {"partitionIndex": each, "acknowledgementBatches": []} for each in range(count)
        ]
        return {
            "groupId": GROUP,
            "memberId": member,
            "shareSessionEpoch": epoch,
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 1 << 20,
            "maxRecords": 500,
            "batchSize": 500,
            "topics": [{"topicId": self.topic_id, "partitions": partitions}] if partitions else [],
            "forgottenTopicsData": [],
            **({"shareAcquireMode": 0, "isRenewAck": False} if version > 1 else {}),
            **settings,
        }

    def acknowledge(
        self, epoch: int, *batches: tuple[int, int, int], member: str = MEMBER, version: int = 2
    ) -> Fields:
        """The answer to a ShareAcknowledge: first offset, last offset, type."""
        told = [
            {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [kind]}
            for first, last, kind in batches
        ]
        partitions = [{"partitionIndex": 0, "acknowledgementBatches": told}]
        fields: Fields = {
            "groupId": GROUP,
            "memberId": member,
            "shareSessionEpoch": epoch,
            "topics": [{"topicId": self.topic_id, "partitions": partitions}],
            **({"isRenewAck": False} if version > 1 else {}),
        }
        return self.client.call(ApiKey.SHARE_ACKNOWLEDGE, version, fields)

    def offsets(self, version: int = 1, topics: list[Fields] | None = None) -> Fields:
        """The group in DescribeShareGroupOffsets."""
        fields = {"groups": [{"groupId": GROUP, "topics": topics}]}
        answer = self.client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, fields)
        (group,) = answer["groups"]
        return dict(group)


def acquired(answer: Fields) -> dict[int, list[tuple[int, int, int]]]:
    """First offset, last offset and deliveries of what was acquired, by partition."""
    assert answer["errorCode"] == 0, answer
    return {
        partition["partitionIndex"]: [
            (each["firstOffset"], each["lastOffset"], each["deliveryCount"])
            for each in partition["acquiredRecords"]
        ]
        for topic in answer["responses"]
        for partition in topic["partitions"]
        if partition["acquiredRecords"]
    }


def errors(answer: Fields) -> list[int]:
    """The errors of partitions."""
    return [
        partition["errorCode"] for topic in answer["responses"] for partition in topic["partitions"]
    ]


def share_world(
    brokers: tuple[int, ...] = (1,),
    profile: str = "4.4",
    partitions: int = 1,
    features: dict[str, int] | None = None,
    **given: str,
) -> ShareWorld:
    """A new cluster; settings of its brokers have `_` for a dot."""
    settings = ClusterSettings(
        profile=PROFILES[profile],
        broker_ids=brokers,
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=2,
            group_coordinator_append_linger_ms=0,
            group_share_assignment_interval_ms=0,
        ),
        given={name.replace("_", "."): value for name, value in given.items()},
        default_replication_factor=len(brokers),
        features=features or {},
        share_state_partitions=1,
        share_state_replication_factor=len(brokers),
        share_state_min_isr=1,
    )
    cluster = Cluster(settings, endpoint=lambda each, _: Endpoint("localhost", 9090 + each))
    return ShareWorld(cluster, partitions)
