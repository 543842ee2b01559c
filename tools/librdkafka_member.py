"""A consumer on librdkafka that follows commands on standard input, for recordings.

    python -m tools.librdkafka_member BOOTSTRAP GROUP TOPIC KEY=VALUE...

Commands, one per line: `slow MS` sleeps that long between two polls, `close` closes and ends.
Every rebalance callback and every record is one line on standard output.
"""

import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

_POLL_S: Final = 0.1


def _say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def _teller(what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
    def tell(_: Consumer, partitions: list[TopicPartition]) -> None:
        _say(" ".join([what, *(str(partition.partition) for partition in partitions)]))

    return tell


def _heard(message: Message) -> str:
    error = message.error()
    if error is not None:
        return f"error {error.name()}"
    return f"position {message.partition()} {(message.offset() or 0) + 1}"


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
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    _say("subscribe")
    consumer.subscribe(
        [topic],
        on_assign=_teller("assigned"),
        on_revoke=_teller("revoked"),
        on_lost=_teller("lost"),
    )
    while True:
        message = consumer.poll(_POLL_S)
        if message is not None:
            _say(_heard(message))
        try:
            command = commands.get_nowait().split()
        except Empty:
            continue
        if command[0] == "close":
            break
        _say("busy")
        time.sleep(int(command[1]) / 1_000)
        _say("polling")
    _say("closing")
    consumer.close()
    _say("closed")


if __name__ == "__main__":
    main()
