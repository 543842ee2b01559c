"""Assignors that are Java classes: objects in a child JVM, asked as a consumer asks them.

The JVM runs `JavaAssignors.java` beside the user's class path, which brings kafka-clients. Each
consumer has its own object, so that a class may keep what it learns from one generation to the
next, or say it in its user data.
"""

import os
import shutil
import tempfile
import weakref
from base64 import b64decode, b64encode
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.assignors.foreign.asked import asked_member, checked
from coordinator_sim.assignors.foreign.contract import (
    CLASS_EXAMPLE,
    AssignorFault,
    OwnAssignor,
    Topics,
)
from coordinator_sim.assignors.foreign.line_process import LineProcess, running
from coordinator_sim.errors import ConfigError, MissingDependencyError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.codec.classic_types import (
    ClassicReader,
    array_bytes,
    bytes_bytes,
    int32_bytes,
    string_bytes,
)
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, is_cooperative

_SOURCE: Final = "JavaAssignors.java"
_START_BOUND_S: Final = 60.0
"""Longest time in which a JVM may start, compile its source and make an object."""
_NOT_COMPILED: Final = "compilation failed"
_NEW, _USER_DATA, _ON_ASSIGNMENT, _ASSIGN = b"n", b"u", b"o", b"a"


class JavaProcess(LineProcess):
    """A JVM with the objects of one class."""

    def __init__(self, own: OwnAssignor) -> None:
        words = _java_words(own)
        self._source_folder = tempfile.TemporaryDirectory(prefix="coordinator-sim-")
        source = Path(self._source_folder.name) / _SOURCE
        source.write_bytes(files(__package__).joinpath(_SOURCE).read_bytes())
        super().__init__(own, [*words[:-1], str(source), words[-1]])
        self._bound_s: float | None = _START_BOUND_S
        self._dropped: list[int] = []

    def make(self) -> tuple[int, tuple[RebalanceProtocol, ...]]:
        """Make an object; return its number and the rebalance protocols that it supports.

        Raises:
            AssignorFault: the class cannot be loaded, or is no assignor.
        """
        dropped, self._dropped = self._dropped, []
        try:
            reader = self.ask(_NEW + array_bytes([int32_bytes(number) for number in dropped]))
        except AssignorFault as fault:
            if _NOT_COMPILED not in str(fault):
                raise
            raise AssignorFault(
                f"assignor {self._own.name!r}: its class path lacks kafka-clients, of 2.5 or later"
            ) from fault
        self._bound_s = None
        number = reader.int32("object")
        count = reader.int32("protocols")
        return number, tuple(RebalanceProtocol(reader.int16("protocol")) for _ in range(count))

    def drop(self, number: int) -> None:
        """Forget an object with the next question for a new one."""
        self._dropped.append(number)

    def ask(self, question: bytes) -> ClassicReader:
        """Return a reader of the answer.

        Raises:
            AssignorFault: the class raises, or the process fails.
        """
        answer = ClassicReader(
            b64decode(self.exchange(b64encode(question), self._bound_s)), "answer of the JVM"
        )
        if not answer.int16("is_answer"):
            reason = answer.nullable_string("error")
            raise AssignorFault(f"assignor {self._own.name!r} raises {reason}")
        return answer

    def stop(self) -> None:
        """End the JVM."""
        super().stop()
        self._source_folder.cleanup()


class JavaAssignor:
    """One consumer's object of a Java class.

    Args:
        own: Where the class is.

    Raises:
        ConfigError: A file of the class path is missing, or the name does not say how the class
            rebalances.
        MissingDependencyError: There is no Java.
        AssignorFault: The class cannot be loaded, or is no assignor.
    """

    def __init__(self, own: OwnAssignor) -> None:
        self._name = own.name
        self._process = running(own, JavaProcess)
        self._number, protocols = self._process.make()
        weakref.finalize(self, self._process.drop, self._number)
        if (RebalanceProtocol.COOPERATIVE in protocols) != is_cooperative(own.name):
            which = "cooperative" if RebalanceProtocol.COOPERATIVE in protocols else "eager"
            raise ConfigError(
                f"assignor {own.name!r}: {own.target.partition('@')[0]} is {which}: names of "
                "cooperative assignors, and of no others, begin with cooperative-"
            )
        self._protocols = tuple(sorted(protocols, reverse=True))

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup: the user's, whatever the class calls itself."""
        return self._name

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """What the class supports."""
        return self._protocols

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the user data that the class wants in the next JoinGroup."""
        answer = self._ask(_USER_DATA, array_bytes([string_bytes(topic) for topic in topics]))
        return answer.nullable_bytes("user_data")

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Tell the object its consumer's assignment."""
        self._ask(
            _ON_ASSIGNMENT, bytes_bytes(encode_assignment(assignment)) + int32_bytes(generation_id)
        )

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member, in the order in which they are sent.

        Raises:
            AssignorFault: The class raises, or its answer is no assignment of this group.
        """
        answer = self._ask(_ASSIGN, _group_bytes(topics, members))
        given: dict[str, list[TopicPartition]] = {}
        for _ in range(answer.int32("members")):
            member_id = answer.nullable_string("member_id") or ""
            assignment = decode_assignment(answer.nullable_bytes("assignment") or b"")
            if assignment.user_data:
                raise AssignorFault(
                    f"assignor {self._name!r} gives {member_id} {len(assignment.user_data)} bytes "
                    "of user data with its partitions; simulated members take none"
                )
            given[member_id] = list(assignment.partitions)
        known: Topics = {topic: tuple(map(tuple, racks)) for topic, racks in topics.items()}
        everybody = checked(self._name, given, known, tuple(map(asked_member, members)))
        return {member_id: given.get(member_id, []) for member_id in everybody}

    def _ask(self, what: bytes, rest: bytes) -> ClassicReader:
        if not self._process.is_alive:
            raise AssignorFault(f"assignor {self._name!r}: its JVM has ended")
        return self._process.ask(what + int32_bytes(self._number) + rest)


def _group_bytes(topics: TopicRacks, members: Sequence[AssignorMember]) -> bytes:
    return array_bytes(
        [
            string_bytes(topic)
            + array_bytes([array_bytes([string_bytes(rack) for rack in each]) for each in racks])
            for topic, racks in topics.items()
        ]
    ) + array_bytes(
        [
            string_bytes(member.member_id)
            + string_bytes(member.group_instance_id)
            + bytes_bytes(encode_subscription(member.subscription))
            for member in members
        ]
    )


def _java_words(own: OwnAssignor) -> list[str]:
    """The command, without the source file before its last word.

    Raises:
        ConfigError: The target is no class with a class path, or a file of it is missing.
        MissingDependencyError: There is no Java.
    """
    class_name, at, class_path = own.target.partition("@")
    if not at or not class_name or not class_path:
        raise ConfigError(
            f"assignor {own.name!r}: {own.target!r}: wants a class and its class path, as "
            f"{CLASS_EXAMPLE}"
        )
    for entry in class_path.split(os.pathsep):
        place = Path(own.folder) / entry.removesuffix("*")
        if not place.exists():
            raise ConfigError(f"assignor {own.name!r}: {entry}: no such file")
    java = shutil.which("java")
    if java is None:
        raise MissingDependencyError(
            f"assignor {own.name!r} needs java, of a JDK 11 or later, on the PATH"
        )
    return [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path, class_name]
