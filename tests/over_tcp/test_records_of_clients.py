"""Records that real clients produce to `serve` and consume again, each exactly once."""

import asyncio
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import aiokafka  # type: ignore[import-untyped] # has no stubs
import confluent_kafka
import pytest

COUNT = 10_000
PATIENCE_S = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OF_KAFKA_PYTHON = ("none", "gzip", "lz4", "zstd")
"""Without snappy, for which kafka-python wants a library of its own."""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that creates topics as they are asked for."""
    ready = tmp_path_factory.mktemp("serve") / "ready"
    command = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--no-control"]
    process = subprocess.Popen([*command, "--ready-file", str(ready)], stdout=subprocess.DEVNULL)
    deadline_s = time.monotonic() + PATIENCE_S
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    yield str(json.loads(ready.read_text())["bootstrap"])
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def _values() -> list[bytes]:
    return [b"%d" % number + b"x" * (number % 50) for number in range(COUNT)]


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_consumes_what_it_produced(bootstrap: str, codec: str) -> None:
    """In order, with each codec."""
    topic = f"librdkafka-{codec}"
    failed: list[object] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5}
    )
    for number, value in enumerate(_values()):
        producer.produce(
            topic, value, on_delivery=lambda error, _: failed.append(error) if error else None
        )
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found: list[bytes | None] = []
    while len(found) < COUNT:
        batch = consumer.consume(COUNT, PATIENCE_S)
        assert batch
        assert not any(message.error() for message in batch)
        found += [message.value() for message in batch]
    consumer.close()
    assert found == _values()


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("codec", OF_KAFKA_PYTHON)
def test_kafka_python_consumes_what_it_produced(bootstrap: str, codec: str) -> None:
    """In order, with each codec."""
    # Importing it warns, which only a test can be told to pass over.
    kafka = importlib.import_module("kafka")
    topic = f"kafka-python-{codec}"
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
    )
    sent = [producer.send(topic, value) for value in _values()]
    producer.flush(PATIENCE_S)
    assert [future.get(1).offset for future in sent] == list(range(COUNT))
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    place = kafka.TopicPartition(topic, 0)
    consumer.assign([place])
    found: list[bytes] = []
    while len(found) < COUNT:
        batch = consumer.poll(PATIENCE_S * 1_000).get(place, [])
        assert batch
        found += [record.value for record in batch]
    consumer.close()
    assert found == _values()


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_consumes_what_it_produced(bootstrap: str, codec: str) -> None:
    """In order, with each codec."""
    found = asyncio.run(asyncio.wait_for(_passed_through_aiokafka(bootstrap, codec), PATIENCE_S))
    assert found == _values()


async def _passed_through_aiokafka(bootstrap: str, codec: str) -> list[bytes]:
    topic = f"aiokafka-{codec}"
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
    )
    await producer.start()
    sent = [await producer.send(topic, value) for value in _values()]
    offsets = [metadata.offset for metadata in await asyncio.gather(*sent)]
    assert offsets == list(range(COUNT))
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None
    )
    await consumer.start()
    place = aiokafka.TopicPartition(topic, 0)
    consumer.assign([place])
    found: list[bytes] = []
    while len(found) < COUNT:
        batch = await consumer.getmany(timeout_ms=1_000)
        found += [record.value for record in batch.get(place, [])]
    await consumer.stop()
    return found
