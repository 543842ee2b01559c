"""Group members on librdkafka, one thread per member, that print what happens to them.

`python -m coordinator_sim_conformance.real_kafka.upgrade.librdkafka_members BOOTSTRAP` takes the
lines "start NAME TOPIC,TOPIC SETTING=VALUE..." and "stop NAME", and prints the lines of
`UpgradeMembers.java`: microseconds, who, what, and about what.
"""

import sys
import time
from collections.abc import Iterable
from threading import Lock, Thread
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

_POLL_S: Final = 0.05
_COMMIT_INTERVAL_S: Final = 0.4
_BATCH: Final = 500
_out: Final = Lock()


class _Member(Thread):
    """A consumer, polled until it is told to stop."""

    def __init__(self, bootstrap: str, who: str, topics: str, settings: Iterable[str]) -> None:
        super().__init__(daemon=True)
        self._who = who
        self._topics = topics.split(",")
        given = dict(each.split("=", 1) for each in settings)
        self._commits = given["enable.auto.commit"] == "false"
        self._done: dict[tuple[str, int], int] = {}
        named: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": who,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "on_commit": self._committed,
            **given,
        }
        self._consumer = Consumer(named)
        self.is_stopped = False

    def run(self) -> None:
        """Read, tell, commit; close at the end."""
        callbacks: Any = {
            "on_assign": self._assigned,
            "on_revoke": self._revoked,
            "on_lost": self._lost,
        }
        try:
            self._consumer.subscribe(self._topics, **callbacks)
            due_s = time.monotonic() + _COMMIT_INTERVAL_S
            while not self.is_stopped:
                for message in self._consumer.consume(_BATCH, _POLL_S):
                    self._read(message)
                if self._commits and time.monotonic() >= due_s:
                    self._commit(list(self._done))
                    due_s = time.monotonic() + _COMMIT_INTERVAL_S
            self._consumer.close()
            self._tell("closed")
        except KafkaException as error:
            self._tell("failed", str(error))

    def _read(self, message: Message) -> None:
        if message.error() is not None:
            self._tell("failed", str(message.error()))
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        value = message.value()
        if topic is None or partition is None or offset is None or value is None:
            self._tell("failed", "a message without place or value")
            return
        self._tell("read", f"{topic}-{partition} {offset} {value.decode()}")
        self._done[topic, partition] = offset + 1

    def _commit(self, places: Iterable[tuple[str, int]]) -> None:
        """Commit what was processed of some partitions."""
        offsets = [
            TopicPartition(*place, self._done[place]) for place in places if place in self._done
        ]
        if not offsets:
            return
        for each in offsets:
            self._tell("committing", f"{each.topic}-{each.partition} {each.offset}")
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self._tell("refused", str(error.args[0].name()))
            return
        for each in offsets:
            self._tell("committed", f"{each.topic}-{each.partition} {each.offset}")

    def _committed(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        """Hear of a commit that the consumer made by itself."""
        for each in places:
            if error is None and each.error is None and each.offset >= 0:
                self._tell("committed", f"{each.topic}-{each.partition} {each.offset}")

    def _assigned(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        for each in places:
            self._tell("assigned", f"{each.topic}-{each.partition}")

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        if self._commits:
            self._commit([(each.topic, each.partition) for each in places])
        self._gone("revoked", places)

    def _lost(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self._gone("lost", places)

    def _gone(self, how: str, places: list[TopicPartition]) -> None:
        for each in places:
            self._done.pop((each.topic, each.partition), None)
            self._tell(how, f"{each.topic}-{each.partition}")

    def _tell(self, what: str, about: str = "") -> None:
        with _out:
            line = f"{time.time_ns() // 1_000} {self._who} {what} {about}".rstrip()
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def main(bootstrap: str) -> None:
    """Take commands until standard input ends; close the members then."""
    members: dict[str, _Member] = {}
    for line in sys.stdin:
        command, who, *rest = line.split()
        if command == "start":
            members[who] = _Member(bootstrap, who, rest[0], rest[1:])
            members[who].start()
        else:
            members[who].is_stopped = True
    for each in members.values():
        each.is_stopped = True
    for each in members.values():
        each.join()


if __name__ == "__main__":
    main(sys.argv[1])
