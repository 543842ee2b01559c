"""Quotas of a real broker: the order in which it shows them, and the throttle times it tells."""

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker
from tests.real_kafka.admin_requests import Asked, quota, quotas
from tests.real_kafka.settling import told_in_the_end
from tests.real_kafka.test_admin_differential import RealClient, ask_ours
from tests.unit.broker.data_world import batch_of
from tests.unit.broker.frames_client import DataClient

pytestmark = pytest.mark.real_kafka

BYTES_PER_S: Final = 20_000.0
SIZES: Final = (100_000, 90_000, 50_000, 60_000, 100)
ENTITIES: Final[tuple[dict[str, str | None], ...]] = (
    {"user": "alice"},
    {"user": "bob"},
    {"user": "alice", "client_id": "a"},
    {"user": "alice", "client_id": None},
    {"user": None},
    {"user": None, "client_id": "a"},
    {"user": None, "client_id": None},
    {"client_id": "a"},
    {"client_id": "consumer-group-1"},
    {"client_id": None},
    {"user": "CN=Ö, O=x"},
    {"ip": "127.0.0.2"},
    {"ip": None},
)
KEYS: Final = (
    ("request_percentage", 50.5),
    ("producer_byte_rate", 1024.0),
    ("controller_mutation_rate", 5.0),
    ("consumer_byte_rate", 2048.0),
)
CREATE: Final[Asked] = (
    ApiKey.CREATE_TOPICS,
    7,
    {"topics": [{"name": "t", "numPartitions": 1, "replicationFactor": 1}], "timeoutMs": 10_000},
)


def ours() -> Cluster:
    """A cluster like the broker."""
    settings = ClusterSettings(profile=profile_named("4.3"), internal_replication_factor=1)
    return Cluster(settings, endpoint=lambda _id, _name: Endpoint("localhost", 9092))


def changes() -> list[Asked]:
    """Quotas of every kind of entity, one after the other, and some of them removed."""
    found = [
        quota(entity, ("connection_creation_rate", 10.0))
        if "ip" in entity
        else quota(entity, *KEYS[: 1 + number % len(KEYS)])
        for number, entity in enumerate(ENTITIES)
    ]
    found.append(quota(ENTITIES[1], ("request_percentage", None), ("producer_byte_rate", None)))
    found.append(quota(ENTITIES[8], ("request_percentage", None)))
    return found


def test_quotas_are_shown_in_the_order_of_a_real_broker(tmp_path: Path) -> None:
    """After each change: entities, their parts and their values, in Java's order."""
    cluster = ours()
    with Broker(tmp_path / "kafka", {}, TOOLS_VERSION) as broker:
        theirs = RealClient(broker.bootstrap)
        for change in changes():
            assert theirs.ask(change) == ask_ours(cluster, change)
            found = ask_ours(cluster, quotas())
            assert told_in_the_end(lambda: theirs.ask(quotas()), found) == found
        theirs.close()


class Produced(NamedTuple):
    """One Produce at a broker: when it was sent and answered, and the throttle time."""

    sent_ms: int
    answered_ms: int
    throttle_ms: int


def now_ms() -> int:
    """The present."""
    return time.time_ns() // 1_000_000


def produce(size: int) -> Asked:
    """A Produce of a record of so many bytes."""
    records = batch_of(b"x" * size)
    topic = {"name": "t", "partitionData": [{"index": 0, "records": records}]}
    return ApiKey.PRODUCE, 12, {"acks": 1, "timeoutMs": 10_000, "topicData": [topic]}


def produced(client: RealClient, size: int) -> Produced:
    """Produce to the broker."""
    sent_ms = now_ms()
    told = client.ask(produce(size))
    (topic,) = told["responses"]
    assert topic["partitionResponses"][0]["errorCode"] == ErrorCode.NONE
    return Produced(sent_ms, now_ms(), told["throttleTimeMs"])


def test_produce_is_throttled_for_the_time_of_a_real_broker(tmp_path: Path) -> None:
    """The same requests at the same instants; the broker's own instants are not known exactly.

    A throttle time is shorter by 1 ms for each ms that passes since the first window began. So it
    may differ by the times from sending to answer of the first request and of its own, and by 1 ms
    of rounding. All requests but the first come in the middle of a window: none may be counted to
    another one.
    """
    cluster = ours()
    limit = quota({"user": None}, ("producer_byte_rate", BYTES_PER_S))
    with Broker(tmp_path / "kafka", {}, TOOLS_VERSION) as broker, ExitStack() as clients:

        def connected() -> RealClient:
            return clients.enter_context(closing(RealClient(broker.bootstrap, "test")))

        theirs = connected()
        # The first Produce of a JVM takes long; without a quota it is not measured.
        for asked in (CREATE, produce(100), limit):
            theirs.ask(asked)
            ask_ours(cluster, asked)
        told_in_the_end(lambda: len(theirs.ask(quotas())["entries"]), 1)
        found, muted = [produced(theirs, SIZES[0])], theirs
        for number, size in enumerate(SIZES[1:]):
            middle_ms = found[0].sent_ms + 1_000 * number + 500
            time.sleep(max(middle_ms - now_ms(), 0) / 1_000)
            # Another connection: the one before is muted.
            muted = connected()
            found.append(produced(muted, size))
        muted.ask((ApiKey.METADATA, 12, {"topics": []}))
        muted_ms = now_ms() - found[-1].sent_ms
    times = [
        DataClient(cluster, number=number).call(*produce(size), at_ms=each.sent_ms)
        for number, (size, each) in enumerate(zip(SIZES, found, strict=True), 1)
    ]
    slack_ms = found[0].answered_ms - found[0].sent_ms + 1
    assert [
        (each.throttle_ms, told["throttleTimeMs"])
        for each, told in zip(found, times, strict=True)
        if abs(each.throttle_ms - told["throttleTimeMs"])
        > slack_ms + each.answered_ms - each.sent_ms
    ] == []
    assert [each.throttle_ms > 0 for each in found] == [False, False, True, True, True]
    assert muted_ms >= found[-1].throttle_ms
