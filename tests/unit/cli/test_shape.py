"""`shape`: a scenario of one's own topology, from the command line, a trace or a cluster."""

import json
from pathlib import Path

import pytest

from coordinator_sim.sim.scenario import ConsumerGroupSpec, RestartMember, load_scenario
from tests.command_line import run_here

SIZE = ("--topics", "12", "--partitions", "500", "--consumers", "37")


def test_the_topology_of_the_command_line(tmp_path: Path) -> None:
    """37 consumers of 500 partitions in 12 topics, a deploy a week for a month, two crashes."""
    file = tmp_path / "mine.json"
    done = run_here(
        *("shape", *SIZE, "--deploys", "weekly", "--for", "30d", "--crashes", "2"),
        *("--assignor", "sticky", "--membership", "static", "--out", file),
        *("--set", "session.timeout.ms=20000", "--calm", "1m"),
    )
    assert done.returncode == 0, done.stderr
    scenario = load_scenario(file)
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert sum(topic.partitions for topic in scenario.topics) == 500
    assert (len(scenario.topics), len(group.topics), len(group.members)) == (12, 12, 37)
    assert {member.instance_id for member in group.members} == {
        member.name for member in group.members
    }
    assert group.assignors == ("sticky",)
    assert group.settings == {"session.timeout.ms": "20000"}
    assert scenario.variety is not None
    assert scenario.variety.calm_ms == 60_000
    restarts = [each for each in scenario.happenings if isinstance(each, RestartMember)]
    assert len(restarts) == len(scenario.happenings) == 4 * 37 + 2
    assert sum(not each.graceful for each in restarts) == 2
    assert len(file.read_text().splitlines()) < 300, "short enough to be read"


def test_printed_it_is_what_show_prints(tmp_path: Path) -> None:
    """The file that one writes by hand, and the one that is printed, go the same way."""
    printed = run_here("shape", "--topics", "orders=3,payments=2", "--consumers", "2")
    file = tmp_path / "shape.json"
    file.write_text(printed.stdout)

    assert run_here("show", file, "--json").stdout == printed.stdout
    assert json.loads(printed.stdout)["topics"][0]["name"] == "orders"


def test_a_trace_gives_its_own_shape_back(tmp_path: Path) -> None:
    """Members, topics, and the restarts at their instants, crashes among them."""
    mine, trace, again = tmp_path / "mine.json", tmp_path / "trace", tmp_path / "again.json"
    size = ("--topics", "2", "--partitions", "9", "--consumers", "3")
    rhythm = ("--deploys", "5m", "--for", "10m", "--crashes", "1", "--assignor", "range")
    assert run_here("shape", *size, *rhythm, "--out", mine).returncode == 0
    assert run_here("run", mine, "--out", trace, "--format", "jsonl").returncode == 0
    done = run_here("shape", "--like", trace, "--group", "orders-app", "--out", again)
    assert done.returncode == 0, done.stderr

    planned, seen = load_scenario(mine), load_scenario(again)
    (group,) = seen.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert sorted(member.name for member in group.members) == [f"consumer-{n}" for n in (1, 2, 3)]
    assert {topic.name: topic.partitions for topic in seen.topics} == {"topic-1": 5, "topic-2": 4}
    assert group.assignors == ("range",)
    wanted = [each for each in planned.happenings if isinstance(each, RestartMember)]
    found = [each for each in seen.happenings if isinstance(each, RestartMember)]
    assert [(each.member, each.graceful) for each in found] == [
        (each.member, each.graceful) for each in wanted
    ]
    late_ms = [
        after.at_ms - found[0].at_ms - (before.at_ms - wanted[0].at_ms)
        for before, after in zip(wanted, found, strict=True)
    ]
    assert max(map(abs, late_ms)) < 10_000, "as a drawn world puts them off, and polls notice"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--consumers is missing"),
        (("--consumers", "0", "--topics", "1", "--partitions", "1"), "must be from 1 to 10000"),
        (("--consumers", "2"), "--topics is missing"),
        (("--consumers", "2", "--topics", "3"), "--partitions is missing"),
        (("--consumers", "2", "--topics", "3", "--partitions", "2"), "--partitions 2: must be"),
        (("--consumers", "2", "--topics", "a=1,a=2"), "a is there twice"),
        (("--consumers", "2", "--topics", "a=1", "--for", "soon"), "--for 'soon': wants a number"),
        (("--consumers", "2", "--topics", "a=1", "--for", "3s"), "--for 3s: must be at least 1m"),
        (
            ("--consumers", "2", "--topics", "a=1", "--calm", "1s"),
            "--calm 1s: must be at least 10s",
        ),
        (("--consumers", "2", "--topics", "a=1", "--assignor", "best"), "unknown assignor 'best'"),
        (("--consumers", "2", "--topics", "a=1", "--membership", "x"), "must be one of dynamic"),
        (("--consumers", "2", "--topics", "a=1", "--out", "x.yaml"), "ends in .json"),
        (("--like", "nowhere"), "--group is missing"),
        (("--like", "nowhere", "--group", "g"), "nowhere: no such file"),
        (("--group", "g"), "of which trace or cluster"),
        (("--like", "a", "--bootstrap", "b", "--group", "g"), "exclude each other"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(words: tuple[str, ...], message: str) -> None:
    """The value, the bound and the fix."""
    done = run_here("shape", *words)
    assert done.returncode in {1, 2}
    assert message in " ".join(done.stderr.split())
    assert done.stderr.startswith("error: ")
