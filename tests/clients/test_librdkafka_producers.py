"""Idempotent and transactional producers of librdkafka at `coordinator-sim serve`."""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import OLDEST, PATIENCE_S, consumer, produce, settle, whole_topic

WITH_TRANSACTIONS = [
    pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9")
]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_CODECS = CODECS[:-1]


def transactional(bootstrap: str) -> Producer:
    """A producer that has fenced those before it."""
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx"})
    made.init_transactions(PATIENCE_S)
    return made


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_with_every_codec(kafka_server: ServedKafka, codec: str) -> None:
    """In order, from an idempotent producer."""
    kafka_server.create_topic("t")
    values = [b"%d" % number + b"x" * (number % 50) for number in range(2_000)]
    settings = {"compression_type": codec, "enable_idempotence": True}
    produce(kafka_server.bootstrap, "t", values, **settings)
    assert whole_topic(kafka_server.bootstrap, "t", 1, len(values)) == values


@pytest.mark.kafka_profile("0.10.2")
@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("told", [{}, OLDEST], ids=["asked", "told"])
def test_message_sets_come_back_with_every_codec_of_0_10_2(
    kafka_server: ServedKafka, codec: str, told: dict[str, object]
) -> None:
    """Messages of magic 1, compressed in wrappers, with versions asked for or told."""
    kafka_server.create_topic("t")
    values = [b"%d" % number + b"x" * (number % 50) for number in range(500)]
    settings = {name.replace(".", "_"): value for name, value in told.items()}
    produce(kafka_server.bootstrap, "t", values, compression_type=codec, **settings)
    assert whole_topic(kafka_server.bootstrap, "t", 1, len(values), **settings) == values


@pytest.mark.parametrize("profile", WITH_TRANSACTIONS)
def test_committed_records_alone_are_read(kafka_server: ServedKafka, profile: str) -> None:
    """An aborted transaction is seen only by who asks for everything."""
    kafka_server.create_topic("t", 2)
    producer = transactional(kafka_server.bootstrap)
    for number, committed in enumerate((True, False, True)):
        producer.begin_transaction()
        for index in (0, 1):
            producer.produce("t", b"%d" % number, partition=index)
        producer.flush(PATIENCE_S)
        end = producer.commit_transaction if committed else producer.abort_transaction
        end(PATIENCE_S)
    committed_only = {"isolation_level": "read_committed"}
    values = whole_topic(kafka_server.bootstrap, "t", 2, 4, **committed_only)
    assert sorted(values) == [b"0", b"0", b"2", b"2"], profile
    all_of_them = {"isolation_level": "read_uncommitted"}
    assert len(whole_topic(kafka_server.bootstrap, "t", 2, 6, **all_of_them)) == 6


@pytest.mark.parametrize("profile", WITH_TRANSACTIONS)
def test_offsets_go_with_a_transaction(kafka_server: ServedKafka, profile: str) -> None:
    """Committed with it or not at all."""
    kafka_server.create_topic("in")
    producer = transactional(kafka_server.bootstrap)
    each = consumer(kafka_server.bootstrap, "g")
    each.subscribe(["in"])
    settle([each], 1)
    for offset, committed in ((7, True), (9, False)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition("in", 0, offset)], each.consumer_group_metadata(), PATIENCE_S
        )
        end = producer.commit_transaction if committed else producer.abort_transaction
        end(PATIENCE_S)
        (found,) = each.committed([TopicPartition("in", 0)], PATIENCE_S)
        assert found.offset == 7, profile
    each.close()


@pytest.mark.parametrize("profile", WITH_TRANSACTIONS)
def test_second_producer_fences_the_first(kafka_server: ServedKafka, profile: str) -> None:
    """What the first had begun is aborted, and it can do no more."""
    kafka_server.create_topic("t")
    first = transactional(kafka_server.bootstrap)
    first.begin_transaction()
    first.produce("t", b"lost")
    first.flush(PATIENCE_S)
    second = transactional(kafka_server.bootstrap)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() == KafkaError._FENCED, profile
    second.begin_transaction()
    second.produce("t", b"kept")
    second.commit_transaction(PATIENCE_S)
    committed_only = {"isolation_level": "read_committed"}
    assert whole_topic(kafka_server.bootstrap, "t", 1, 1, **committed_only) == [b"kept"]
