"""The assignor lab: its bounds hold for every assignment, and its findings are those of Kafka's."""

import json
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.errors import ConfigError
from coordinator_sim.harness.assignor_lab import LabResult, Size, examine, fewest_moves
from coordinator_sim.kafka.resources import TopicPartition
from tests.command_line import run_here

HOARDER = """
def hoards(topics, members):
    return {members[0].id: [(t, n) for t in topics for n in range(len(topics[t]))]}

def forgets(topics, members):
    return {members[0].id: [("topic-0000", 0)]}
"""


def examined(name: str, members: int = 10, *, racks: int = 0) -> LabResult:
    """One assignor at one size, by a clock that stands still."""
    size = Size(members=members, topics=4, partitions=10 * members, racks=racks)
    return examine(name, size, lambda: 0.0)


@given(
    loads=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    joined=st.integers(0, 2),
    seed=st.integers(0, 1_000),
)
def test_no_balanced_assignment_moves_less_than_the_bound(
    loads: list[int], joined: int, seed: int
) -> None:
    """Members that stay give up at least that many, whatever the balanced target."""
    names = [f"m{n}" for n in range(len(loads) + joined)]
    numbers = iter(range(sum(loads)))
    owned = {
        name: [TopicPartition("t", next(numbers)) for _ in range(load)]
        for name, load in zip(names, loads, strict=False)
    }
    every = [tp for own in owned.values() for tp in own]
    drawn = random.Random(seed)  # noqa: S311 - no secret
    drawn.shuffle(every)
    drawn.shuffle(names)
    target = {tp: names[index % len(names)] for index, tp in enumerate(every)}
    given_up = sum(target[tp] != name for name, own in owned.items() for tp in own)
    assert given_up >= fewest_moves(owned, names, len(every))


@pytest.mark.parametrize("name", CONSUMER_ASSIGNORS)
@pytest.mark.parametrize("racks", [0, 3])
def test_what_is_known_of_kafkas_assignors(name: str, racks: int) -> None:
    """All give everything away and answer alike; the sticky ones move least and balance."""
    result = examined(name, racks=racks)
    assert not {"owned once", "repeatable", "mixed"} & result.failed.keys()
    join, leave, deploy = result.stories
    if "sticky" in name:
        assert not result.failed
        assert (join.moved, join.excess, leave.moved, leave.excess) == (9, 0, 10, 0)
        assert result.spread == 0
    else:
        assert "sticky" in result.failed
        assert deploy.moved > 2 * deploy.fewest
    assert (result.crossing is None) == (racks == 0)
    # Eager members stop all they have at each of the 20 rebalances, cooperative ones what moves.
    assert (deploy.stopped < 200) == (name == "cooperative-sticky")
    assert result == examined(name, racks=racks)


def test_the_page_and_the_json_say_the_same(tmp_path: Path) -> None:
    """One's own beside Kafka's; the exit code tells of partitions without an owner."""
    (tmp_path / "my.py").write_text(HOARDER)
    words = ("assign", "lab", "range", "hoards", "--members", "2,4", "--topics", "3", "--json")
    own = ("--assignor-from", "my.py:hoards", "--assignor-from", "my.py:forgets")
    done = run_here(*words, *own, "--out", "lab.html", folder=tmp_path)

    assert done.stderr == ""
    results = msgspec.convert(json.loads(done.stdout), list[LabResult])
    assert [(each.assignor, each.size.members) for each in results] == [
        *(("range", n) for n in (2, 4)),
        *(("hoards", n) for n in (2, 4)),
    ]
    assert results[2].failed["balanced"] == "member-0000 has 20, member-0001 has 0"
    assert "does not subscribe to" in results[2].failed["mixed"]
    page = (tmp_path / "lab.html").read_text()
    assert "member-0000 has 20, member-0001 has 0" in page
    assert "http" not in page
    begin = page.index('<svg class="curves"')
    chart = ET.fromstring(page[begin : page.index("</svg>", begin) + 6])  # noqa: S314 - our own
    assert len([path for path in chart.iter("path") if path.get("class") == "line"]) == 2
    forgets = run_here("assign", "lab", "forgets", "--members", "2", *own, folder=tmp_path)
    assert forgets.returncode == 1
    assert "forgets is not owned once: topic-0000-1 has no owner, of 19 such" in forgets.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("best",), "unknown consumer assignor 'best'"),
        (("range", "--members", "1"), "--members 1: must be from 2 to 5000"),
        (("range", "--members", "two"), "--members 'two': wants whole numbers"),
        (("range", "--partitions", "3"), "--partitions 3: must be from 12 to 200000"),
    ],
)
def test_what_cannot_be_tried_is_refused(words: tuple[str, ...], message: str) -> None:
    """In one line with the bound."""
    done = run_here("assign", "lab", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_size_without_members_is_refused() -> None:
    """From Python too."""
    with pytest.raises(ConfigError, match="--members 0"):
        examined("range", members=0)
