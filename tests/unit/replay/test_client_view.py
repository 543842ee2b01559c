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
from coordinator_sim.replay.findings import Finding
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
    lines = [
        line.replace("clientId=a", f"clientId={client}")
        for line in lines_of(
            (0, LATE), (0, f"Member m sending LeaveGroup request to coordinator b due to {LATE}")
        )
    ]
    events = parse_broker_log(lines, source_ref="app.log", tz=UTC)
    (found,) = client_findings(client_views(events, Source.BROKER_LOG))
    assert (found.kind, found.cost_s) == ("client-poll-timeout", 1.0)
    assert found.change.startswith(setting)


LOST = (
    "Giving away all assigned partitions as lost since generation/memberID has been reset,"
    "indicating that consumer is in old state or no longer part of the group"
)
LATE = "consumer poll timeout has expired. This means the time between two calls to poll()"


def found_in(lines: list[str]) -> list[Finding]:
    """The findings of one log of clients."""
    events = parse_broker_log(lines, source_ref="app.log", tz=UTC)
    return client_findings(client_views(events, Source.BROKER_LOG))


def test_each_eviction_counts_once_and_its_times_are_the_findings() -> None:
    """Four evictions, each told by two lines and ended by a join, five minutes apart."""
    unknown = "Attempt to heartbeat failed since member id is not valid."
    lines = [
        line
        for at in range(0, 2400, 600)
        for line in lines_of((at, JOINED.format(at)), (at + 300, unknown), (at + 301, LOST))
    ]
    (found,) = found_in(lines)
    assert (found.kind, found.cost_s) == ("client-thrown-out", 4.0)
    assert ((found.last_us or 0) - (found.first_us or 0)) // 1_000_000 == 1800
    (view,) = client_views(parse_broker_log(lines, source_ref="a", tz=UTC), Source.BROKER_LOG)
    assert ((found.first_us or 0) // 1000 - view.first_ms) // 1000 == 300


def test_a_client_that_left_was_not_thrown_out() -> None:
    """What it loses is what it gave up: in Java's words, and in librdkafka's."""
    java = lines_of((0, JOINED.format(3)), (300, LATE), (360, LOST), (361, JOINED.format(5)))
    lost = 'Group "g": current assignment of 1 partition(s) lost: max.poll.interval.ms exceeded'
    native = [RDKAFKA.format(1715000000, *said) for said in (("MAXPOLL", TOO_LATE), ("LOST", lost))]
    for lines in (java, native):
        assert [each.kind for each in found_in(lines)] == ["client-poll-timeout"]


@pytest.mark.parametrize(
    ("joining", "late", "group"),
    [
        ("", "", "payments"),
        ("", "#2", NO_GROUP),
        ("tills-1  | ", "bills-1  | ", NO_GROUP),
        ("[pod/tills-1/app] ", "[pod/bills-1/app] ", NO_GROUP),
    ],
)
def test_a_departure_is_of_the_group_of_its_own_instance(
    joining: str, late: str, group: str
) -> None:
    """Processes and containers number their instances alike."""
    join = 'Joining group "payments" with 1 subscribed topic(s) and member id "rdkafka-1"'
    left = RDKAFKA.format(1715000000, "MAXPOLL", TOO_LATE)
    left = left.replace("consumer-1", "consumer-2") if late == "#2" else late + left
    (found,) = found_in([left, joining + RDKAFKA.format(1715000100, "JOIN", join)])
    assert (found.group_id, found.cost_s) == (group, 1.0)


def test_a_static_member_that_does_not_poll_stays() -> None:
    """It sends no LeaveGroup; only its heartbeats stop."""
    named = "[Consumer instanceId=i-1, clientId"
    lines = [line.replace("[Consumer clientId", named) for line in lines_of((0, LATE))]
    (found,) = found_in(lines)
    assert (found.cost_s, found.cost_unit) == (1.0, "poll timeouts")
    assert "left" not in found.what
    assert "no heartbeat until it polls again" in found.what


def test_a_worker_gets_the_advice_of_workers() -> None:
    """Also one that has a client id of the user's own."""
    (line,) = lines_of((0, LATE.replace("consumer", "worker")))
    (found,) = found_in([line.replace("[Consumer", "[Worker")])
    assert "rebalance.timeout.ms" in found.change
    assert "max.poll" not in found.change


def test_a_departure_that_the_coordinator_may_tell_of_is_no_second_one(tmp_path: Path) -> None:
    """Nobody is told to ingest the coordinator's log when it is there."""
    (tmp_path / "server.log").write_text(
        "[2024-05-06 12:55:03,000] INFO [GroupCoordinator 0]: Stabilized group pay generation 6 "
        "(__consumer_offsets-3) with 2 members (kafka.coordinator.group.GroupCoordinator)\n",
        encoding="utf-8",
    )
    left = RDKAFKA.format(1715000000, "MAXPOLL", TOO_LATE)
    (tmp_path / "app.log").write_text(left + "\n", encoding="utf-8")
    trace = str(tmp_path / "trace")
    logs = [str(tmp_path / name) for name in ("server.log", "app.log")]
    for arguments in (["ingest", *logs, "--out", trace], ["findings", trace]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    assert "client-poll-timeout" not in result.output
    assert "ingest it" not in result.output


def test_a_departure_of_a_python_client_and_its_end_are_one() -> None:
    """Two of them, ten minutes apart; words of others about a group are none."""
    log = "2024-05-06 12:{},250 - kafka.coordinator - INFO - {}"
    said = ("Leaving consumer group (tills).", "LeaveGroup request succeeded")
    lines = [log.format(at, text) for at in ("00:01", "10:01") for text in said]
    events = list(parse_broker_log(lines, source_ref="app.log", tz=UTC))
    (view,) = client_views(events, Source.BROKER_LOG)
    assert view.reasons == {"left; its log has no reason": 2}
    other = ["2024-05-06 12:00:00,000 - INFO - Heartbeat of pump 7 stopped, leaving group standby"]
    assert list(parse_broker_log(other, source_ref="app.log", tz=UTC)) == []


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
