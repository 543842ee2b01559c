"""Drives a Python client: `python_clients.py CLIENT BOOTSTRAP GROUP TOPIC NAME=VALUE...`.

CLIENT is librdkafka, aiokafka or kafka-python. What is read from standard input and printed is
told in `clients/driver.py`. A client is polled until it raises, and then left as it is.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import Any, Final

POLL_S: Final = 0.05
LAST_S: Final = 10
"""How long a client may take to close once standard input has ended."""
LONG_POLL_MS: Final = 500
"""Of kafka-python, which like Java's client works only while it is polled."""


def say(event: str, **facts: object) -> None:
    """Print an event."""
    line = json.dumps({"event": event, "at_ms": time.time() * 1_000, **facts})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def told(event: str, places: Iterable[Any]) -> None:
    """Print an event about partitions."""
    say(event, partitions=[f"{each.topic}-{each.partition}" for each in places])


def commands() -> "SimpleQueue[str]":
    """Read standard input in a thread; its end is a `close`."""
    queue: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            queue.put(line.strip())
        queue.put("close")
        # Nobody listens any more: a client that cannot close goes all the same.
        time.sleep(LAST_S)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return queue


def drive(
    poll: Callable[[], None],
    acts: dict[str, Callable[[str], None]],
) -> None:
    """Poll until told to pause or the client raises; carry out commands until `close`."""
    queue, polls = commands(), True
    while True:
        try:
            word, _, rest = queue.get_nowait().partition(" ")
        except Empty:
            word, rest = "", ""
        if word == "pause":
            polls = False
        try:
            if word in acts:
                acts[word](rest)
                say({"commit": "committed", "close": "closed"}.get(word, word))
            if word == "close":
                return
            if polls:
                poll()
            else:
                time.sleep(POLL_S)
        except Exception as error:  # noqa: BLE001 - whatever the client raises is what it tells
            say("error", message=f"{type(error).__name__}: {error}")
            polls = polls and word != ""


# -- librdkafka -------------------------------------------------------------------------------

LIBRDKAFKA_NAMES: Final = {
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "request.timeout.ms": "socket.timeout.ms",
}
LIBRDKAFKA_LACKS: Final = {
    "mixed": "it refuses cooperative-sticky beside eager assignors",
}


def librdkafka(bootstrap: str, group: str, topic: str, given: dict[str, str]) -> None:
    """Drive confluent-kafka."""
    import confluent_kafka

    say(
        "hello",
        client="librdkafka",
        version=confluent_kafka.libversion()[0],
        lacks=LIBRDKAFKA_LACKS,
    )
    place = given.pop("assign", None)
    settings = {LIBRDKAFKA_NAMES.get(name, name): value for name, value in given.items()}
    consumer: Any = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, **settings}
    )

    def subscribe(to: str) -> None:
        consumer.subscribe(
            [to],
            on_assign=lambda _, places: told("assigned", places),
            on_revoke=lambda _, places: told("revoked", places),
            on_lost=lambda _, places: told("lost", places),
        )

    def poll() -> None:
        message = consumer.poll(POLL_S)
        if message is not None and message.error():
            error = message.error()
            say("error", message=f"{error.name()}: {error.str()}")

    def commit(_: str) -> None:
        places = consumer.assignment() or [confluent_kafka.TopicPartition(topic, 0)]
        offsets = [confluent_kafka.TopicPartition(each.topic, each.partition, 1) for each in places]
        for done in consumer.commit(offsets=offsets, asynchronous=False):
            if done.error is not None:
                raise confluent_kafka.KafkaException(done.error)

    if place is None:
        subscribe(topic)
    else:
        consumer.assign([confluent_kafka.TopicPartition(topic, int(place), 0)])
    drive(poll, {"commit": commit, "subscribe": subscribe, "close": lambda _: consumer.close()})


# -- kafka-python ------------------------------------------------------------------------------


KAFKA_PYTHON_LACKS: Final = {
    "mixed": "it refuses cooperative-sticky beside eager assignors",
}


def kafka_python(bootstrap: str, group: str, topic: str, given: dict[str, str]) -> None:
    """Drive kafka-python."""
    import kafka
    from kafka.consumer.subscription_state import ConsumerRebalanceListener
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.structs import OffsetAndMetadata

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc] # without types
        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            told("revoked", revoked)

        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            told("assigned", assigned)

        def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            told("lost", lost)

    say("hello", client="kafka-python", version=version("kafka-python"), lacks=KAFKA_PYTHON_LACKS)
    place = given.pop("assign", None)
    assignors = {
        "range": RangePartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    settings = python_settings(given, assignors)
    consumer: Any = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **settings)

    def subscribe(to: str) -> None:
        consumer.subscribe([to], listener=Listener())

    def commit(_: str) -> None:
        places = consumer.assignment() or [kafka.TopicPartition(topic, 0)]
        consumer.commit({each: OffsetAndMetadata(1, "", -1) for each in places})

    if place is None:
        subscribe(topic)
    else:
        consumer.assign([kafka.TopicPartition(topic, int(place))])
    drive(
        lambda: consumer.poll(timeout_ms=LONG_POLL_MS),
        {"commit": commit, "subscribe": subscribe, "close": lambda _: consumer.close()},
    )


def python_settings(given: dict[str, str], assignors: dict[str, type]) -> dict[str, Any]:
    """Settings in the spelling of kafka-python and aiokafka."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        key = name.replace(".", "_")
        if key == "partition_assignment_strategy":
            found[key] = tuple(assignors[each] for each in value.split(","))
        elif value in {"true", "false"}:
            found[key] = value == "true"
        else:
            found[key] = int(value) if value.isdigit() else value
    return found


# -- aiokafka ----------------------------------------------------------------------------------

AIOKAFKA_LACKS: Final = {
    "cooperative": "it has no cooperative assignor",
    "mixed": "it has no cooperative assignor",
    "lost": "its listeners have no method for it",
}


def aiokafka(bootstrap: str, group: str, topic: str, given: dict[str, str]) -> None:
    """Drive aiokafka."""
    say("hello", client="aiokafka", version=version("aiokafka"), lacks=AIOKAFKA_LACKS)
    asyncio.run(_aiokafka(bootstrap, group, topic, given))


async def _aiokafka(bootstrap: str, group: str, topic: str, given: dict[str, str]) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    place = given.pop("assign", None)
    settings = python_settings(given, {"range": RangePartitionAssignor})
    consumer: Any = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **settings)
    if place is None:
        consumer.subscribe([topic], listener=_aiokafka_listener())
    else:
        consumer.assign([TopicPartition(topic, int(place))])
    queue, pausing = commands(), asyncio.Event()
    polling = asyncio.create_task(_poll_aiokafka(consumer, pausing))
    polling.add_done_callback(_tell_failure)
    word = ""
    while word != "close":
        await asyncio.sleep(POLL_S)
        word, _, rest = ("" if queue.empty() else queue.get()).partition(" ")
        if word in {"pause", "close"}:
            pausing.set()
        try:
            await _act_on_aiokafka(consumer, word, rest, TopicPartition(topic, 0))
        except Exception as error:  # noqa: BLE001 - whatever it raises is what it tells
            say("error", message=f"{type(error).__name__}: {error}")


async def _poll_aiokafka(consumer: Any, pausing: asyncio.Event) -> None:  # noqa: ANN401 - without types
    await consumer.start()
    while not pausing.is_set():
        await consumer.getmany(timeout_ms=int(1_000 * POLL_S))


async def _act_on_aiokafka(consumer: Any, word: str, rest: str, first: Any) -> None:  # noqa: ANN401 - as above
    if word == "commit":
        await consumer.commit(dict.fromkeys(consumer.assignment() or [first], 1))
        say("committed")
    elif word == "subscribe":
        consumer.subscribe([rest], listener=_aiokafka_listener())
    elif word == "close":
        await consumer.stop()
        say("closed")


def _aiokafka_listener() -> Any:  # noqa: ANN401 - without types
    from aiokafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc] # without types
        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            told("revoked", revoked)

        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            told("assigned", assigned)

    return Listener()


def _tell_failure(polling: "asyncio.Task[None]") -> None:
    """Print what ended the polling."""
    if not polling.cancelled() and (error := polling.exception()) is not None:
        say("error", message=f"{type(error).__name__}: {error}")


CLIENTS: Final = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}


def main(arguments: list[str]) -> None:
    """Drive the client that is asked for."""
    client, bootstrap, group, topic, *given = arguments
    CLIENTS[client](bootstrap, group, topic, dict(each.split("=", 1) for each in given))
    # Tasks and threads of a closed client have nothing left to do.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
