"""Served clusters whose share coordinators are asked."""

from base64 import b64encode
from typing import Any

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.fields_client import FieldsClient

GROUP = "g"


def served(*acls: Acl, **settings: Any) -> FieldsClient:  # noqa: ANN401 - settings of any type
    """One broker with the topic of states and topic `t`, which has two partitions."""
    cluster = Cluster(
        ClusterSettings(**{"share_state_partitions": 3, "num_partitions": 2} | settings),
        endpoint=lambda _broker, _name: Endpoint("localhost", 9092),
        authorizer=AclAuthorizer(acls) if acls else None,
    )
    client = FieldsClient(cluster)
    now = Instants(client.now_ms, client.now_ms)
    cluster.change(FeatureSet("share.version", 1))
    for name in (SHARE_STATE_TOPIC, "t"):
        cluster.topics.create_asked_for(name, now)
    return client


def topic_id(cluster: Cluster, name: str = "t") -> bytes:
    """The id of a topic."""
    return cluster.image.topics[name].topic_id


class States:
    """The five APIs, asked about partition 0 of topic `t` unless told otherwise.

    Args:
        client: Asks.
    """

    def __init__(self, client: FieldsClient) -> None:
        self.client = client
        self.topic_id = topic_id(client.cluster)

    def ask(self, api: ApiKey, version: int, **asked: Any) -> Fields:  # noqa: ANN401 - fields of any type
        """The result of one partition."""
        fields = {
            "groupId": GROUP,
            "topics": [{"topicId": self.topic_id, "partitions": [{"partition": 0, **asked}]}],
        }
        answer = self.client.call(api, version, fields)
        (topic,) = answer["results"]
        (result,) = topic["partitions"]
        found: Fields = result
        return found

    def initialize(self, state_epoch: int = 1, start_offset: int = -1, **more: int) -> Fields:
        """Begin to keep the state."""
        api = ApiKey.INITIALIZE_SHARE_GROUP_STATE
        return self.ask(api, 0, stateEpoch=state_epoch, startOffset=start_offset, **more)

    def write(self, *batches: tuple[int, int, int, int], **changed: Any) -> Fields:  # noqa: ANN401 - fields of any type
        """Keep batches: first offset, last offset, state, count."""
        fields = {
            "stateEpoch": 1,
            "leaderEpoch": 0,
            "startOffset": -1,
            "deliveryCompleteCount": 0,
            "stateBatches": [
                {
                    "firstOffset": first,
                    "lastOffset": last,
                    "deliveryState": state,
                    "deliveryCount": count,
                }
                for first, last, state, count in batches
            ],
        }
        return self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, 1, **fields | changed)

    def read(self, leader_epoch: int = 0, **more: int) -> Fields:
        """What is kept."""
        return self.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, leaderEpoch=leader_epoch, **more)

    def summary(self, leader_epoch: int = -1, **more: int) -> Fields:
        """Where the group is."""
        api = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
        return self.ask(api, 1, leaderEpoch=leader_epoch, **more)

    def delete(self, **more: int) -> Fields:
        """Forget the state."""
        return self.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0, **more)


def batches_of(result: Fields) -> list[tuple[int, int, int, int]]:
    """The state batches of a read."""
    names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
    return [tuple(batch[name] for name in names) for batch in result["stateBatches"]]  # type: ignore[misc]


def share_key(client: FieldsClient, partition: int = 0, group: str = GROUP) -> str:
    """A share partition as FindCoordinator names it."""
    text = b64encode(topic_id(client.cluster), b"-_").decode().rstrip("=")
    return f"{group}:{text}:{partition}"
