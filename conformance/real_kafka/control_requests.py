"""Requests of a controller of ZooKeeper's days, for one broker; the same for real ones and ours.

A controller and its brokers send each other LeaderAndIsr, StopReplica, UpdateMetadata and
ControlledShutdown. Here a client sends them that is no controller.
"""

import json
from collections.abc import Iterator
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_answers import Transport

TOPIC: Final = "led"
COPIED: Final = "copied"
"""A topic with two replicas of each partition, where there are two brokers."""
_PARTITIONS: Final = 4
_PATIENCE: Final = 240
_PAUSE_MS: Final = 250
_PROPAGATION_MS: Final = 3_000

Place = tuple[str, int]


def _line(label: str, api: ApiKey, version: int, answer: Fields) -> str:
    """Return one answer as a line of JSON."""
    return json.dumps([api.name, version, label, answer], separators=(",", ":"))


def refused(transport: Transport) -> Iterator[str]:
    """Yield what a broker answers to a client without CLUSTER_ACTION on the cluster."""
    places = [("x", 0)]
    yield _led(transport, "not allowed", 1, {place: {} for place in places})
    many: dict[Place, Fields] = {
        (name, index): {} for name in ("orders", "payments") for index in range(4)
    }
    yield _led(transport, "not allowed, 8 partitions", 0, many)
    yield _stopped(transport, "not allowed", 1, *places)
    yield _stopped(transport, "not allowed, 8 partitions", 0, *many)
    yield _updated(transport, "not allowed", 1, version=3)
    yield _shut_down(transport, "not allowed", 1)
    yield _shut_down(transport, "not allowed, no such broker", 9)


def answered(transport: Transport) -> Iterator[str]:
    """Yield each request with the answer of the only broker of a new cluster, whose id is 1."""
    create(transport, TOPIC, 1)
    yield from _of_leaders(transport)
    yield from _of_controllers(transport)
    yield from _of_replicas(transport)
    yield _shut_down(transport, "no such broker", 9)
    yield _shut_down(transport, "version 0 has no client id", 1, version=0)
    yield _shut_down(transport, "its leader has no other replicas", 1)


def shut_down(controller: Transport, other: Transport) -> Iterator[str]:
    """Yield what two brokers of a new cluster answer; the first, whose id is 1, is controller."""
    create(controller, COPIED, 2)
    yield _shut_down(other, "not the controller", 2)
    yield from _leaders(controller, "before")
    yield _shut_down(controller, "one of two", 2)
    yield from _leaders(controller, "after")
    yield _shut_down(controller, "once more", 2)
    yield _shut_down(controller, "the last one", 1)
    yield from _leaders(controller, "to the end")


def _of_leaders(transport: Transport) -> Iterator[str]:
    first, missing = (TOPIC, 0), ("not-created", 0)
    yield _led(transport, "older controller", 0, {first: {"leaderEpoch": 9}})
    yield _led(transport, "no partitions", 1, {})
    yield _led(transport, "same leader epoch", 1, {first: {}})
    elsewhere = {"leaderEpoch": 1, "leader": 7, "isr": [7], "replicas": [7]}
    yield _led(transport, "not among the replicas", 1, {first: elsewhere})
    yield _led(transport, "newer leader epoch", 1, {first: {"leaderEpoch": 1}})
    yield _led(transport, "the same again", 1, {first: {"leaderEpoch": 1}})
    yield _led(transport, "epochs may be left out", 1, {first: {"leaderEpoch": 7}})
    yield _led(transport, "older leader epoch", 1, {first: {"leaderEpoch": 6}})
    absent = {"leaderEpoch": 9, "leader": 7, "replicas": [1, 7]}
    yield _led(transport, "a leader that is not there", 1, {first: absent})
    yield _led(transport, "it was not taken", 1, {first: {"leaderEpoch": 9}})
    yield _led(transport, "not created", 1, {missing: {}})
    yield _led(transport, "not created, again", 1, {missing: {}})
    yield _led(transport, "not created, newer", 1, {missing: {"leaderEpoch": 1}})
    many = {(name, index): {"leaderEpoch": index} for name in ("many", TOPIC) for index in range(4)}
    yield _led(transport, "8 partitions", 1, many)
    yield _led(transport, "8 partitions, again", 1, many)
    yield from _leaders(transport, "the leader is the same", TOPIC)


def _of_controllers(transport: Transport) -> Iterator[str]:
    yield _updated(transport, "the controller of before", 1)
    for version in range(4):
        yield _updated(transport, "a newer controller", 3, version=version)
    yield _updated(transport, "an older controller", 2)
    yield _led(transport, "an older controller", 2, {(TOPIC, 0): {"leaderEpoch": 20}})
    yield _stopped(transport, "an older controller", 2, (TOPIC, 0))
    yield _led(transport, "a newer controller", 4, {})
    yield _updated(transport, "older than that one", 3)
    yield _stopped(transport, "a newer controller", 5)
    yield _led(transport, "older than that one", 4, {})


def _of_replicas(transport: Transport) -> Iterator[str]:
    last = (TOPIC, 3)
    yield _stopped(transport, "kept", 5, last)
    yield _led(transport, "it has its leader epoch", 5, {last: {"leaderEpoch": 3}})
    many = [("absent", 0), last, (TOPIC, 1), ("absent", 1), ("other", 2)]
    yield _stopped(transport, "5 partitions", 5, *many)
    yield _stopped(transport, "deleted", 5, last, delete=True)
    yield _led(transport, "it has none", 5, {last: {"leaderEpoch": 0}})
    yield from _leaders(transport, "it leads again", TOPIC)


# -- requests ------------------------------------------------------------------------------


def _states(places: dict[Place, Fields]) -> list[Fields]:
    return [
        {
            "topicName": topic,
            "partitionIndex": index,
            "controllerEpoch": 1,
            "leader": 1,
            "leaderEpoch": 0,
            "isr": [1],
            "replicas": [1],
            **fields,
        }
        for (topic, index), fields in places.items()
    ]


def _led(transport: Transport, label: str, epoch: int, places: dict[Place, Fields]) -> str:
    fields: Fields = {
        "controllerId": 1,
        "controllerEpoch": epoch,
        "ungroupedPartitionStates": _states(places),
        "liveLeaders": [],
    }
    api = ApiKey.LEADER_AND_ISR
    return _line(label, api, 0, transport.call(api, 0, fields))


def _stopped(
    transport: Transport, label: str, epoch: int, *places: Place, delete: bool = False
) -> str:
    fields: Fields = {
        "controllerId": 1,
        "controllerEpoch": epoch,
        "deletePartitions": delete,
        "ungroupedPartitions": [
            {"topicName": topic, "partitionIndex": index} for topic, index in places
        ],
    }
    api = ApiKey.STOP_REPLICA
    return _line(label, api, 0, transport.call(api, 0, fields))


def _updated(transport: Transport, label: str, epoch: int, *, version: int = 2) -> str:
    """Return the answer to an UpdateMetadata that says of brokers what Metadata says."""
    live: list[Fields] = []
    for broker in transport.call(ApiKey.METADATA, 1, {"topics": []})["brokers"]:
        host, port = broker["host"], broker["port"]
        endpoint = {"host": host, "port": port, "securityProtocol": 0}
        if version == 3:  # noqa: PLR2004 - names of listeners
            endpoint["listener"] = "PLAINTEXT"
        where = {"endpoints": [endpoint]} if version else {"v0Host": host, "v0Port": port}
        live.append({"id": broker["nodeId"], **where})
    fields: Fields = {
        "controllerId": 1,
        "controllerEpoch": epoch,
        "ungroupedPartitionStates": _states({(TOPIC, 0): {"leaderEpoch": 7}}),
        "liveBrokers": live,
    }
    api = ApiKey.UPDATE_METADATA
    return _line(label, api, version, transport.call(api, version, fields))


def _shut_down(transport: Transport, label: str, broker_id: int, *, version: int = 1) -> str:
    api = ApiKey.CONTROLLED_SHUTDOWN
    answer = transport.call(api, version, {"brokerId": broker_id})
    answer["remainingPartitions"].sort(key=lambda each: (each["topicName"], each["partitionIndex"]))
    return _line(label, api, version, answer)


def _leaders(transport: Transport, label: str, topic: str = COPIED) -> Iterator[str]:
    """Yield the leader and the ISR of each partition, as the broker's metadata soon has them."""
    transport.wait(_PROPAGATION_MS)
    (found,) = transport.call(ApiKey.METADATA, 1, {"topics": [{"name": topic}]})["topics"]
    partitions = sorted(found["partitions"], key=lambda each: int(each["partitionIndex"]))
    leaders = [[each["leaderId"], sorted(each["isrNodes"])] for each in partitions]
    yield _line(label, ApiKey.METADATA, 1, {"leaders": leaders})


def create(transport: Transport, name: str, replicas: int) -> None:
    """Create a topic, and wait until each partition has a leader and its ISR.

    Raises:
        DataError: it is not there in time.
    """
    assignments = [
        {"partitionIndex": index, "brokerIds": [(index + place) % 2 + 1 for place in range(2)]}
        for index in range(_PARTITIONS)
    ]
    topic = {
        "name": name,
        "numPartitions": _PARTITIONS if replicas == 1 else -1,
        "replicationFactor": 1 if replicas == 1 else -1,
        "assignments": [] if replicas == 1 else assignments,
        "configs": [],
    }
    created: Fields = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    for _ in range(_PATIENCE):
        transport.call(ApiKey.CREATE_TOPICS, 1, created)
        (found,) = transport.call(ApiKey.METADATA, 1, {"topics": [{"name": name}]})["topics"]
        led = [each for each in found["partitions"] if each["leaderId"] >= 0]
        if len(led) == _PARTITIONS and all(len(each["isrNodes"]) == replicas for each in led):
            return
        transport.wait(_PAUSE_MS)
    raise DataError(f"topic {name} is not there: {found}")
