"""A consumer group (KIP-848) of 1,000 members and 10,000 partitions, beside Kafka and kfake.

The same story, heartbeat by heartbeat, in CPU-seconds of each process from /proc: all join, a
target is computed for all of them, they hand over what they must, then they only heartbeat.
The core and Kafka's own classes (in a JVM, with all its compilers) take frames in JSON lines, which
is the same work for both beside the coordinator's; `serve`, kfake and a real Kafka take them over a
socket. Memory is what the process has more for the group, by member; a JVM's heap tells nothing of
that.
"""

import argparse
import sys
import tempfile
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from socket import create_connection
from typing import Any, Final, Protocol

import msgspec

from benchmarks.servers import Server, kafka, kfake, ours
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.messages.create_topics import CreatableTopic, CreateTopicsRequest
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim_conformance.differ.building import built
from coordinator_sim_conformance.differ.references import reference_named
from coordinator_sim_conformance.differ.sides import LinesProcess

MEMBERS: Final = 1_000
TOPICS: Final = 10
PARTITIONS: Final = 1_000
STEADY_ROUNDS: Final = 50
_VERSION: Final = 1
_INTERVAL_MS: Final = 1_000
"""Shortest time from one target to the next, as of Kafka 4.3."""
_AT_ONCE: Final = 200
"""Frames on their way together."""
_MOST_ROUNDS: Final = 20
_CREATION_MS: Final = 60_000
_MOST_TRIES: Final = 600
_TRY_EVERY_S: Final = 0.2
_IS_LED: Final = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
_LENGTH_BYTES: Final = 4
_READ_BYTES: Final = 1 << 16
_NAMES: Final = tuple(f"topic-{number}" for number in range(TOPICS))


class Side(Protocol):
    """A coordinator with the topics of the story."""

    server: Server

    def exchange(self, frames: Sequence[bytes]) -> list[bytes]:
        """Send requests and return their responses, in order."""
        ...

    def wait(self, ms: int) -> None:
        """Let time pass."""
        ...


class BehindLines:
    """A coordinator in virtual time behind the line protocol."""

    def __init__(self, name: str, process: LinesProcess) -> None:
        self.server = Server(name, "", process.pid)
        self._process = process
        self._sent = 0
        config = {"group.consumer.max.size": str(MEMBERS)}
        self._tell({"op": "init", "config": config, "partitions": 1, "seed": 1})
        topics = [
            {"name": name, "partitions": PARTITIONS, "id": _id_of(number)}
            for number, name in enumerate(_NAMES)
        ]
        self._tell({"op": "topics", "set": topics})

    def _tell(self, command: dict[str, Any]) -> dict[str, Any]:
        return self._answered(self._process.answer(command))

    def _answered(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            raise DataError(f"{self.server.name}: {answer['error']}")
        return answer

    def exchange(self, frames: Sequence[bytes]) -> list[bytes]:
        """Send requests and return their responses, in order."""
        lines = []
        for frame in frames:
            self._sent += 1
            command = {"op": "wire", "id": self._sent, "frame": b64encode(frame).decode()}
            lines.append(msgspec.json.encode(command))
        self._process.send(lines)
        found: list[bytes] = []
        for _ in lines:
            answer = self._answered(self._process.receive())
            found += [b64decode(reply["frame"]) for reply in answer["replies"]]
        return found

    def wait(self, ms: int) -> None:
        """Let virtual time pass."""
        self._tell({"op": "advance", "ms": ms})


class BehindSocket:
    """A broker, over one connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        host, _, port = server.address.rpartition(":")
        self._socket = create_connection((host, int(port)))
        self._received = bytearray()
        for name in _NAMES:
            self._create_topic(name)
        self._wait_for_coordinator()

    def _create_topic(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_CREATION_MS)
        (answer,) = self.exchange([encode_request(request, 5, correlation_id=0)])
        _, created = decode_response(ApiKey.CREATE_TOPICS, 5, answer)
        if created.topics[0].error_code:
            raise DataError(f"{self.server.name} answers {name} with {created.topics[0]}")

    def _wait_for_coordinator(self) -> None:
        """Have the offsets topic made, and wait until its partition of the group is led."""
        find = encode_request(FindCoordinatorRequest(coordinator_keys=("g",)), 4, correlation_id=0)
        describe = encode_request(
            ConsumerGroupDescribeRequest(group_ids=("g",)), 0, correlation_id=0
        )
        for _ in range(_MOST_TRIES):
            _, answer = self.exchange([find, describe])
            _, found = decode_response(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, answer)
            if found.groups[0].error_code in _IS_LED:
                return
            time.sleep(_TRY_EVERY_S)
        raise DataError(f"{self.server.name} has no coordinator: {found.groups[0].error_code.name}")

    def exchange(self, frames: Sequence[bytes]) -> list[bytes]:
        """Send requests and return their responses, in order."""
        sizes = (len(frame).to_bytes(_LENGTH_BYTES, "big") for frame in frames)
        self._socket.sendall(b"".join(a + b for a, b in zip(sizes, frames, strict=True)))
        return [self._frame() for _ in frames]

    def _frame(self) -> bytes:
        while len(self._received) < _LENGTH_BYTES or len(self._received) < self._end():
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise DataError(f"{self.server.name} closed the connection")
            self._received += data
        end = self._end()
        frame = bytes(self._received[_LENGTH_BYTES:end])
        del self._received[:end]
        return frame

    def _end(self) -> int:
        return _LENGTH_BYTES + int.from_bytes(self._received[:_LENGTH_BYTES], "big")

    def wait(self, ms: int) -> None:
        """Let time pass."""
        time.sleep(ms / 1_000)


class Group:
    """The members as their consumers would be: epochs, and what they hold."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.epochs = dict.fromkeys((f"member-{number:04}" for number in range(MEMBERS)), 0)
        self._held: dict[str, tuple[TopicPartitions, ...]] = {}

    def beat(self, ids: Iterable[str], *, tells: bool) -> bool:
        """A heartbeat of each; whether an epoch or an assignment came.

        Args:
            ids: Of members.
            tells: Whether they tell what they hold; a consumer whose partitions have not changed
                does not.
        """
        listed = list(ids)
        has_changed = False
        for first in range(0, len(listed), _AT_ONCE):
            part = listed[first : first + _AT_ONCE]
            frames = [self._request(member_id, tells=tells) for member_id in part]
            answers = self._side.exchange(frames)
            for member_id, frame in zip(part, answers, strict=True):
                has_changed |= self._take(member_id, frame)
        return has_changed

    def _request(self, member_id: str, *, tells: bool) -> bytes:
        epoch = self.epochs[member_id]
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=300_000 if joins else -1,
            subscribed_topic_names=_NAMES if joins else None,
            server_assignor="uniform" if joins else None,
            topic_partitions=() if joins else self._held.get(member_id, ()) if tells else None,
        )
        return encode_request(request, _VERSION, correlation_id=1, client_id="bench")

    def _take(self, member_id: str, frame: bytes) -> bool:
        _, response = decode_response(ApiKey.CONSUMER_GROUP_HEARTBEAT, _VERSION, frame)
        if not isinstance(response, ConsumerGroupHeartbeatResponse) or response.error_code:
            raise DataError(f"{self._side.server.name} answers {member_id} with {response}")
        if response.assignment is not None:
            self._held[member_id] = tuple(
                TopicPartitions(topic.topic_id, topic.partitions)
                for topic in response.assignment.topic_partitions
            )
        has_changed = (
            response.assignment is not None or response.member_epoch != self.epochs[member_id]
        )
        self.epochs[member_id] = response.member_epoch
        return has_changed

    def settle(self) -> int:
        """Heartbeats until nothing changes and every partition has an owner; the number of rounds.

        A broker may wait before it computes a target.

        Raises:
            DataError: That does not come.
        """
        owned = 0
        for number in range(1, _MOST_ROUNDS):
            has_changed = self.beat(self.epochs, tells=True)
            owned = sum(len(t.partitions) for held in self._held.values() for t in held)
            if not has_changed and owned == TOPICS * PARTITIONS:
                return number
            self._side.wait(_INTERVAL_MS)
        raise DataError(
            f"{self._side.server.name}: no rest after {_MOST_ROUNDS} rounds, {owned} partitions "
            "have owners"
        )


def _id_of(number: int) -> str:
    """A topic id in the form of Kafka's Uuid."""
    return urlsafe_b64encode((number + 1).to_bytes(16, "big")).decode().rstrip("=")


def measure(side: Side) -> None:
    """Tell the story, and print what each part of it cost."""
    server = side.server
    memory_kb = server.rss_kb()

    def cost(part: Callable[[], Any]) -> float:
        before = server.cpu_s()
        part()
        return server.cpu_s() - before

    group = Group(side)
    ids = list(group.epochs)
    joining = cost(lambda: group.beat(ids, tells=True))
    side.wait(_INTERVAL_MS + 1)
    target = cost(lambda: group.beat(ids[:1], tells=True))
    settling = cost(group.settle)
    memory_kb = server.rss_kb() - memory_kb
    group.beat((member_id for _ in range(STEADY_ROUNDS) for member_id in ids), tells=False)
    steady = cost(
        lambda: group.beat((each for _ in range(STEADY_ROUNDS) for each in ids), tells=False)
    )
    rate = STEADY_ROUNDS * MEMBERS / steady
    print(
        f"{server.name:<26} {rate:>9,.0f} heartbeats/CPU-s   joins {joining:6.2f} CPU-s   "
        f"target {target:5.2f}   handover {settling:6.2f}   {memory_kb / MEMBERS:6.1f} KB a member",
        flush=True,
    )


@contextmanager
def _lines(name: str, command: Sequence[str], folder: Path | None) -> Iterator[BehindLines]:
    with LinesProcess(command, folder) as process:
        yield BehindLines(name, process)


def _kafkas_classes() -> tuple[list[str], Path]:
    command, folder = built(reference_named("kafka-4.4.0"), print)
    return [word for word in command if not word.startswith("-XX:Tiered")], folder


def main(options: Sequence[str] = ()) -> None:
    """Print a line for each coordinator."""
    parser = argparse.ArgumentParser(prog="benchmarks.consumer_groups")
    parser.add_argument("--alone", action="store_true", help="the core and serve alone")
    is_alone = parser.parse_args(options).alone
    print(f"{MEMBERS:,} members, {TOPICS} topics of {PARTITIONS:,} partitions, assignor uniform")
    own = [sys.executable, "-m", "coordinator_sim", "lines"]
    with _lines("core, behind lines", own, None) as side:
        measure(side)
    if not is_alone:
        with _lines("Kafka 4.4's classes, same", *_kafkas_classes()) as side:
            measure(side)
    with tempfile.TemporaryDirectory(prefix="coordinator-sim-") as name:
        folder = Path(name)
        servers: list[Callable[[], AbstractContextManager[Server]]] = [lambda: ours("serve")]
        if not is_alone:
            servers += [lambda: kfake(folder), lambda: kafka(folder)]
        for start in servers:
            with start() as server:
                measure(BehindSocket(server))


if __name__ == "__main__":
    main(sys.argv[1:])
