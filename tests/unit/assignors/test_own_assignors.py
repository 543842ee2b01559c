"""Assignors from outside: functions and processes, what they are asked, and how they fail."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.assignors import registry
from coordinator_sim.assignors.contract import AssignorMember
from coordinator_sim.assignors.foreign import contract, line_process
from coordinator_sim.assignors.foreign.asked import AskedAssignor
from coordinator_sim.assignors.foreign.contract import (
    Answer,
    AssignorFault,
    Member,
    OwnAssignor,
    Topics,
)
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import Subscription
from tests.command_line import run_here
from tests.own_assignors import own_assignors_forgotten

TOPICS: Topics = {"orders": ((), (), ()), "payments": ((),)}
ROUND_ROBIN = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    ids = [member["id"] for member in asked["members"]]
    every = [[t, n] for t, racks in asked["topics"].items() for n in range(len(racks))]
    given = {one: every[k :: len(ids)] for k, one in enumerate(ids)}
    print(json.dumps({"assigned": given}), flush=True)
"""


@pytest.fixture(autouse=True)
def _forget_own() -> Iterator[None]:
    with own_assignors_forgotten():
        yield


def member(name: str, *owned: tuple[str, int], topics: tuple[str, ...] = ()) -> AssignorMember:
    """A member of all topics that owns something since generation 1."""
    return AssignorMember(
        member_id=name,
        subscription=Subscription(
            topics=topics or tuple(TOPICS),
            owned_partitions=tuple(TopicPartition(*each) for each in owned),
            generation_id=1 if owned else -1,
        ),
    )


def all_to_first(topics: Topics, members: tuple[Member, ...]) -> Answer:
    """Give everything to the member whose id is the least."""
    every = [(topic, n) for topic, racks in topics.items() for n in range(len(racks))]
    return {min(each.id for each in members): every}


def test_a_function_is_an_assignor_by_its_name() -> None:
    """It is told topics and members, and its answer is sorted, all members present."""
    registry.register_assignor("hoarder", all_to_first)
    assert registry.own_assignors() == ("hoarder",)

    given = registry.make_consumer_assignor("hoarder").assign(TOPICS, [member("b"), member("a")])

    assert given == {
        "b": [],
        "a": [TopicPartition("orders", n) for n in range(3)] + [TopicPartition("payments", 0)],
    }


def test_a_cooperative_one_hands_over_in_two_steps() -> None:
    """What another member owns still is given to nobody yet; then it is free."""
    registry.register_assignor("cooperative-hoarder", all_to_first)
    assignor = registry.make_consumer_assignor("cooperative-hoarder")
    before = [member("a"), member("b", ("orders", 1))]
    after = [member("a", ("orders", 0), ("orders", 2), ("payments", 0)), member("b")]

    assert TopicPartition("orders", 1) not in assignor.assign(TOPICS, before)["a"]
    assert TopicPartition("orders", 1) in assignor.assign(TOPICS, after)["a"]


@given(
    owners=st.lists(st.sampled_from("abcd"), min_size=4, max_size=4),
    goal=st.lists(st.sampled_from("abcd"), min_size=4, max_size=4),
)
def test_no_handover_takes_from_an_owner(owners: list[str], goal: list[str]) -> None:
    """Nobody is given what somebody else owns, and the second step reaches the goal."""
    every = [("orders", 0), ("orders", 1), ("orders", 2), ("payments", 0)]

    def wanted(topics: Topics, members: tuple[Member, ...]) -> Answer:
        del topics, members
        return {name: [p for p, g in zip(every, goal, strict=True) if g == name] for name in "abcd"}

    assignor = AskedAssignor("cooperative-goal", wanted)
    owned = {name: [p for p, o in zip(every, owners, strict=True) if o == name] for name in "abcd"}
    first = assignor.assign(TOPICS, [member(name, *owned[name]) for name in "abcd"])
    for name, partitions in first.items():
        assert set(partitions) <= {p for p, o in zip(every, owners, strict=True) if o == name}
    second = assignor.assign(TOPICS, [member(name, *first[name]) for name in "abcd"])
    assert {name: list(map(tuple, own)) for name, own in second.items()} == wanted(TOPICS, ())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"a": [("orders", 0)], "b": [("orders", 0)]}, "gives orders-0 to a and to b: a partition"),
        ({"a": [("orders", 0), ("orders", 0)]}, "gives orders-0 to a twice"),
        ({"z": [("orders", 0)]}, "gives orders-0 to 'z', which is not among the 2 members"),
        ({"a": [("orders", 3)]}, "gives orders-3 to a: topic orders has 3 partitions, from 0"),
        ({"a": [("bills", 0)]}, "gives bills-0 to a: there is no such topic"),
        ({"b": [("payments", 0)]}, "gives payments-0 to b, which does not subscribe to payments"),
        ({"a": [("orders", "0")]}, "gives \\('orders', '0'\\) to a: a partition is a topic and"),
        ({"a": "orders"}, "gives 'orders' to a: must be a list of partitions"),
        ([], "answers with list: must be the partitions of each member"),
    ],
)
def test_a_wrong_answer_is_named(answer: Answer, message: str) -> None:
    """The assignor, the member and the partition are in the one line."""
    registry.register_assignor("mine", lambda _topics, _members: answer)
    members = [member("a"), member("b", topics=("orders",))]
    with pytest.raises(AssignorFault, match=f"assignor 'mine' {message}"):
        registry.make_consumer_assignor("mine").assign(TOPICS, members)


def test_one_that_raises_or_loops_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that raised, or the time and the size that it did not manage."""

    def raises(topics: Topics, members: tuple[Member, ...]) -> Answer:
        del topics
        return {each.id: [("orders", 1 // 0)] for each in members}

    def loops(topics: Topics, members: tuple[Member, ...]) -> Answer:
        while members:
            try:
                topics["nothing"]
            except Exception:  # noqa: BLE001, S112 - what a careless assignor does
                continue
        return {}

    monkeypatch.setattr(contract, "TIME_BOUND_S", 0.2)
    registry.register_assignor("mine", raises)
    with pytest.raises(AssignorFault, match=r"'mine' raises ZeroDivisionError: .* line \d+\)"):
        registry.make_consumer_assignor("mine").assign(TOPICS, [member("a")])
    registry.register_assignor("mine", loops)
    with pytest.raises(AssignorFault, match=r"not done after 0.2 s of CPU with 1 members and 4"):
        registry.make_consumer_assignor("mine").assign(TOPICS, [member("a")])


def test_a_process_answers_line_by_line(tmp_path: Path) -> None:
    """One process for all questions of a run."""
    script = tmp_path / "assign.py"
    script.write_text(ROUND_ROBIN)
    registry.register_own(own_process(f"{sys.executable} {script}", tmp_path))
    assignor = registry.make_consumer_assignor("mine")
    for _ in range(2):
        given = assignor.assign(TOPICS, [member("a"), member("b")])
        assert given == {
            "a": [TopicPartition("orders", 0), TopicPartition("orders", 2)],
            "b": [TopicPartition("orders", 1), TopicPartition("payments", 0)],
        }


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no licence')", "its process ended with code 1: no licence"),
        ("print('hello')", "answers 'hello': JSON is malformed"),
        ("print('{}')", "answers without `assigned` and without `error`"),
        ("""print('{"error": "too few racks"}')""", "refuses: too few racks"),
        ("""print('{"assigned": {"z": [["orders", 0]]}}')""", "to 'z', which is not among"),
        ("import time; time.sleep(60)", "its process has not answered within 0.3 s"),
    ],
)
def test_a_process_that_fails_is_named(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said last, or what it did not say."""
    if "sleep" in code:
        monkeypatch.setattr(line_process, "TIME_BOUND_S", 0.3)
    script = tmp_path / "assign.py"
    script.write_text(f"input()\n{code}\n")
    registry.register_own(own_process(f"{sys.executable} {script}", tmp_path))
    with pytest.raises(AssignorFault, match=f"^assignor 'mine'.*{message}"):
        registry.make_consumer_assignor("mine").assign(TOPICS, [member("a")])


def own_process(command: str, folder: Path) -> OwnAssignor:
    """A process by the name `mine`."""
    return OwnAssignor(name="mine", kind="process", target=command, folder=str(folder))


def test_names_and_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(ConfigError, match="assignor 'range' is there already"):
        registry.register_assignor("range", all_to_first)
    with pytest.raises(ConfigError, match="assignor 'My One': a name has"):
        registry.register_assignor("My One", all_to_first)
    (tmp_path / "mine.py").write_text("import nothing_of_that_name\n")
    for target, message in (
        ("mine.py", "wants a file or module and a function"),
        ("other.py:assign", "other.py: no such file"),
        ("mine.py:assign", "cannot be loaded: ModuleNotFoundError"),
        ("json:nothing", "json has no function 'nothing'"),
    ):
        own = OwnAssignor(name="mine", kind="python", target=target, folder=str(tmp_path))
        with pytest.raises(ConfigError, match=message):
            registry.register_own(own)
    registry.register_own(own_process("nowhere/assign", tmp_path))
    assignor = registry.make_consumer_assignor("mine")
    with pytest.raises(ConfigError, match="'nowhere/assign' cannot be started: No such file"):
        assignor.assign(TOPICS, [member("a")])


def test_a_run_takes_it_from_a_file(tmp_path: Path) -> None:
    """The story goes on as with Kafka's, and a fault ends it with one line and exit code 1."""
    (tmp_path / "my.py").write_text(
        "def spread(topics, members):\n"
        "    every = [(t, n) for t, racks in topics.items() for n in range(len(racks))]\n"
        "    return {m.id: every[k::len(members)] for k, m in enumerate(members)}\n"
        "def twice(topics, members):\n"
        "    return {m.id: [('orders', 0)] for m in members}\n"
    )
    words = ("run", "scale-out", "--assignor-from")
    done = run_here(*words, "my.py:spread", "--assignor", "spread", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "invariants VIOLATED: none" in done.stdout
    failed = run_here(*words, "my.py:twice", "--assignor", "twice", folder=tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: assignor 'twice' gives orders-0 to ")
    assert failed.stderr.count("\n") == 1
