"""Restarts in a loop, stream threads that die, and state that is restored, from clients' logs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.costs import CAME
from coordinator_sim.replay.findings import FLAPPING, Finding
from coordinator_sim.replay.process_findings import RESTART_LOOP, with_process_findings
from coordinator_sim.replay.savings import findings_in
from coordinator_sim.trace.client_reasons import CAUSE, with_client_reasons
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent
from coordinator_sim.trace.window import Window
from tests.unit.replay.test_findings import cost

BEGIN = datetime(2024, 5, 1, 10, tzinfo=UTC)
THREAD = "pay-7f0c1b2a-1111-2222-3333-444455556666-StreamThread-1"


def line(at_s: float, text: str) -> str:
    """A line of log4j, so many seconds after ten o'clock."""
    at = (BEGIN + timedelta(seconds=at_s)).strftime("%Y-%m-%d %H:%M:%S,000")
    return f"[{at}] INFO {text} (org.apache.kafka.Some)"


def start(at_s: float, client: str, member: int) -> list[str]:
    """A consumer that prints its settings and joins as another member."""
    who = f"[Consumer clientId={client}, groupId=orders]"
    return [
        line(at_s, "ConsumerConfig values: "),
        f"\tclient.id = {client}",
        "\tgroup.id = orders",
        line(
            at_s + 2,
            f"{who} Successfully joined group with generation "
            f"Generation{{generationId={member}, memberId='{client}-{member}', protocol='range'}}",
        ),
    ]


def leaving(at_s: float, client: str, member: int) -> str:
    """The close of a consumer in good order."""
    return line(
        at_s,
        f"[Consumer clientId={client}, groupId=orders] Member {client}-{member} sending "
        "LeaveGroup request to coordinator b1:9092 (id: 1 rack: null) due to the consumer is "
        "being closed",
    )


def events_of(lines: Sequence[str]) -> list[TraceEvent]:
    """The events of a client's log."""
    return list(parse_broker_log(lines, source_ref="app.log", tz=UTC))


def loops(lines: Sequence[str], found: Sequence[Finding] = ()) -> list[Finding]:
    """What is found beside `found`."""
    return with_process_findings(found, events_of(lines), {})


DURING = "Encountered the following exception during processing"
BACK_OFF_S = (0, 20, 50, 110, 230)


def test_restarts_at_growing_intervals_are_a_loop() -> None:
    """The orchestrator's waits double; the finding takes the place of the flapping member."""
    lines = [text for number, at_s in enumerate(BACK_OFF_S) for text in start(at_s, "till", number)]
    (loop,) = loops(lines, [flapping("till")])
    assert (loop.kind, loop.cost_s, loop.cost_unit) == (RESTART_LOOP, 4.0, "joins")
    assert loop.what == (
        "till was restarted 4 times, 20.0 s to 120.0 s after the start before, later each time, "
        "as in CrashLoopBackOff."
    )
    assert "OOMKilled" in loop.change
    assert "session.timeout.ms longer than a restart" in loop.change


def flapping(client: str) -> Finding:
    """A client that went and came back."""
    return Finding(
        group_id="orders",
        kind=FLAPPING,
        client=client,
        rebalances=6,
        cost_s=1.0,
        what=f"{client} went and came back again and again: 6 rebalances, 1.0 s of rebalancing.",
        change="",
        confidence=1.0,
    )


def test_loop_takes_the_place_of_its_own_client_alone() -> None:
    """Client ids may have spaces."""
    lines = [
        text for place, at_s in enumerate(BACK_OFF_S) for text in start(at_s, "my till", place)
    ]
    kept, loop = loops(lines, [flapping("my till"), flapping("my shop")])
    assert (kept.client, loop.client, loop.kind) == ("my shop", "my till", RESTART_LOOP)


def test_loop_costs_the_rebalances_of_its_own_time_once() -> None:
    """Neither those of other days, nor outside the window, nor for each of two files."""
    lines = [text for place, at_s in enumerate(BACK_OFF_S) for text in start(at_s, "till", place)]
    one = events_of(lines)
    begin_ms = round(BEGIN.timestamp() * 1000)
    times_s = (-86_400, 1, 60, 240, 86_400)
    costs = [
        cost(number, client="till", restart=CAME, start_ms=begin_ms + at_s * 1000)
        for number, at_s in enumerate(times_s)
    ]
    (loop,) = with_process_findings([], one, {"orders": costs})
    assert (loop.rebalances, loop.cost_s) == (3, 3.0)
    ends = Window(until_us=(begin_ms + 235_000) * 1000)
    (loop,) = with_process_findings([], one, {"orders": costs}, ends)
    assert loop.rebalances == 2
    both = [*one, *parse_broker_log(lines, source_ref="copy.log", tz=UTC)]
    found = with_process_findings([], both, {"orders": costs})
    assert [each.rebalances for each in found] == [3, 0]


def test_closing_in_good_order_is_a_loop_only_where_the_waits_grow() -> None:
    """A probe ends a process by SIGTERM; a program with a consumer for each task does so, too."""

    def closed(starts_s: Sequence[int]) -> list[Finding]:
        lines: list[str] = []
        for number, at_s in enumerate(starts_s):
            lines += [*start(at_s, "till", number), leaving(at_s + 5, "till", number)]
        return loops(lines)

    assert [each.kind for each in closed(BACK_OFF_S)] == [RESTART_LOOP]
    assert closed((0, 30, 60, 90, 120)) == []


@pytest.mark.parametrize(
    "lines",
    [
        start(0, "till", 1) + start(20, "till", 2),
        [text for n in range(5) for text in start(20 * n, f"till-{n}", n)],
        [text for n in range(5) for text in start(86_400 * n, "till", n)],
        [text for n in range(5) for text in start(20 * n, f"{THREAD}-consumer", n)],
        [text for n in range(5) for text in start(20 * n, "till", 7 if n else 8)]
        + start(200, "till", 7)[3:]
        + [start(201, "till", 9)[3].replace("generationId=9", "generationId=7")],
    ],
    ids=[
        "one restart",
        "a rolling deploy",
        "a deploy a day",
        "a thread",
        "processes of one client id",
    ],
)
def test_other_starts_are_no_loop(lines: list[str]) -> None:
    """Fewer than three restarts, other processes, or starts far apart."""
    assert loops(lines) == []


def test_stream_thread_that_died_is_the_first_cause_of_its_failure() -> None:
    """Streams leaves no group: the coordinator notices one session timeout later."""
    client = [
        line(0, f"[Consumer clientId={THREAD}-consumer, groupId=pay] Successfully joined group "
             f"with generation Generation{{generationId=3, memberId='{THREAD}-consumer-1', "
             "protocol='stream'}"),
        line(9, f"stream-thread [{THREAD}] State transition from RUNNING to PENDING_SHUTDOWN"),
        line(9, f"stream-thread [{THREAD}] Shutting down unclean"),
    ]  # fmt: skip
    began = TraceEvent(
        event=Event.PREPARE_REBALANCE,
        ts_us=round((BEGIN + timedelta(seconds=50)).timestamp() * 1_000_000),
        group_id="pay",
        generation=3,
        member_id=f"{THREAD}-consumer-1",
        reason=RebalanceReason.MEMBER_FAILED,
    )
    (told,) = with_client_reasons([began], events_of(client))
    assert told.attrs[CAUSE] == (f"{THREAD}-consumer had a stream thread that died of an exception")


def test_each_death_of_a_stream_thread_counts_once() -> None:
    """A thread tells twice that it dies; its client tells that it replaced it."""
    client = THREAD.removesuffix("-StreamThread-1")
    who = f"[Consumer clientId={THREAD}-consumer, groupId=pay]"
    joined = f"{who} Successfully synced group in generation Generation{{generationId=1, memberId="
    lines: list[str] = []
    for at_s in (0, 30):
        lines += [
            line(at_s, f"{joined}'m-{at_s}', protocol='stream'}}"),
            line(at_s + 5, f"stream-thread [{THREAD}] Failed to process stream task 0_0 due to"),
            line(at_s + 5, f"stream-client [{client}] Replacing thread in the streams uncaught "
                 "exception handler"),
            line(at_s + 6, f"stream-thread [{THREAD}] Shutting down unclean"),
        ]  # fmt: skip
    (found,) = findings_in(events_of(lines), Source.CONSUMER_LOG)
    assert found.kind == "stream-threads-die"
    assert found.what.startswith("Stream threads died of an exception 2 times, and were replaced 2")


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (f"stream-thread [{THREAD}] {DURING} and the thread is going to shut down: ",
         "thread-died"),
        # The released text lacks a blank.
        (f"stream-client [till] {DURING} and the registered exception handleropted to X. The",
         "thread-died"),
        ("stream-client [till] Replacing thread in the streams uncaught exception handler",
         "thread-replaced"),
        ("stream-client [till] State transition from PENDING_ERROR to ERROR", "streams-error"),
        ("stream-client [till] State transition from REBALANCING to RUNNING", None),
    ],
)  # fmt: skip
def test_wordings_of_streams_by_release(text: str, sign: str | None) -> None:
    """Other changes of state are known, and tell nothing."""
    told = [each.attrs["sign"] for each in events_of([line(0, text)])]
    assert told == ([] if sign is None else [sign])


def test_restored_state_costs_the_time_in_which_nothing_is_processed() -> None:
    """Short restorations are left out."""
    lines = [
        line(at_s, f"stream-thread [{THREAD}] Restoration took {ms} ms for all active tasks [0_1]")
        for at_s, ms in ((0, 12_000), (60, 999), (90, 3_000))
    ]
    (found,) = findings_in(events_of(lines), Source.CONSUMER_LOG)
    assert (found.kind, found.group_id, found.cost_s) == ("state-restoration", "pay", 15.0)
    assert "restored state 2 times" in found.what
    assert "the longest was 12.0 s" in found.what
