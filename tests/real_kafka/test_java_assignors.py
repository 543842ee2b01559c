"""Java's own assignors as a user's: asked in a child JVM, they answer as ours do."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.assignors.contract import AssignorMember, ConsumerAssignor, RebalanceProtocol
from coordinator_sim.assignors.foreign import line_process
from coordinator_sim.assignors.foreign.contract import AssignorFault, OwnAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor, register_own
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment, encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim_conformance.real_kafka.kafka import jars_of
from tests.command_line import run_here
from tests.own_assignors import own_assignors_forgotten

pytestmark = pytest.mark.real_kafka

VERSION: Final = "4.3.1"
PACKAGE: Final = "org.apache.kafka.clients.consumer"
KAFKAS: Final = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
TOPICS: Final = {"orders": ((),) * 4, "payments": ((),) * 3}
MINE: Final = """
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.*;

public class Mine implements ConsumerPartitionAssignor {
    public String name() { return "whatever"; }
    public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        System.out.println("asked with " + group.groupSubscription().size());
        Map<String, Assignment> given = new HashMap<>();
        for (String member : group.groupSubscription().keySet()) {
            BODY
        }
        return new GroupAssignment(given);
    }
}
"""
ALL: Final = 'given.put(member, new Assignment(List.of(new TopicPartition("orders", 0))));'


@pytest.fixture(autouse=True)
def _forget_own() -> Iterator[None]:
    with own_assignors_forgotten():
        yield


def class_path(*before: str) -> str:
    """Kafka's jars behind other places."""
    return os.pathsep.join((*before, str(jars_of(VERSION) / "*")))


def register(name: str, class_name: str, *before: str, folder: Path) -> None:
    """Make a class an assignor."""
    target = f"{class_name}@{class_path(*before)}"
    register_own(OwnAssignor(name=name, kind="java", target=target, folder=str(folder)))


class Group:
    """The consumers of one implementation, from one generation to the next."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._assignors: dict[str, ConsumerAssignor] = {}
        self._owned: dict[str, list[TopicPartition]] = {}

    def rebalanced(
        self, topics: dict[str, Any], subscribed: dict[str, tuple[str, ...]], generation: int
    ) -> dict[str, list[TopicPartition]]:
        """Assign to these members, who then own it; partitions in the order on the wire.

        A member that comes back after a generation without it is a new process.
        """
        for member_id in self._assignors.keys() - subscribed.keys():
            del self._assignors[member_id], self._owned[member_id]
        members = []
        for member_id, wanted in subscribed.items():
            if member_id not in self._assignors:
                self._assignors[member_id] = make_consumer_assignor(self._name)
            owned = self._owned.get(member_id)
            subscription = Subscription(
                topics=wanted,
                user_data=self._assignors[member_id].subscription_user_data(wanted),
                owned_partitions=tuple(sorted(owned or ())),
                generation_id=-1 if owned is None else generation - 1,
            )
            members.append(AssignorMember(member_id=member_id, subscription=subscription))
        given = self._assignors[next(iter(subscribed))].assign(topics, members)
        for member_id, partitions in given.items():
            sent = encode_assignment(ConsumerAssignment(partitions=tuple(partitions)))
            received = decode_assignment(sent)
            self._assignors[member_id].on_assignment(received, generation)
            self._owned[member_id] = list(received.partitions)
        return {member_id: self._owned[member_id] for member_id in given}


names = st.sampled_from([f"consumer-{number}" for number in range(6)])
subscriptions = st.sampled_from([("orders",), ("payments",), ("orders", "payments")])
groups = st.dictionaries(names, subscriptions, min_size=1)
sizes = st.fixed_dictionaries({"orders": st.integers(1, 9), "payments": st.integers(1, 5)})
racks = st.sampled_from([(), ("a",), ("a", "b"), ("c", "b")])


@st.composite
def topics_with_racks(draw: st.DrawFn) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Both topics, their replicas in racks or not."""
    return {topic: tuple(draw(racks) for _ in range(count)) for topic, count in draw(sizes).items()}


@pytest.mark.parametrize("ours", KAFKAS)
def test_kafkas_own_class_answers_as_ours(ours: str, tmp_path: Path) -> None:
    """Three generations of any group, with user data and what members own."""
    prefix = "cooperative-" if ours.startswith("cooperative-") else ""
    register(f"{prefix}java", f"{PACKAGE}.{KAFKAS[ours]}", folder=tmp_path)

    @settings(max_examples=80, derandomize=True)
    @given(topics=topics_with_racks(), generations=st.lists(groups, min_size=1, max_size=3))
    def agree(topics: dict[str, Any], generations: list[dict[str, tuple[str, ...]]]) -> None:
        here, there = Group(ours), Group(f"{prefix}java")
        for generation, members in enumerate(generations, start=1):
            expected = here.rebalanced(topics, members, generation)
            assert there.rebalanced(topics, members, generation) == expected

    agree()
    assert make_consumer_assignor(f"{prefix}java").supported_protocols == (
        make_consumer_assignor(ours).supported_protocols
    )


def compiled(body: str, folder: Path) -> None:
    """An own class, in the folder."""
    (folder / "Mine.java").write_text(MINE.replace("BODY", body))
    words = ["javac", "-cp", class_path(), "Mine.java"]
    subprocess.run(words, cwd=folder, check=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'throw new IllegalStateException("no licence");',
            r"'mine' raises java.lang.IllegalStateException: no licence \(Mine.java:12\)",
        ),
        (ALL, "'mine' gives orders-0 to .* and to .*: a partition has one owner"),
        ("while (true) { }", "'mine': its process has not answered within 0.5 s"),
        ("System.exit(3);", "'mine': its process ended with code 3: asked with 2"),
        (
            "given.put(member, new Assignment(List.of(), java.nio.ByteBuffer.allocate(4)));",
            "'mine' gives a 4 bytes of user data",
        ),
    ],
)
def test_a_class_that_fails_is_named(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it raised and where, what it answered, or that it did not; its prints do no harm."""
    compiled(body, tmp_path)
    register("mine", "Mine", ".", folder=tmp_path)
    assignor = make_consumer_assignor("mine")
    assert assignor.supported_protocols == (RebalanceProtocol.EAGER,)
    monkeypatch.setattr(line_process, "TIME_BOUND_S", 0.5 if "while" in body else 10.0)
    members = [
        AssignorMember(member_id=name, subscription=Subscription(topics=("orders",)))
        for name in "ab"
    ]
    with pytest.raises(AssignorFault, match=message):
        assignor.assign(TOPICS, members)


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """One line each, before anything runs."""
    for class_name, message in (
        ("no.such.Class", "ended with code 1: java.lang.ClassNotFoundException: no.such.Class"),
        ("java.lang.String", "raises java.lang.ClassCastException: java.lang.String is no org"),
    ):
        register("mine", class_name, folder=tmp_path)
        with pytest.raises(AssignorFault, match=message):
            make_consumer_assignor("mine")
    register("mine", f"{PACKAGE}.CooperativeStickyAssignor", folder=tmp_path)
    with pytest.raises(ConfigError, match="is cooperative: names of cooperative assignors"):
        make_consumer_assignor("mine")
    register("mine", "Mine", "nowhere.jar", folder=tmp_path)
    with pytest.raises(ConfigError, match=r"'mine': nowhere\.jar: no such file"):
        make_consumer_assignor("mine")
    own = OwnAssignor(name="mine", kind="java", target="Mine@.", folder=str(tmp_path))
    register_own(own)
    with pytest.raises(AssignorFault, match="its class path lacks kafka-clients, of 2"):
        make_consumer_assignor("mine")


def test_a_run_takes_a_class(tmp_path: Path) -> None:
    """A story under Java's cooperative assignor is that under ours, but for the assignor's name."""
    stories = []
    for words in (
        ("--assignor", "cooperative-sticky"),
        (
            *("--assignor", "cooperative-java", "--assignor-java"),
            f"cooperative-java={PACKAGE}.CooperativeStickyAssignor@{class_path()}",
        ),
    ):
        done = run_here(
            "run", "scale-out", "--out", f"trace-{len(stories)}", *words, folder=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        stories.append([line for line in lines if not line.startswith(("digest", "trace"))])
    assert stories[0] == [
        line.replace("cooperative-java", "cooperative-sticky") for line in stories[1]
    ]
