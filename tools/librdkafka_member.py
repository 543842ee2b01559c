"""A consumer on librdkafka that follows commands on standard input, for recordings.

    python -m tools.librdkafka_member BOOTSTRAP GROUP TOPIC KEY=VALUE...

Commands, one per line: `slow MS` sleeps that long between two polls, `callback MS` lets every
rebalance callback take that long, `subscribe TOPIC...` replaces the subscription, `commit` commits
what was read and waits for it, `close` closes and ends. Every rebalance callback and every record
is one line on standard output; the topic is in it where it is not the first argument.
"""

import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

_POLL_S: Final = 0.1
_CALLBACKS: Final = {"assign": "assigned", "revoke": "revoked", "lost": "lost"}


def _say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


class _Callbacks:
    """Rebalance callbacks that say what they were given, and how long they take."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.takes_s = 0.0

    def teller(self, what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        """Return the callback of this name."""

        def tell(_: Consumer, partitions: list[TopicPartition]) -> None:
            _say(" ".join([what, *(self._name(each) for each in partitions)]))
            time.sleep(self.takes_s)
            _say("returned")

        return tell

    def _name(self, partition: TopicPartition) -> str:
        number = str(partition.partition)
        return number if partition.topic == self.topic else f"{partition.topic}-{number}"


def _heard(message: Message, topic: str) -> str:
    error = message.error()
    if error is not None:
        return f"error {error.name()}"
    place = f"position {message.partition()} {(message.offset() or 0) + 1}"
    return place if message.topic() == topic else f"{place} {message.topic()}"


def _commit(consumer: Consumer) -> None:
    _say("commit")
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as failure:
        _say(f"commit-failed {failure.args[0].name()}")
    else:
        _say("committed")


def _listen(commands: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line)


def main() -> None:
    """Poll until told to close."""
    bootstrap, group_id, topic, *settings = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            **dict(setting.split("=", 1) for setting in settings),
        }
    )
    callbacks = _Callbacks(topic)
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    told = {f"on_{name}": callbacks.teller(what) for name, what in _CALLBACKS.items()}
    _say("subscribe")
    consumer.subscribe([topic], **told)
    while True:
        message = consumer.poll(_POLL_S)
        if message is not None:
            _say(_heard(message, topic))
        try:
            command = commands.get_nowait().split()
        except Empty:
            continue
        match command:
            case ["close"]:
                break
            case ["slow", milliseconds]:
                _say("busy")
                time.sleep(int(milliseconds) / 1_000)
                _say("polling")
            case ["callback", milliseconds]:
                callbacks.takes_s = int(milliseconds) / 1_000
            case ["subscribe", *topics]:
                _say(" ".join(["subscribed", *topics]))
                consumer.subscribe(topics, **told)
            case ["commit"]:
                _commit(consumer)
    _say("closing")
    consumer.close()
    _say("closed")


if __name__ == "__main__":
    main()
