"""Today's clients at a real broker of 0.10.2.2 and at ours: what works there works here.

What does not work there ends here with the same error.
"""

import asyncio
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.kafka import jars_of
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker
from tests.clients.franz import attempt
from tests.clients.librdkafka import OLDEST, consumer, produce, read, whole_topic
from tests.unit.cli.test_serve import serving

pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
VERSION = "0.10.2.2"
DELETING = {"delete.topic.enable": "true"}
PATIENCE_S = 60
CODECS = ("none", "gzip", "snappy", "lz4")
VALUES = [b"%d" % number + b"x" * (number % 50) for number in range(500)]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker; without Java and Maven the tests are skipped."""
    try:
        jars_of(VERSION)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with ZooKeeperBroker(tmp_path_factory.mktemp("real"), VERSION, DELETING) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """The address of a served one."""
    settings = ("--set", "delete.topic.enable=true", "--set", "group.initial.rebalance.delay.ms=0")
    with serving("--port", "0", "--profile", "0.10.2", *settings) as ready:
        yield ready["bootstrap"]


def outcome(act: Callable[[], object]) -> str:
    """What comes of it: a value, or the kind of error."""
    try:
        return repr(act())
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        reason = error.args[0] if error.args else None
        code = getattr(reason, "name", None)
        return f"{type(error).__name__} {code() if callable(code) else ''}".strip()


def librdkafka(bootstrap: str, told: dict[str, object], name: str) -> list[str]:
    """Topics, records with each codec, a group, and calls that such a broker has not."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **told})
    settings = {key.replace(".", "_"): value for key, value in told.items()}

    def create(topic: str) -> None:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)

    def group(topic: str) -> str:
        each = consumer(bootstrap, f"{name}-group", **settings)
        each.subscribe([topic])
        found = read([each], len(VALUES)) == VALUES
        (committed,) = each.commit(asynchronous=False)
        each.close()
        return f"{found} {committed.offset}"

    def copied(topic: str, codec: str) -> bool:
        produce(bootstrap, topic, VALUES, compression_type=codec, **settings)
        return bool(whole_topic(bootstrap, topic, 1, len(VALUES), **settings) == VALUES)

    told_of = []
    for codec in CODECS:
        topic = f"{name}-{codec}"
        told_of.append(f"create {outcome(lambda topic=topic: create(topic))}")
        act = lambda topic=topic, codec=codec: copied(topic, codec)  # noqa: E731 - bound now
        told_of.append(f"{codec} {outcome(act)}")
    told_of.append(f"group {outcome(lambda: group(f'{name}-none'))}")
    wanted = [NewPartitions(f"{name}-none", 3)]
    (grown,) = admin.create_partitions(wanted).values()
    told_of.append(f"grow {outcome(lambda: grown.result(PATIENCE_S))}")
    return told_of


def kafka_python(bootstrap: str) -> list[str]:
    """A topic of its admin client, a record, and a commit for a group.

    Its partition is chosen by hand: as a leader this release may stop, see test_kafka_python.
    """
    kafka: Any = importlib.import_module("kafka")
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    topic = importlib.import_module("kafka.admin").NewTopic("kp", 2, 1)
    told_of = [outcome(lambda: bool(admin.create_topics([topic])))]
    told_of.append(outcome(lambda: admin.create_topics([topic])))
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    sent = producer.send("kp", b"1", partition=1)
    told_of.append(outcome(lambda: sent.get(PATIENCE_S).offset))
    place = kafka.TopicPartition("kp", 1)
    each = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id="kp", auto_offset_reset="earliest"
    )
    each.assign([place])
    batches: list[Any] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not batches:
        assert time.monotonic() < deadline_s
        batches = [*each.poll(1_000).values()]
    told_of.append(repr([record.value for record in batches[0]]))
    each.commit()
    told_of.append(outcome(lambda: each.committed(place)))
    told_of.append(outcome(lambda: admin.describe_groups(["kp"])["kp"]["group_state"]))
    told_of.append(outcome(lambda: admin.delete_groups(["kp"])))
    for client in (each, producer, admin):
        client.close()
    return told_of


def aiokafka(bootstrap: str) -> list[str]:
    """A consumer reads such a broker; aiokafka's producer has lost its messages."""

    async def program() -> list[str]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            found = repr(await producer.send_and_wait("kp", b"2", partition=1))
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            found = type(error).__name__
        await producer.stop()
        each = AIOKafkaConsumer(
            "kp", bootstrap_servers=bootstrap, group_id="aio", auto_offset_reset="earliest"
        )
        await each.start()
        record = await each.getone()
        await each.commit()
        await each.stop()
        return [found, repr(record.value)]

    return asyncio.run(asyncio.wait_for(program(), PATIENCE_S))


def franz_go(bootstrap: str) -> list[str]:
    """Capped to such a broker, and asking it for its versions."""
    capped = attempt("admin", bootstrap, topic="f1", group="f", max_versions=VERSION[:6])
    return [repr(capped), repr(attempt("admin", bootstrap, topic="f2", group="f"))]


def test_librdkafka_that_asks(real: str, ours: str) -> None:
    """For versions, as it does unless told otherwise."""
    wanted = librdkafka(real, {}, "asks")
    assert librdkafka(ours, {}, "asks") == wanted
    assert [each for each in wanted if each.endswith("True")] == [f"{c} True" for c in CODECS]


def test_librdkafka_that_is_told(real: str, ours: str) -> None:
    """The client is told that the broker is one of 0.10.2.2, and does not ask it."""
    assert librdkafka(ours, OLDEST, "told") == librdkafka(real, OLDEST, "told")


def test_kafka_python_and_aiokafka(real: str, ours: str) -> None:
    """One produces and administers, both consume."""
    wanted = kafka_python(real)
    assert kafka_python(ours) == wanted
    assert wanted[2:4] == ["0", "[b'1']"]
    wanted = aiokafka(real)
    assert aiokafka(ours) == wanted
    assert wanted == ["CorruptRecordException", "b'1'"]


def test_franz_go(real: str, ours: str) -> None:
    """The admin client and the producer of franz-go."""
    assert franz_go(ours) == franz_go(real)
