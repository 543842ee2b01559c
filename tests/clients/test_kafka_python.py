"""kafka-python at `coordinator-sim serve`: groups, transactions, its admin client."""

import importlib
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pytest

from coordinator_sim_pytest.server import ServedKafka
from tests.clients import librdkafka

pytestmark = pytest.mark.filterwarnings(
    "ignore:(read|open)_text is deprecated:DeprecationWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
PATIENCE_S = 60
PARTITIONS = 4
EVERY_PROFILE = [
    pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9", "0.10.2")
]
MODERN = EVERY_PROFILE[:2]


@pytest.fixture(scope="module")
def kafka() -> Any:  # noqa: ANN401 - a module without types
    """The package; importing it warns, which only a test can be told to pass over."""
    return importlib.import_module("kafka")


def consumer(kafka: Any, served: ServedKafka, group: str = "g", **settings: Any) -> Any:  # noqa: ANN401 - without types
    """A consumer that hears of a rebalance within 200 ms."""
    return kafka.KafkaConsumer(
        bootstrap_servers=served.bootstrap,
        group_id=group,
        heartbeat_interval_ms=200,
        session_timeout_ms=10_000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        **settings,
    )


def produce(kafka: Any, served: ServedKafka, first: int, count: int, **settings: Any) -> None:  # noqa: ANN401 - without types
    """Produce numbers, one partition after the other."""
    producer = kafka.KafkaProducer(bootstrap_servers=served.bootstrap, linger_ms=2, **settings)
    sent = [
        producer.send("t", b"%d" % number, partition=number % PARTITIONS)
        for number in range(first, first + count)
    ]
    producer.flush(PATIENCE_S)
    assert all(future.get(1).offset >= 0 for future in sent)
    producer.close()


def poll_until(consumers: Sequence[Any], is_done: Callable[[list[int]], bool]) -> list[int]:
    """Poll in turns; numbers seen."""
    seen: list[int] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_done(seen):
        assert time.monotonic() < deadline_s, (len(seen), [c.assignment() for c in consumers])
        for each in consumers:
            batches = each.poll(20).values()
            seen += [int(record.value) for record in chain.from_iterable(batches)]
    return seen


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_reader_goes_on_where_another_committed(
    kafka: Any,  # noqa: ANN401 - without types
    kafka_server: ServedKafka,
    profile: str,
) -> None:
    """Partitions by hand, commits by a group.

    As a member it is in `test_mixed_group`, as a follower: a leader of this release may join again
    after each answer to Metadata, or stop, at a real broker 4.3.1 too.
    """
    kafka_server.create_topic("t", PARTITIONS)
    places = [kafka.TopicPartition("t", index) for index in range(PARTITIONS)]
    for turn in range(2):
        produce(kafka, kafka_server, 200 * turn, 200)
        each = consumer(kafka, kafka_server)
        each.assign(places)
        seen = poll_until([each], lambda seen: len(seen) >= 200)
        assert sorted(seen) == list(range(200 * turn, 200 * turn + 200)), profile
        each.commit()
        each.close()
    later = consumer(kafka, kafka_server)
    assert [later.committed(place) for place in places] == [100] * PARTITIONS
    later.close()


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_position_moves_as_told(
    kafka: Any,  # noqa: ANN401 - without types
    kafka_server: ServedKafka,
    profile: str,
) -> None:
    """Seek, pause, ends of logs and offsets by time."""
    kafka_server.create_topic("t", PARTITIONS)
    produce(kafka, kafka_server, 0, 100 * PARTITIONS)
    each = consumer(kafka, kafka_server, group=None)
    place = kafka.TopicPartition("t", 1)
    each.assign([place])
    each.seek(place, 90)
    assert poll_until([each], lambda seen: len(seen) >= 10) == [
        number * PARTITIONS + 1 for number in range(90, 100)
    ]
    each.seek_to_beginning(place)
    assert each.position(place) == 0
    each.pause(place)
    assert each.poll(200) == {}
    assert each.beginning_offsets([place]) == {place: 0}
    assert each.end_offsets([place]) == {place: 100}
    found = each.offsets_for_times({place: 1_000})[place]
    assert found.offset == 0, profile
    each.close()


@pytest.mark.parametrize("profile", MODERN)
def test_committed_records_alone_are_read(
    kafka: Any,  # noqa: ANN401 - without types
    kafka_server: ServedKafka,
    profile: str,
) -> None:
    """Transactions with records and offsets, one of them aborted, and a fenced producer."""
    kafka_server.create_topic("t", PARTITIONS)
    place = kafka.TopicPartition("t", 0)
    offsets = importlib.import_module("kafka.structs").OffsetAndMetadata

    def transactional() -> Any:  # noqa: ANN401 - without types
        made = kafka.KafkaProducer(bootstrap_servers=kafka_server.bootstrap, transactional_id="x")
        made.init_transactions()
        return made

    def transact(producer: Any, number: int, end: str) -> None:  # noqa: ANN401 - without types
        producer.begin_transaction()
        producer.send("t", b"%d" % number, partition=0)
        producer.send_offsets_to_transaction({place: offsets(number, "", -1)}, "g")
        getattr(producer, end)()

    producer = transactional()
    for number, end in ((1, "commit_transaction"), (2, "abort_transaction")):
        transact(producer, number, end)
    later = transactional()
    transact(later, 3, "commit_transaction")
    with pytest.raises(kafka.errors.KafkaError, match=r"(?i)fenc|epoch"):
        transact(producer, 4, "commit_transaction")
    each = consumer(kafka, kafka_server, isolation_level="read_committed")
    assert each.committed(place) == 3, profile
    each.assign([place])
    each.seek(place, 0)
    assert poll_until([each], lambda seen: len(seen) >= 2) == [1, 3]
    assert each.poll(200) == {}
    for client in (each, later, producer):
        client.close()


@pytest.mark.parametrize("profile", EVERY_PROFILE)
@pytest.mark.kafka_settings({"auto.create.topics.enable": False})
def test_admin_client(
    kafka: Any,  # noqa: ANN401 - without types
    kafka_server: ServedKafka,
    profile: str,
) -> None:
    """Topics, groups and, where the broker has them, partitions, settings and records.

    A question for metadata creates no topic: at 0.10.2, one of the closed member that arrives late
    would bring the deleted topic back.
    """
    module = importlib.import_module("kafka.admin")
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_server.bootstrap)
    topic = module.NewTopic("t", num_partitions=PARTITIONS, replication_factor=1)
    admin.create_topics([topic])
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        admin.create_topics([topic])
    assert "t" in admin.list_topics()
    produce(kafka, kafka_server, 0, 40)
    member = librdkafka.consumer(kafka_server.bootstrap, "g")
    member.subscribe(["t"])
    librdkafka.read([member], 40)
    member.commit(asynchronous=False)
    assert [group["group_id"] for group in admin.list_groups()] == ["g"]
    described = admin.describe_groups(["g"])["g"]
    assert described["group_state"] == "Stable", profile
    assert len(described["members"]) == 1
    member.close()
    committed = admin.list_group_offsets("g")["g"]
    assert sorted(found.offset for found in committed.values()) == [10] * PARTITIONS
    if profile != "0.10.2":
        place = kafka.TopicPartition("t", 0)
        assert admin.delete_records({place: 6})
        admin.create_partitions({"t": module.NewPartitions(6)})
        admin.delete_groups(["g"])
        assert admin.list_groups() == []
    admin.delete_topics(["t"])
    assert "t" not in admin.list_topics()
    admin.close()
