"""Clients over their quotas: what they are told, and when their next request is taken."""

from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import QuotaEntity, QuotaSet
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import batch_of
from tests.unit.broker.fields_client import START, FieldsClient

EVERY_USER: QuotaEntity = (("user", None),)
NOW = Instants(START, START)
PRODUCE_VERSION = 12
FETCH_VERSION = 12
KILOBYTE = b"x" * 1_000


def cluster_of(
    quotas: dict[str, float],
    *,
    entity: QuotaEntity = EVERY_USER,
    release: str = "4.4",
    given: dict[str, str] | None = None,
) -> Cluster:
    """One broker with topic `orders`, and these quotas of an entity."""
    settings = ClusterSettings(profile=profile_named(release), given=given or {})
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_spread("orders", 1, NOW)
    for key, value in quotas.items():
        cluster.change(QuotaSet(entity, key, value))
    return cluster


def produce(*, acks: int = 1, value: bytes = KILOBYTE) -> Fields:
    """A Produce of one record."""
    partition = {"index": 0, "records": batch_of(value)}
    topic = {"name": "orders", "partitionData": [partition]}
    return {"acks": acks, "timeoutMs": 1_000, "topicData": [topic]}


def fetch(*, session_id: int = 0, session_epoch: int = -1, named: bool = True) -> Fields:
    """A Fetch from the start that does not wait."""
    partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    return {
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxBytes": 1 << 20,
        "sessionId": session_id,
        "sessionEpoch": session_epoch,
        "topics": [{"topic": "orders", "partitions": [partition]}] if named else [],
    }


def produced(client: FieldsClient, **fields: Any) -> int:  # noqa: ANN401 - fields of any type
    """The throttle time of a Produce that succeeds."""
    told = client.call(ApiKey.PRODUCE, PRODUCE_VERSION, produce(**fields))
    (topic,) = told["responses"]
    assert topic["partitionResponses"][0]["errorCode"] == ErrorCode.NONE
    return int(told["throttleTimeMs"])


def topics_of(*counts: int, first: int = 0) -> list[Fields]:
    """Entries of CreateTopics with so many partitions each."""
    return [
        {"name": f"t{number}", "numPartitions": count, "replicationFactor": 1}
        for number, count in enumerate(counts, first)
    ]


def created(client: FieldsClient, version: int, *counts: int, first: int = 0) -> tuple[Any, int]:
    """The errors of a CreateTopics, and its throttle time."""
    asked = {"topics": topics_of(*counts, first=first), "timeoutMs": 1_000}
    told = client.call(ApiKey.CREATE_TOPICS, version, asked)
    return [each["errorCode"] for each in told["topics"]], told["throttleTimeMs"]


# -- Produce -------------------------------------------------------------------------------


def test_produce_over_its_quota_is_answered_at_once_and_mutes_the_connection() -> None:
    """The records are in the log; the next request waits for the time that the client was told."""
    client = FieldsClient(cluster_of({"producer_byte_rate": 100.0}))
    throttle_ms = produced(client)
    assert client.now_ms == START
    # A Produce of 1,110 bytes: (111 - 100) / 100 * 10 s.
    assert throttle_ms == 1_100

    client.begin(ApiKey.METADATA, 12, {"topics": []})
    client.wait(throttle_ms - 1)
    assert client.frames == []
    client.wait(1)
    assert len(client.frames) == 1


def test_another_connection_of_a_muted_client_is_muted_only_by_its_own_request() -> None:
    """A quota belongs to a user, the muting to a channel."""
    cluster = cluster_of({"producer_byte_rate": 100.0})
    client, other = FieldsClient(cluster), FieldsClient(cluster, number=2)
    assert produced(client) > 0
    assert other.call(ApiKey.METADATA, 12, {"topics": []})["throttleTimeMs"] == 0
    assert other.now_ms == START


def test_throttle_time_that_ends_while_the_broker_is_paused_starts_no_request() -> None:
    """The request that waited is worked on when the broker goes on."""
    cluster = cluster_of({"producer_byte_rate": 100.0})
    client = FieldsClient(cluster)
    throttle_ms = produced(client)
    client.begin(ApiKey.METADATA, 12, {"topics": []})
    cluster.operations.pause(1, NOW)
    client.wait(2 * throttle_ms)
    assert client.frames == []
    later = Instants(client.now_ms, client.now_ms)
    cluster.operations.resume(1, later)
    client.connection.resume(later)
    assert len(client.frames) == 1


def test_produce_without_acknowledgement_mutes_without_an_answer() -> None:
    """Nothing is answered, and the next request waits all the same."""
    client = FieldsClient(cluster_of({"producer_byte_rate": 100.0}))
    client.begin(ApiKey.PRODUCE, PRODUCE_VERSION, produce(acks=0))
    client.begin(ApiKey.METADATA, 12, {"topics": []})
    assert client.frames == []
    client.wait(1_100)
    assert len(client.frames) == 1


def test_fetch_of_a_client_with_a_produce_quota_is_not_throttled() -> None:
    """Each direction has its own quota."""
    client = FieldsClient(cluster_of({"producer_byte_rate": 100.0}))
    produced(client)
    client.wait(2_000)
    assert client.call(ApiKey.FETCH, FETCH_VERSION, fetch())["throttleTimeMs"] == 0


def test_client_under_its_quota_is_not_throttled() -> None:
    """A request of 1,110 bytes a second; 11 of them may count for 10 seconds."""
    client = FieldsClient(cluster_of({"producer_byte_rate": 1_230.0}))
    for _ in range(20):
        assert produced(client) == 0
        client.wait(1_000)


def test_removed_quota_throttles_no_more() -> None:
    """The last quota removed, nothing is measured."""
    cluster = cluster_of({"producer_byte_rate": 1.0})
    cluster.change(QuotaSet(EVERY_USER, "producer_byte_rate", None))
    assert produced(FieldsClient(cluster)) == 0
    assert not cluster.quotas.is_on


def test_each_broker_measures_for_itself() -> None:
    """A broker that restarts has measured nothing."""
    cluster = cluster_of({"producer_byte_rate": 200.0})
    client = FieldsClient(cluster)
    assert produced(client) == 0
    cluster.operations.stop(1, NOW)
    cluster.operations.resume(1, NOW)
    assert produced(FieldsClient(cluster, number=2)) == 0
    assert produced(FieldsClient(cluster, number=3)) > 0


def test_windows_are_the_settings_of_the_broker() -> None:
    """With 2 windows of 5 s, 5 s count at least."""
    windows = {"quota.window.num": "2", "quota.window.size.seconds": "5"}
    client = FieldsClient(cluster_of({"producer_byte_rate": 100.0}, given=windows))
    assert produced(client) == 6_100


def test_static_quota_of_an_old_broker_holds_for_every_client_id() -> None:
    """2.8 has `quota.producer.default`; KIP-219 is in force."""
    cluster = cluster_of({}, release="2.8", given={"quota.producer.default": "100"})
    client = FieldsClient(cluster)
    told = client.call(ApiKey.PRODUCE, 9, produce())
    assert (told["throttleTimeMs"], client.now_ms) == (1_100, START)


# -- Fetch ---------------------------------------------------------------------------------


def fill(cluster: Cluster, count: int = 20) -> None:
    """Put records of 1 kB into the topic."""
    client = FieldsClient(cluster, number=99)
    for _ in range(count):
        produced(client)


def test_fetch_over_its_quota_is_answered_without_records() -> None:
    """What was not sent is not counted: the Fetch after the throttle time has its records."""
    cluster = cluster_of({"consumer_byte_rate": 200.0})
    fill(cluster)
    client = FieldsClient(cluster)
    first = client.call(ApiKey.FETCH, FETCH_VERSION, fetch())
    assert (len(first["responses"]), first["throttleTimeMs"]) == (1, 0)
    over = client.call(ApiKey.FETCH, FETCH_VERSION, fetch())
    assert (over["responses"], over["errorCode"]) == ([], ErrorCode.NONE)
    assert over["throttleTimeMs"] > 0
    client.wait(11_000)
    again = client.call(ApiKey.FETCH, FETCH_VERSION, fetch())
    assert (len(again["responses"]), again["throttleTimeMs"]) == (1, 0)


def test_fetch_reads_no_more_than_the_windows_hold() -> None:
    """Of 20 records of 1 kB a quota of 500 bytes lets 4 pass: 10 windows of a second."""
    cluster = cluster_of({"consumer_byte_rate": 500.0})
    fill(cluster)
    answer = FieldsClient(cluster).call(ApiKey.FETCH, FETCH_VERSION, fetch())
    (topic,) = answer["responses"]
    assert len(topic["partitions"][0]["records"]) == 4 * len(batch_of(KILOBYTE))


@pytest.mark.parametrize("limit", [5e-324, float("nan"), 1e308])
def test_quota_that_is_no_ordinary_number_ends_no_connection(limit: float) -> None:
    """Kafka takes each of them."""
    client = FieldsClient(cluster_of({"producer_byte_rate": limit, "consumer_byte_rate": limit}))
    for _ in range(2):
        assert produced(client) == 0
        answer = client.call(ApiKey.FETCH, FETCH_VERSION, fetch())
        assert (answer["errorCode"], answer["throttleTimeMs"]) == (ErrorCode.NONE, 0)


def test_throttled_fetch_creates_no_session() -> None:
    """A full Fetch over the quota is answered with no session id."""
    cluster = cluster_of({"consumer_byte_rate": 200.0})
    fill(cluster)
    client = FieldsClient(cluster)
    client.call(ApiKey.FETCH, FETCH_VERSION, fetch())
    over = client.call(ApiKey.FETCH, FETCH_VERSION, fetch(session_epoch=0))
    assert (over["sessionId"], len(cluster.data.fetches.sessions(1))) == (0, 0)


def test_throttled_fetch_of_a_session_leaves_its_partitions_as_they_were() -> None:
    """The records that were held back come with the next Fetch of the session."""
    cluster = cluster_of({"consumer_byte_rate": 200.0})
    fill(cluster)
    client = FieldsClient(cluster)
    first = client.call(ApiKey.FETCH, FETCH_VERSION, fetch(session_epoch=0))
    session_id = first["sessionId"]
    over = client.call(
        ApiKey.FETCH, FETCH_VERSION, fetch(session_id=session_id, session_epoch=1, named=False)
    )
    assert (over["sessionId"], over["responses"]) == (session_id, [])
    assert over["throttleTimeMs"] > 0
    client.wait(11_000)
    again = client.call(
        ApiKey.FETCH, FETCH_VERSION, fetch(session_id=session_id, session_epoch=2, named=False)
    )
    assert again["responses"] == first["responses"]


# -- changes of the cluster ----------------------------------------------------------------


def test_strict_version_refuses_topics_while_tokens_are_missing() -> None:
    """11 tokens: the first topic of 12 partitions may overdraw them, the next one waits for 1 s."""
    client = FieldsClient(cluster_of({"controller_mutation_rate": 1.0}))
    errors, throttle_ms = created(client, 7, 12, 1)
    assert errors == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert throttle_ms == 1_000
    assert created(client, 7, 1, first=2)[0] == [ErrorCode.NONE]
    assert client.now_ms == START + 1_000


def test_permissive_version_creates_the_topics_and_mutes_the_client() -> None:
    """CreateTopics 5 knows no THROTTLING_QUOTA_EXCEEDED."""
    client = FieldsClient(cluster_of({"controller_mutation_rate": 1.0}))
    errors, throttle_ms = created(client, 5, 12, 1)
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]
    assert throttle_ms == 2_000


@pytest.mark.parametrize("version", [5, 7])
def test_throttle_time_above_24_days_is_cut_to_32_bits(version: int) -> None:
    """One token, or two, at one in a million seconds: Java's cast leaves what fits an int."""
    client = FieldsClient(cluster_of({"controller_mutation_rate": 0.000_001}))
    _, throttle_ms = created(client, version, 12, 1)
    missing = {5: 13, 7: 12}[version] * 1_000_000_000 - 11_000
    assert throttle_ms == (missing + (1 << 31)) % (1 << 32) - (1 << 31)


def test_deletions_and_more_partitions_use_the_same_tokens() -> None:
    """Tokens count partitions, whatever becomes of them; what is refused is not changed."""
    cluster = cluster_of({"controller_mutation_rate": 1.0})
    client = FieldsClient(cluster)
    assert created(client, 7, 12)[0] == [ErrorCode.NONE]
    growth = {"topics": [{"name": "orders", "count": 3, "assignments": None}], "timeoutMs": 1_000}
    told = client.call(ApiKey.CREATE_PARTITIONS, 3, growth)
    assert told["results"][0]["errorCode"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    removal = {"topics": [{"name": "orders"}], "timeoutMs": 1_000}
    client = FieldsClient(cluster, number=2)
    told = client.call(ApiKey.DELETE_TOPICS, 6, removal)
    assert told["responses"][0]["errorCode"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert told["throttleTimeMs"] == 1_000
    assert len(cluster.image.topics["orders"].partitions) == 1


@pytest.mark.parametrize(("release", "spent"), [("4.4", True), ("2.8", False)])
def test_validation_uses_tokens_where_there_is_no_zookeeper(release: str, *, spent: bool) -> None:
    """KRaft's controller records the partitions of a request that only validates."""
    client = FieldsClient(cluster_of({"controller_mutation_rate": 1.0}, release=release))
    asked = {"topics": topics_of(20), "timeoutMs": 1_000, "validateOnly": True}
    client.call(ApiKey.CREATE_TOPICS, 6, asked)
    errors, _ = created(client, 6, 1)
    assert errors == [ErrorCode.THROTTLING_QUOTA_EXCEEDED if spent else ErrorCode.NONE]


def test_metadata_creates_no_topic_while_tokens_are_missing() -> None:
    """A topic that comes into being because somebody asks for it counts, too."""
    cluster = cluster_of({"controller_mutation_rate": 1.0})
    created(FieldsClient(cluster), 7, 12)
    other = FieldsClient(cluster, number=2)
    asked = {"topics": [{"name": "new"}], "allowAutoTopicCreation": True}
    other.call(ApiKey.METADATA, 12, asked)
    assert "new" not in cluster.image.topics


# -- request time --------------------------------------------------------------------------


class Work:
    """A clock of work: each look at it takes 20 ms."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        """The time worked so far."""
        self.ns += 20_000_000
        return self.ns


def test_request_time_over_its_quota_mutes_for_one_window_at_most() -> None:
    """20 ms of 1% of 10 s are free; 200 ms are twice that, and the cap is a second."""
    cluster = cluster_of({"request_percentage": 1.0})
    cluster.quotas.work_ns = Work()
    client = FieldsClient(cluster)
    times = [client.call(ApiKey.METADATA, 12, {"topics": []})["throttleTimeMs"] for _ in range(12)]
    assert times[:5] == [0] * 5
    assert times[5] == 1_000
    assert client.now_ms - START == sum(times[:-1])


def test_request_time_that_nobody_models_throttles_nobody() -> None:
    """In virtual time handlers take no time."""
    client = FieldsClient(cluster_of({"request_percentage": 0.000_001}))
    for _ in range(5):
        assert client.call(ApiKey.METADATA, 12, {"topics": []})["throttleTimeMs"] == 0


def test_fetch_over_the_request_time_has_no_records() -> None:
    """The longest of all throttle times counts, and an empty answer."""
    cluster = cluster_of({"request_percentage": 0.1})
    cluster.quotas.work_ns = Work()
    fill(cluster, 1)
    answer = FieldsClient(cluster).call(ApiKey.FETCH, FETCH_VERSION, fetch())
    assert (answer["responses"], answer["throttleTimeMs"]) == ([], 1_000)
