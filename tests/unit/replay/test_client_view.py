"""What the logs of clients tell without their coordinator's."""

from datetime import UTC
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from coordinator_sim.cli.explain import explain
from coordinator_sim.cli.findings import findings
from coordinator_sim.cli.ingest import ingest
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.client_view import NO_GROUP, client_findings, client_views
from coordinator_sim.trace.events import Source, TraceEvent
from coordinator_sim.trace.window import Window

JOINED = (
    "Successfully joined group with generation Generation{{generationId={}, memberId='a-1', "
    "protocol='range'}}"
)
app = typer.Typer()
for command in (explain, findings, ingest):
    app.command()(command)


def lines_of(*said: tuple[int, str]) -> list[str]:
    """A consumer's log: seconds from 10:00 on, and messages."""
    client = "INFO [Consumer clientId=a, groupId=g]"
    return [f"[2026-03-02 10:{at // 60:02}:{at % 60:02},000] {client} {text}" for at, text in said]


def events_of(*said: tuple[int, str]) -> list[TraceEvent]:
    """The events of a consumer's log."""
    return list(parse_broker_log(lines_of(*said), source_ref="app.log", tz=UTC))


def loop(every_s: int, count: int) -> list[tuple[int, str]]:
    """A client that joins, and whose SyncGroup is refused, again and again."""
    refused = "SyncGroup failed: The group began another rebalance. Need to re-join the group."
    return [
        said
        for number in range(count)
        for said in (
            (every_s * number, "(Re-)joining group"),
            (every_s * number, JOINED.format(9000 + number)),
            (every_s * number + 1, refused),
        )
    ]


@pytest.mark.parametrize(
    ("every_s", "count", "kinds"),
    [(2, 6, ["client-joins-again"]), (2, 4, []), (300, 6, [])],
)
def test_a_client_that_joins_all_the_time_is_found(
    every_s: int, count: int, kinds: list[str]
) -> None:
    """Few joins, or joins with minutes between them, are no loop."""
    (view,) = client_views(events_of(*loop(every_s, count)), Source.BROKER_LOG)
    assert (len(view.joins_ms), view.every_ms) == (count, every_s * 1000)
    assert view.generations == (9000, 8999 + count)
    assert view.refused == {"SyncGroup REBALANCE_IN_PROGRESS": count}
    assert [each.kind for each in client_findings([view])] == kinds


def test_a_member_that_was_thrown_out_is_found() -> None:
    """Once is enough, and once it is, whatever further lines say of it."""
    views = client_views(
        events_of(
            (0, JOINED.format(3)),
            (30, "Attempt to heartbeat failed due to UNKNOWN_MEMBER_ID, resetting generation"),
            (31, "Lost previously assigned partitions orders-0, orders-1"),
        ),
        Source.BROKER_LOG,
    )
    (found,) = client_findings(views)
    assert (found.kind, found.cost_s, found.source_refs[0]) == (
        "client-thrown-out",
        1.0,
        "app.log:2",
    )


def test_a_member_that_does_not_join_for_long_is_found() -> None:
    """Each heartbeat tells it of the rebalance; a join between two of them ends the count."""
    told = "Attempt to heartbeat failed since group is rebalancing"
    busy = events_of(*((3 * number, told) for number in range(4)))
    (found,) = client_findings(client_views(busy, Source.BROKER_LOG))
    assert (found.kind, found.cost_s) == ("client-busy-in-rebalance", 4.0)
    quick = events_of((0, told), (1, "(Re-)joining group"), (3, told), (4, "(Re-)joining group"))
    assert client_findings(client_views(quick, Source.BROKER_LOG)) == []


RDKAFKA = "%4|{}.123|{}|rdkafka#consumer-1| [thrd:main]: {}"
TOO_LATE = (
    "Application maximum poll interval (9000ms) exceeded by 4ms (adjust max.poll.interval.ms for "
    "long-running message processing): leaving group"
)


def test_members_that_did_not_poll_in_time_are_found_without_a_group() -> None:
    """Librdkafka without debug lines names none: three departures of one client."""
    lines = [RDKAFKA.format(1715000000 + 9 * number, "MAXPOLL", TOO_LATE) for number in range(3)]
    events = parse_broker_log(lines, source_ref="app.log", tz=UTC)
    (found,) = client_findings(client_views(events, Source.BROKER_LOG))
    assert (found.group_id, found.kind, found.cost_s) == (NO_GROUP, "client-poll-timeout", 3.0)
    assert found.first_us == 1_715_000_000_123_000


def test_a_member_that_loses_its_partitions_twice_was_thrown_out_twice() -> None:
    """Librdkafka logs nothing of the join between them."""
    lost = (
        "Consumer group session timed out (in join-state steady) after 45001 ms without a "
        "successful response from the group coordinator (broker 1, last error was Success): "
        "revoking assignment and rejoining group"
    )
    lines = [RDKAFKA.format(1715000000 + 90 * number, "SESSTMOUT", lost) for number in range(2)]
    events = parse_broker_log(lines, source_ref="app.log", tz=UTC)
    (found,) = client_findings(client_views(events, Source.BROKER_LOG))
    assert (found.kind, found.cost_s) == ("client-thrown-out", 2.0)


def test_a_departure_that_two_lines_tell_is_one_of_the_group_that_one_of_them_names() -> None:
    """Kafka-python without its loggers: the reason first, then the group."""
    lines = [
        "2024-05-06 12:00:01,250 - WARNING - Heartbeat poll expired, leaving group",
        "2024-05-06 12:00:01,251 - INFO - Leaving consumer group (tills)",
    ]
    events = list(parse_broker_log(lines, source_ref="app.log", tz=UTC))
    (view,) = client_views(events, Source.BROKER_LOG)
    assert (view.group_id, view.reasons) == ("tills", {'left: "poll expired"': 1})
    assert [each.cost_s for each in client_findings([view])] == [1.0]
    (view,) = client_views(events[1:], Source.BROKER_LOG)
    assert view.reasons == {"left; its log has no reason": 1}


@pytest.mark.parametrize(
    ("client", "setting"),
    [("a", "Raise max.poll"), ("connector-consumer-sink-0", "Raise consumer.max.poll")],
)
def test_a_warning_and_the_departure_after_it_are_one(client: str, setting: str) -> None:
    """What to change is named as clients of that kind name it."""
    said = "consumer poll timeout has expired. This means the time between two calls to poll()"
    lines = [
        line.replace("clientId=a", f"clientId={client}")
        for line in lines_of(
            (0, said), (0, f"Member m sending LeaveGroup request to coordinator b due to {said}")
        )
    ]
    events = parse_broker_log(lines, source_ref="app.log", tz=UTC)
    (found,) = client_findings(client_views(events, Source.BROKER_LOG))
    assert (found.kind, found.cost_s) == ("client-poll-timeout", 1.0)
    assert found.change.startswith(setting)


def test_members_in_the_leaders_plan_are_no_clients_of_the_log() -> None:
    """The leader names itself there, too, by its member id."""
    plan = "{a-1=Assignment(partitions=[t-0]), b-1=Assignment(partitions=[t-1])}"
    events = events_of(
        (0, JOINED.format(2)), (0, f"Finished assignment for group at generation 2: {plan}")
    )
    assert [view.client for view in client_views(events, Source.BROKER_LOG)] == ["a"]


def test_processes_that_start_are_no_loop() -> None:
    """A new member asks twice; pods of one deployment have one client id, each in its own log."""
    started = [
        (0, "Subscribed to topic(s): orders"),
        (1, "(Re-)joining group"),
        (1, "Request joining group due to: need to re-join with the given member-id: a-1"),
        (1, "(Re-)joining group"),
        (1, JOINED.format(1)),
    ]
    events = [
        event
        for pod in range(3)
        for event in parse_broker_log(
            lines_of(*((20 * pod + at, text) for at, text in started)),
            source_ref=f"pod{pod}.log",
            tz=UTC,
        )
    ]
    views = client_views(events, Source.BROKER_LOG)
    assert [len(view.joins_ms) for view in views] == [1, 1, 1]
    assert client_findings(views) == []


def test_processes_that_one_file_mixes_give_no_finding() -> None:
    """Two members of one generation have the client id: their lines cannot be told apart."""
    other = JOINED.replace("a-1", "a-2")
    mixed = [said for at, text in loop(2, 6) for said in ((at, text), (at, text))]
    joined = [(0, JOINED.format(8999)), (0, other.format(8999))]
    (view,) = client_views(events_of(*joined, *mixed), Source.BROKER_LOG)
    assert (view.is_shared, client_findings([view])) == (True, [])


def test_a_window_of_time_counts_its_own_lines() -> None:
    """Six joins in ten seconds: four of them in the last six."""
    events = events_of(*loop(2, 6))
    late = Window(from_us=events[0].ts_us + 4_000_000)
    (view,) = client_views(events, Source.BROKER_LOG, late)
    assert (len(view.joins_ms), client_findings([view])) == (4, [])
    assert client_views(events, Source.BROKER_LOG, Window(until_us=0)) == []


def test_clients_of_a_group_that_its_coordinator_tells_of_are_no_view() -> None:
    """Their reasons are with the rebalances then."""
    broker = (
        "[2026-03-02 10:00:00,000] INFO [GroupCoordinator 1]: Stabilized group g generation 3 "
        "(__consumer_offsets-7) with 1 members (kafka.coordinator.group.GroupCoordinator)"
    )
    told = list(parse_broker_log([broker], source_ref="server.log", tz=UTC))
    assert client_views([*told, *events_of(*loop(2, 6))], Source.BROKER_LOG) == []


def test_commands_tell_what_clients_tell(tmp_path: Path) -> None:
    """Never that there is nothing to find, or that the trace has no group."""
    log, trace = tmp_path / "app.log", tmp_path / "trace"
    log.write_text("\n".join(lines_of(*loop(2, 6))) + "\n", encoding="utf-8")

    def output(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    output("ingest", str(log), "--out", str(trace))
    assert "Told by clients alone, without their coordinator: g" in output("explain", str(trace))
    story = output("explain", str(trace), "g")
    assert "a: joined 6 times, once every 2.000 s, from 2026-03-02 10:00:00.000" in story
    assert "    refused 6 times: SyncGroup REBALANCE_IN_PROGRESS" in story
    assert "1. g: client-joins-again, 6 joins (80 % sure)" in output("findings", str(trace))

    log.write_text("\n".join(lines_of(*loop(2, 2))) + "\n", encoding="utf-8")
    output("ingest", str(log), "--out", str(trace))
    assert "Nothing to find in the logs of clients alone." in output("findings", str(trace))
