"""Settings that clients print at their start: read from logs, and used instead of assumptions."""

from datetime import UTC
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog, parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.replay.client_view import client_views
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.savings import findings_in, weigh
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.trace.batches import Names
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim.trace.printed_settings import printed_settings

INFO = RunInfo(
    trace_id="t", source=Source.BROKER_LOG, cluster_id="c", version="1", profile="ingested"
)
NO_PARTITIONS = Partitions({})


def block(of: str = "Consumer", at: str = "10:00:00,000", **settings: str) -> list[str]:
    """The lines that a client's log4j writes; names have two underscores for a dot."""
    named = sorted((name.replace("__", "."), value) for name, value in settings.items())
    return [
        f"[2024-05-01 {at}] INFO {of}Config values: ",
        *(f"\t{name} = {value}" for name, value in named),
        " (org.apache.kafka.common.config.AbstractConfig)",
    ]


def consumer(client_id: str, session_ms: int, at: str = "08:00:00,000") -> list[str]:
    """What a consumer of the group prints."""
    return block(
        at=at,
        client__id=client_id,
        client__rack="",
        group__id="orders",
        group__instance__id="null",
        heartbeat__interval__ms="2000",
        metrics__recording__level="INFO",
        partition__assignment__strategy="[class org.apache.kafka.clients.RangeAssignor, class B]",
        sasl__jaas__config="[hidden]",
        session__timeout__ms=str(session_ms),
    )


def events_of(lines: list[str], file: str = "client.log") -> list[TraceEvent]:
    """The events of a log."""
    return list(parse_broker_log(lines, source_ref=file, tz=UTC))


def member(client_id: str) -> str:
    """A member id of a client."""
    return f"{client_id}-00000000-0000-0000-0000-{sum(client_id.encode()):012d}"


def failures(*clients: str) -> list[TraceEvent]:
    """A broker's log: these clients join, and fail one after the other, a minute apart."""
    lines = []

    def say(at: str, text: str) -> None:
        lines.append(
            f"[2024-05-01 {at}] INFO [GroupCoordinator 1]: {text} "
            "(kafka.coordinator.group.GroupCoordinator)"
        )

    count = len(clients) + 1
    say("09:00:00,000", "Preparing to rebalance group orders in state PreparingRebalance with old "
        "generation 0 (__consumer_offsets-7) (reason: Adding new member "
        f"{member('stays')} with group instance id None)")  # fmt: skip
    say("09:00:03,000", "Stabilized group orders generation 1 (__consumer_offsets-7) with "
        f"{count} members")  # fmt: skip
    say("09:00:03,010", f"Assignment received from leader {member('stays')} for group orders for "
        f"generation 1. The group has {count} members, 0 of which are static.")  # fmt: skip
    for place, client in enumerate(clients, 1):
        say(f"10:0{place}:00,000", f"Member {member(client)} in group orders has failed, removing "
            "it from the group")  # fmt: skip
        say(f"10:0{place}:00,001", "Preparing to rebalance group orders in state "
            f"PreparingRebalance with old generation {place} (__consumer_offsets-7) (reason: "
            f"removing member {member(client)} on heartbeat expiration)")  # fmt: skip
        say(f"10:0{place}:02,000", f"Stabilized group orders generation {place + 1} "
            f"(__consumer_offsets-7) with {count - place} members")  # fmt: skip
        say(f"10:0{place}:02,010", f"Assignment received from leader {member('stays')} for group "
            f"orders for generation {place + 1}. The group has {count - place} members, 0 of "
            "which are static.")  # fmt: skip
    return events_of(lines, "server.log")


def replayed(events: list[TraceEvent]) -> tuple[list[str], list[str]]:
    """What a replay of the one group assumes, and what was printed."""
    (group,) = replay_log(events, INFO, known=known_groups(events, NO_PARTITIONS)).report.groups
    return group.assumed, group.printed


CARRIERS = {
    "log4j": "{}",
    "compose": "app-1  | {}",
    "cri": "2024-05-01T10:00:00.123456789Z stdout F {}",
}


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_settings_are_read_also_where_each_line_is_an_event_of_its_own(carrier: str) -> None:
    """Null and empty values tell nothing; a later line with a level is of the program again."""
    lines = [carrier.format(line) for line in consumer("orders-1", 10_000)]
    after = carrier.format("[2024-05-01 10:00:01,000] INFO batch.size = 7 (com.example.App)")
    summary = IngestSummary()
    log = BrokerLog("client.log", UTC, summary=summary)
    (event,) = log.read([*lines, after])
    assert (event.event, event.source, event.seq) == (Event.LIFECYCLE, Source.CONSUMER_LOG, 1)
    assert (event.group_id, event.client_id, event.group_instance_id) == (
        *("orders", "orders-1"),
        None,
    )
    assert event.attrs["session.timeout.ms"] == "10000"
    assert event.attrs["partition.assignment.strategy"].endswith("RangeAssignor, class B]")
    assert "sasl.jaas.config" not in event.attrs
    assert (summary.parsed, summary.continuations, summary.other) == (1, len(lines) - 1, 1)


def test_block_in_one_line_of_json_is_read_whole() -> None:
    """Loggers of JSON keep the line ends of a message."""
    text = "\\n".join(line.replace("\t", "\\t") for line in consumer("orders-1", 45_000)[1:-1])
    line = (
        '{"@timestamp":"2024-05-01T10:00:00Z","message":"ConsumerConfig values: \\n' + text + '"}'
    )
    (event,) = events_of([line])
    assert (event.client_id, event.attrs["session.timeout.ms"]) == ("orders-1", "45000")
    assert event.attrs["heartbeat.interval.ms"] == "2000"


def test_lines_of_two_blocks_among_each_other_tell_nothing() -> None:
    """A collector mixed two containers: no value may count for the wrong client."""
    pairs = zip(consumer("orders-1", 10_000), consumer("orders-2", 30_000), strict=True)
    assert events_of([line for pair in pairs for line in pair]) == []


def test_workers_brokers_and_streams_print_blocks_of_their_own() -> None:
    """Consumers of a worker's own topics have its group.id: they tell nothing of its group."""
    events = events_of(
        [
            *block("Distributed", group__id="connect", session__timeout__ms="10000"),
            *block(client__id="connect-configs", group__id="connect", session__timeout__ms="45000"),
            *block("Streams", application__id="pay", num__stream__threads="4"),
            *block("Kafka", node__id="3", group__initial__rebalance__delay__ms="500"),
            *block("Producer", client__id="p"),
            *block(client__id="restore", group__id="null"),
        ]
    )
    told = printed_settings(events)
    assert list(told) == ["connect", "pay", None]
    assert told["connect"].of("session.timeout.ms").value == "10000"
    assert told["pay"].of("num.stream.threads").value == "4"
    delay = told[None].of("group.initial.rebalance.delay.ms")
    assert delay.words == (
        "group.initial.rebalance.delay.ms 500 (printed by broker 3 at its start)"
    )
    assert client_views(events, Source.CONNECT_LOG) == []


def test_replay_goes_by_printed_settings_instead_of_assumptions() -> None:
    """The client log takes the place of the guess, and is named."""
    events = failures("orders-1")
    assumed, printed = replayed(events)
    assert any("session.timeout.ms=45000, the longest usual" in text for text in assumed)
    assert printed == []
    assumed, printed = replayed([*events, *events_of(consumer("orders-1", 10_000))])
    assert not any("session.timeout.ms" in text for text in assumed)
    assert printed == [
        "session.timeout.ms 10000 (printed by orders-1 at its start)",
        "heartbeat.interval.ms 2000 (printed by orders-1 at its start)",
    ]


def test_clients_that_differ_have_each_its_own_and_others_are_named() -> None:
    """A member without a log is assumed to have what it had before."""
    clients = [*consumer("orders-1", 10_000), *consumer("orders-2", 30_000)]
    events = [*failures("orders-1", "orders-2", "elsewhere"), *events_of(clients)]
    assumed, printed = replayed(events)
    both = "clients printed 10000 (orders-1), 30000 (orders-2)"
    assert printed[:3] == [
        f"session.timeout.ms 10000 (printed by orders-1 at its start); {both}",
        f"session.timeout.ms 30000 (printed by orders-2 at its start); {both}",
        f"session.timeout.ms of {member('elsewhere')} is not known: {both}",
    ]
    assert any("session.timeout.ms=45000, the longest usual" in text for text in assumed)


def test_failure_has_the_setting_of_the_last_start_before_it() -> None:
    """A deploy in the afternoon set it anew; so does a file for each start tell."""
    early = consumer("orders-1", 10_000, "08:59:00,000")
    late = consumer("orders-1", 45_000, "15:00:00,000")
    last = "session.timeout.ms 10000 (printed by orders-1 at its start)"
    for starts in (events_of([*early, *late]), [*events_of(late, "b.log"), *events_of(early)]):
        assert replayed([*failures("orders-1"), *starts])[1][0] == last
    only_late = events_of(late)
    assert "45000" in replayed([*failures("orders-1"), *only_late])[1][0]


def test_setting_of_another_client_is_an_assumption() -> None:
    """Neither a part of a client's name nor being the only one makes its setting known."""
    two = [*consumer("orders", 10_000), *consumer("x", 30_000)]
    _, printed = replayed([*failures("orders-1"), *events_of(two)])
    assert printed[0].startswith(f"session.timeout.ms of {member('orders-1')} is not known: ")
    events = [*failures("billing-7"), *events_of(consumer("orders-1", 10_000))]
    assumed, printed = replayed(events)
    guess = (
        f"session.timeout.ms of {member('billing-7')} is assumed: another client of the group "
        "printed 10000 (orders-1)"
    )
    assert guess in assumed
    assert not any("session.timeout.ms" in text for text in printed)
    lines = group_lines(coordinator_events(events, Source.BROKER_LOG))["orders"]
    assert explain_group("orders", lines, []).rebalances[1].because.endswith(f"; {guess}")


def test_settings_that_the_consumer_protocol_does_not_use_tell_nothing() -> None:
    """A consumer prints its session timeout also where the broker's counts."""
    settings = {"client__id": "a", "group__id": "g", "session__timeout__ms": "45000"}
    told = printed_settings(events_of(block(**settings, group__protocol="consumer")))["g"]
    assert list(told.starts) == ["group.protocol"]
    clients = [text for n in range(5) for text in block(**settings | {"client__id": f"a-{n}"})]
    clients += block(**settings | {"session__timeout__ms": "6000"})
    told = printed_settings(events_of(clients))["g"]
    assert told.differing("session.timeout.ms") == "45000 (a-0, a-1, a-2 and 2 more), 6000 (a)"


def test_explain_and_findings_name_the_settings_behind_them() -> None:
    """Whoever reads an advice sees what is set now."""
    events = [*failures("orders-1"), *events_of(consumer("orders-1", 10_000))]
    lines = group_lines(coordinator_events(events, Source.BROKER_LOG))["orders"]
    told = explain_group("orders", lines, []).rebalances[1].because
    assert told.endswith("; session.timeout.ms 10000 (printed by orders-1 at its start)")
    found = findings_in(events, Source.BROKER_LOG)
    assert {each.kind for each in found} >= {"slow-joiners"}
    weighed = weigh(found, events, INFO, NO_PARTITIONS)
    (slow,) = [each for each in weighed if each.finding.kind == "slow-joiners"]
    assert slow.printed == ("heartbeat.interval.ms 2000 (printed by orders-1 at its start)",)


@given(st.lists(st.sampled_from(range(7)), max_size=40), st.integers(1, 400))
def test_every_line_is_counted_once_however_blocks_lie_among_them(
    places: list[int], size: int
) -> None:
    """Read in blocks of any size, or line by line: the same events and the same counts."""
    pieces = [
        *consumer("orders-1", 10_000)[::4],
        "[2024-05-01 10:00:02,000] INFO [Consumer clientId=orders-1, groupId=orders] Resetting",
        "[2024-05-01 10:00:03,000] INFO size = 3 (com.example.App)",
        "\tkey.of.nobody = 1",
    ]
    lines = [f"{pieces[place % len(pieces)]}\n" for place in places]
    plain, blocks = IngestSummary(), IngestSummary()
    expected = list(BrokerLog("a.log", UTC, summary=plain).read(StringIO("".join(lines))))
    reader = BlockReader(BrokerLog("a.log", UTC, summary=blocks), Names())
    text = "".join(lines)
    cuts, start = [], 0
    while start < len(text):
        end = text.find("\n", min(start + size, len(text) - 1)) + 1 or len(text)
        cuts.append(text[start:end].encode())
        start = end
    got = [event for batch in reader.read(cuts) for event in batch.events()]
    assert got == expected
    for summary in (plain, blocks):
        told = summary.parsed + summary.known + summary.unparsed + summary.continuations
        assert (summary.lines, told + summary.other) == (len(lines), len(lines))
        assert summary.other >= 0
