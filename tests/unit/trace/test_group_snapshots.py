"""Output of `kafka-consumer-groups --describe`: snapshots, between which no time is invented."""

import json
from datetime import UTC
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim.cli.explain import snapshot_lines
from coordinator_sim.cli.main import app
from coordinator_sim.logtext.reading.group_descriptions import read_descriptions
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.group_snapshots import moved, snapshots_in

OFFSETS = """
GROUP   TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST        CLIENT-ID
orders  pay    0          5               9               4    {first}      /10.0.0.1   till 1
orders  pay    1          -               9               -    {second}     /10.0.0.2   till-2
"""
MEMBERS_2_8 = """
GROUP   CONSUMER-ID  GROUP-INSTANCE-ID  HOST       CLIENT-ID  #PARTITIONS  ASSIGNMENT
orders  a-1          till-1             /10.0.0.1  a          2            pay(0,1), refund(7)
orders  b-1          -                  /10.0.0.2  b          0            -
"""
MEMBERS_4 = """
GROUP  CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS  CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH
orders  a-1  /10.0.0.1  a  2  7  pay:0,1;refund:7  8
"""
STATE = """
GROUP  COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE  #MEMBERS
orders  broker-1:9092  (1)  range  Stable  2
"""
STATE_EMPTY = """
GROUP  COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE  GROUP-EPOCH  TARGET-ASSIGNMENT-EPOCH  #MEMBERS
orders  broker-1:9092  (1)    Empty  7  7  0
"""
DATES = {
    "date": "Wed May  1 10:00:00 UTC 2024",
    "date, en_US": "Wed 01 May 2024 10:00:00 AM UTC",
    "date -u -Is": "2024-05-01T10:00:00+00:00",
    "date, an Indian offset": "Wed May  1 15:30:00 +0530 2024",
    "date, a zone without a name": "Wed May  1 15:00:00 +05 2024",
    "watch": "Every 30.0s: kafka-consumer-groups.sh --describe   ops-1: Wed May  1 10:00:00 2024",
}
TEN_US = 1_714_557_600_000_000


def read(text: str) -> tuple[list[TraceEvent], IngestSummary]:
    """The events of a text, and its counts."""
    summary = IngestSummary()
    lines = text.splitlines(keepends=True)
    return list(read_descriptions(lines, InstantReader(UTC), "d.txt", summary)), summary


def offsets(first: str, second: str) -> str:
    """The table of offsets with these owners."""
    return OFFSETS.format(first=first, second=second)


@pytest.mark.parametrize("date", DATES.values(), ids=DATES)
def test_table_has_the_time_above_it(date: str) -> None:
    """Every line is counted, also a message among the tables."""
    events, summary = read(f"{date}\n{offsets('a-1', '-')}\nConsumer group 'x' has no members.\n")
    assert [(each.ts_us, each.ts_err_us) for each in events] == [(TEN_US, 1_000_000)] * 2
    assert [each.client_id for each in events] == ["till 1", "till-2"]
    assert [each.offsets[0].offset for each in events] == [5, -1]
    assert [each.member_id for each in events] == ["a-1", None]
    assert (summary.parsed, summary.known, summary.other) == (2, 2, 3)


@pytest.mark.parametrize("table", [MEMBERS_2_8, MEMBERS_4])
def test_members_of_every_release_tell_owners(table: str) -> None:
    """Names of columns and the form of an assignment differ by release."""
    (snapshot,) = snapshots_in(read(DATES["date"] + table)[0])["orders"]
    assert snapshot.owners == dict.fromkeys(("pay-0", "pay-1", "refund-7"), "a-1")


def test_state_tells_members_strategy_and_epoch() -> None:
    """The tool prints no strategy of an empty group."""
    (stable,) = snapshots_in(read(DATES["date"] + STATE)[0])["orders"]
    assert (stable.members, stable.strategy, stable.epoch) == (2, "range", None)
    (empty,) = snapshots_in(read(DATES["date"] + STATE_EMPTY)[0])["orders"]
    assert (empty.members, empty.strategy, empty.epoch) == (0, None, 7)


def test_members_without_partitions_and_ids_with_spaces_count() -> None:
    """A third member waits for work; client ids are of free text."""
    idle = "orders  -  -  -  -  -  c-3-ccc  /10.0.0.1  c-3\n"
    (snapshot,) = snapshots_in(read(DATES["date"] + offsets("my a-1", "b-1") + idle)[0])["orders"]
    assert (snapshot.members, snapshot.owners) == (3, {"pay-0": "my a-1", "pay-1": "b-1"})
    table = """
GROUP  CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS  ASSIGNMENT
orders my app-b /10.0.0.1 my app 2 1 pay(0), refund(7)
"""
    (row,) = read(DATES["date"] + table)[0]
    assert (row.member_id, row.client_host, row.client_id) == ("my app-b", "/10.0.0.1", "my app 2")
    assert snapshots_in([row])["orders"][0].owners == dict.fromkeys(
        ("pay-0", "refund-7"), "my app-b"
    )


def test_partitions_in_the_middle_of_a_rebalance_go_to_no_other_owner() -> None:
    """Compared is the last owner that is known."""
    owners = [("a-1", "b-1"), ("-", "-"), ("-", "-"), ("a-1", "a-1")]
    text = "".join(
        f"{DATES['date'].replace('10:00', f'10:0{minute}')}\n{offsets(*each)}"
        for minute, each in enumerate(owners)
    )
    told = snapshot_lines(snapshots_in(read(text)[0])["orders"])
    shown = [line.replace("2024-05-01 ", "") for line in told[1:]]
    assert shown[:2] == [
        "    10:00:00.000: 2 members, lag 4",
        "    10:01:00.000: 0 members, lag 4, 2 partitions had no owner",
    ]
    assert shown[2].startswith("    between 10:02:00.000 and 10:03:00.000 1 partition got another")
    assert shown[3:] == ["    10:03:00.000: 1 member, lag 4"]


def test_change_between_two_snapshots_is_given_no_time_of_its_own(tmp_path: Path) -> None:
    """Explain says between which times; no rebalance is made of it."""
    file, trace = tmp_path / "groups.txt", tmp_path / "trace"
    later = DATES["date"].replace("10:00:00", "10:00:30")
    text = f"{DATES['date']}\n{offsets('a-1', 'b-1')}{later}\n{offsets('a-1', 'a-1')}"
    file.write_text(text, encoding="utf-8")
    before, after = snapshots_in(read(text)[0])["orders"]
    assert (moved(before, after), moved(before, before)) == (1, 0)
    done = CliRunner().invoke(app, ["ingest", str(file), "--out", str(trace)])
    assert done.exit_code == 0, done.output
    told = CliRunner().invoke(app, ["explain", str(trace), "orders"]).stdout
    assert "between 2024-05-01 10:00:00.000 and 2024-05-01 10:00:30.000 1 partition got" in told
    assert "2 members, lag 4" in told
    replayed = CliRunner().invoke(app, ["replay", str(trace)])
    assert "snapshots of kafka-consumer-groups tell no rebalances" in str(replayed.exception)


def test_snapshots_are_in_the_document_of_a_group_with_a_coordinator(tmp_path: Path) -> None:
    """Beside its rebalances."""
    (tmp_path / "groups.txt").write_text(f"{DATES['date']}\n{offsets('a-1', 'b-1')}")
    (tmp_path / "server.log").write_text(
        "[2024-05-01 10:00:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group orders "
        "in state PreparingRebalance with old generation 1 (__consumer_offsets-7) (reason: "
        "Updating metadata for member a-1) (kafka.coordinator.group.GroupCoordinator)\n"
    )
    trace = str(tmp_path / "trace")
    done = CliRunner().invoke(app, ["ingest", str(tmp_path), "--out", trace])
    assert done.exit_code == 0, done.output
    told = json.loads(CliRunner().invoke(app, ["explain", trace, "orders", "--json"]).stdout)
    assert len(told["rebalances"]) == 1
    assert [each["lag"] for each in told["snapshots"]] == [4]


def test_zone_of_several_countries_is_refused_as_in_logs(tmp_path: Path) -> None:
    """A zone that has the name itself makes it clear."""
    file = tmp_path / "groups.txt"
    date = DATES["date"].replace("UTC", "IST")
    file.write_text(f"{date}\n{offsets('a-1', 'b-1')}", encoding="utf-8")
    done = CliRunner().invoke(app, ["ingest", str(file)])
    assert done.exit_code
    assert "are in IST, which is the time of Asia/Kolkata" in " ".join(done.output.split())
    trace = str(tmp_path / "trace")
    asked = ["ingest", str(file), "--tz", "Asia/Kolkata", "--out", trace]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert "04:30:00.000: 2 members" in CliRunner().invoke(app, ["explain", trace, "orders"]).stdout


def test_output_without_any_time_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """The time of the file is none of the output."""
    file = tmp_path / "groups.txt"
    file.write_text(offsets("a-1", "b-1"), encoding="utf-8")
    done = CliRunner().invoke(app, ["ingest", str(file)])
    assert done.exit_code
    assert "no time above them: write one there, as in date;" in " ".join(done.output.split())
