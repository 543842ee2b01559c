"""Reasons that clients log, beside the rebalances that they began."""

from collections.abc import Iterable
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.replay.costs import costs_of
from coordinator_sim.replay.findings import findings_of
from coordinator_sim.trace.client_reasons import (
    CAUSE,
    CAUSE_AT,
    CAUSE_MS,
    clocks_apart,
)
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim.trace.rebalances import CAUSE_KIND

ID = "7f000000-0000-4000-8000-00000000000{}"
JAVA = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
COORDINATOR = "kafka.coordinator.group.GroupCoordinator"
HERDER = "org.apache.kafka.connect.runtime.distributed.DistributedHerder"


def read(text: Iterable[str], name: str) -> list[TraceEvent]:
    """The events of a log's lines: a second of 10:00, and the message."""
    lines = [f"[2026-03-02 10:00:{line}" for line in text]
    return list(parse_broker_log(lines, source_ref=name, tz=UTC))


def broker(*happened: tuple[str, str], generation: int = 4) -> list[TraceEvent]:
    """A broker's log: at each second a rebalance for that reason, complete 100 ms later."""
    lines: list[str] = []
    tail = "(__consumer_offsets-7)"
    for number, (second, reason) in enumerate(happened, generation):
        old = f"old generation {number} {tail}"
        said = (
            f"000 Preparing to rebalance group g in state Stable with {old} (reason: {reason})",
            f"100 Stabilized group g generation {number + 1} {tail} with 2 members",
            f"110 Assignment received from leader for group g for generation {number + 1}",
        )
        lines += [
            f"{second},{text[:3]}] INFO [GroupCoordinator 1]: {text[4:]} ({COORDINATOR})"
            for text in said
        ]
    return read(lines, "server.log")


def consumer(*lines: str, client: str = "a", name: str = "app.log") -> list[TraceEvent]:
    """A consumer's log: time and message."""
    return read(
        (
            f"{line[:6]}] INFO [Consumer clientId={client}, groupId=g] {line[7:]} ({JAVA})"
            for line in lines
        ),
        name,
    )


def worker(*lines: str) -> list[TraceEvent]:
    """A Connect worker's log: time and message."""
    return read(
        (
            f"{line[:6]}] INFO [Worker clientId=w, groupId=g] {line[7:]} ({HERDER})"
            for line in lines
        ),
        "connect.log",
    )


def starts(*logs: list[TraceEvent]) -> list[TraceEvent]:
    """The lines that begin rebalances, as every analysis gets them."""
    events = [event for log in logs for event in log]
    return [
        line
        for line in coordinator_events(events, Source.BROKER_LOG)
        if line.event is Event.PREPARE_REBALANCE
    ]


def told(*logs: list[TraceEvent]) -> list[str | None]:
    """The first cause of each rebalance."""
    return [start.attrs.get(CAUSE) for start in starts(*logs)]


def joined(generation: int, number: int = 1) -> str:
    """What a consumer logs when it has joined."""
    return (
        f"Successfully joined group with generation Generation{{generationId={generation}, "
        f"memberId='a-{ID.format(number)}', protocol='range'}}"
    )


JOINS = "Adding new member a-{} with group instance id None"
LEAVES = "Removing member a-{} on LeaveGroup"
FAILS = "removing member a-{} on heartbeat expiration"


def test_a_worker_without_a_coordinator_is_the_first_cause() -> None:
    """The broker knows that the worker joined again; its own log knows of the outage before."""
    log = worker(
        "02,000 Group coordinator b1:9092 is unavailable or invalid due to cause: coordinator "
        "unavailable.isDisconnected: true. Rediscovery will be attempted.",
        "05,000 Broker coordinator was unreachable for 3000ms. Revoking previous assignment "
        "Assignment{error=0}",
        "07,000 Discovered group coordinator b1:9092",
        "09,990 (Re-)joining group",
    )
    (start,) = starts(broker(("10", f"Updating metadata for member w-{ID.format(1)}")), log)
    assert start.attrs[CAUSE] == "w lost its coordinator: coordinator unavailable"
    assert (start.attrs[CAUSE_KIND], start.attrs[CAUSE_MS]) == ("coordinator-lost", "8000")
    assert start.attrs[CAUSE_AT] == "connect.log:1"


def test_an_outage_that_a_member_survived_is_no_cause_of_its_removal_later() -> None:
    """It had found its coordinator again, and its process was held half a minute later."""
    log = consumer(
        f"05,000 {joined(4)}",
        "20,000 Group coordinator b1:9092 is unavailable or invalid due to cause: null. "
        "Rediscovery will be attempted.",
        "25,000 Discovered group coordinator b1:9092",
        "49,900 Attempt to heartbeat failed since member id is not valid",
        "49,901 (Re-)joining group",
        f"50,050 {joined(5, 2)}",
    )
    assert told(broker(("50", JOINS.format(ID.format(2)))), log) == [
        "a was no member any more (UNKNOWN_MEMBER_ID)"
    ]


def assigned(generation: int, **fields: str) -> str:
    """What a worker logs of its assignment."""
    values = {"connectorIds": "[]", "taskIds": "[]", "delay": "0", **fields}
    text = ", ".join(f"{name}={value}" for name, value in values.items())
    return (
        f"Joined group at generation {generation} with protocol version 2 and got assignment: "
        f"Assignment{{error=0, leader='w-{ID.format(1)}', leaderUrl='http://w:8083/', offset=7, "
        f"{text}}} with rebalance delay: {values['delay']}"
    )


def test_a_worker_that_waited_for_another_joins_again_for_that() -> None:
    """Its log has the delay in the assignment, and no reason where it joins again."""
    log = worker(f"04,155 {assigned(4, delay='6000')}", "10,161 (Re-)joining group")
    reason = f"Leader w-{ID.format(1)} re-joining group during Stable; client reason: not provided"
    assert told(broker(("10", reason)), log) == [
        "w has waited 6000 ms (scheduled.rebalance.max.delay.ms) for a worker that went"
    ]
    assert told(broker(("15", reason)), log) == [None]


def test_a_worker_that_gave_work_up_follows_the_rebalance_up() -> None:
    """However long its connectors took to stop."""
    log = worker(
        f"10,110 {assigned(5, revokedConnectorIds='[calm]', revokedTaskIds='[calm-0]')}",
        "12,000 (Re-)joining group",
    )
    reason = f"Leader w-{ID.format(1)} re-joining group during Stable; client reason: not provided"
    joined = f"Adding new member v-{ID.format(2)} with group instance id None"
    events = [*broker(("10", joined), ("12", reason)), *log]
    lines = group_lines(coordinator_events(events, Source.BROKER_LOG))["g"]
    story = explain_group("g", lines, []).rebalances[1]
    assert story.follows == 1
    assert story.first_cause == (
        "w has given up calm, calm-0, which its assignment took from it (1.890 s before)"
    )


def test_what_a_client_told_before_its_id_was_new_is_no_reason_for_that_id_to_go() -> None:
    """A log of level WARN does not tell that the client was back in its group in between."""
    log = consumer("05,000 consumer poll timeout has expired.")
    joins, fails = JOINS.format(ID.format(1)), FAILS.format(ID.format(1))
    assert told(broker(("20", fails)), log) == [
        "a did not poll in time: its poll timeout has expired"
    ]
    assert told(broker(("10", joins), ("20", fails)), log)[1:] == [None]


def test_a_worker_has_not_joined_again_for_an_assignment_before_the_last() -> None:
    """Its log was cut: what it did after that assignment is not in there."""
    log = worker(f"04,155 {assigned(3, delay='6000', revokedTaskIds='[calm-0]')}")
    reason = f"Leader w-{ID.format(1)} re-joining group during Stable; client reason: not provided"
    assert told(broker(("10", reason)), log) == [None]


def test_a_member_that_hears_of_its_removal_from_a_commit_joins_again_for_that() -> None:
    """Its log names the error in the reason alone."""
    log = consumer(
        f"05,000 {joined(4)}",
        "09,900 Request joining group due to: encountered UNKNOWN_MEMBER_ID from OFFSET_COMMIT "
        "response",
        "09,901 (Re-)joining group",
        f"09,905 Request joining group due to: need to re-join with the given member-id: "
        f"a-{ID.format(2)}",
        "09,906 (Re-)joining group",
        f"10,050 {joined(5, 2)}",
    )
    assert told(broker(("10", JOINS.format(ID.format(2)))), log) == [
        "a was no member any more (UNKNOWN_MEMBER_ID)"
    ]


def test_a_changed_connector_is_the_first_cause() -> None:
    """A coordinator that was lost and found again before is none."""
    log = worker(
        "02,000 Group coordinator b1:9092 (id: 1 rack: null) is unavailable or invalid due to "
        "cause: coordinator unavailable.isDisconnected: true. Rediscovery will be attempted.",
        "02,500 Discovered group coordinator b1:9092 (id: 2147483646 rack: null)",
        "09,900 Connector orders-sink config updated",
        "09,990 (Re-)joining group",
    )
    reason = f"Updating metadata for member w-{ID.format(1)}"
    assert told(broker(("10", reason)), log) == [
        "w read another configuration of connector orders-sink"
    ]


def test_a_lost_coordinator_counts_where_the_member_was_out() -> None:
    """The coordinator was found again, but the session had run out meanwhile."""
    log = consumer(
        "02,000 Group coordinator b1:9092 is unavailable or invalid due to cause: session timed "
        "out without receiving a heartbeat response.isDisconnected: false. Rediscovery will be "
        "attempted.",
        "09,000 Discovered group coordinator b1:9092",
        "09,100 Attempt to heartbeat with Generation{} failed due to UNKNOWN_MEMBER_ID, resetting "
        "generation",
        "09,200 Request joining group due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT",
        "09,300 (Re-)joining group",
    )
    assert told(broker(("10", JOINS.format(ID.format(2)))), log) == [
        "a lost its coordinator: session timed out without receiving a heartbeat response"
    ]


def test_what_was_before_the_last_answer_is_over() -> None:
    """A reason belongs to one rebalance, not to the next one of the same client."""
    log = consumer(
        "09,900 Request joining group due to: cached metadata has changed",
        "09,950 (Re-)joining group",
        f"10,105 {joined(5)}",
        "19,950 (Re-)joining group",
    )
    rejoins = [(second, JOINS.format(ID.format(1))) for second in ("10", "20")]
    assert told(broker(*rejoins), log) == ['a said: "cached metadata has changed"', None]


@pytest.mark.parametrize("off", [7, 21])
def test_clocks_are_compared_by_generations(off: int) -> None:
    """A client whose clock is seconds ahead tells the same as one in step."""
    said = [
        (1, 105, joined(5)),
        (9, 900, "Request joining group due to: cached metadata has changed"),
        (9, 950, "(Re-)joining group"),
        (10, 105, joined(6)),
    ]
    rejoins = [(second, JOINS.format(ID.format(1))) for second in ("01", "10", "25")]
    ahead = consumer(*(f"{second + off:02},{ms:03} {text}" for second, ms, text in said))
    in_step = consumer(*(f"{second:02},{ms:03} {text}" for second, ms, text in said))
    wanted = [None, 'a said: "cached metadata has changed"', None]
    assert told(broker(*rejoins), ahead) == told(broker(*rejoins), in_step) == wanted


def test_of_two_processes_with_one_client_id_the_member_tells() -> None:
    """Without member ids in their lines nobody is accused."""
    close = "sending LeaveGroup request to coordinator b1:9092 (id: 1 rack: null) due to"
    left = broker(("10", LEAVES.format(ID.format(1))))
    logs = [
        consumer(f"09,990 Member a-{ID.format(number)} {close} {why}", name=f"{number}.log")
        for number, why in enumerate(("the consumer is being closed", "it was unsubscribed"), 1)
    ]
    assert told(left, *logs) == ['a left: "the consumer is being closed"']
    anonymous = [
        consumer(
            "09,990 Request joining group due to: rebalance enforced by user",
            "09,995 (Re-)joining group",
            name=name,
        )
        for name in ("1.log", "2.log")
    ]
    rejoined = broker(("10", JOINS.format(ID.format(1))))
    assert told(rejoined, *anonymous) == [None]
    assert told(rejoined, anonymous[0]) == ['a said: "rebalance enforced by user"']


def test_a_member_that_stops_is_not_explained_by_its_next_start() -> None:
    """The old member fails when its session runs out; the new process has started by then."""
    log = consumer("05,000 Subscribed to topic(s): orders")
    assert told(broker(("10", FAILS.format(ID.format(1)))), log) == [None]
    assert told(broker(("10", JOINS.format(ID.format(2)))), log) == [
        "a subscribed to orders, as at its start"
    ]


def test_a_failed_sink_task_tells_of_its_consumers_group() -> None:
    """Its line names no group: Connect makes it of the connector's name."""
    line = (
        "05,000] ERROR WorkerSinkTask{id=orders-sink-0} Task threw an uncaught and unrecoverable "
        "exception. Task is being killed and will not recover until manually restarted "
        "(org.apache.kafka.connect.runtime.WorkerTask)"
    )
    (event,) = read([line], "connect.log")
    assert (event.group_id, event.client_id) == (
        "connect-orders-sink",
        "connector-consumer-orders-sink-0",
    )
    assert event.attrs["sign"] == "task-failed"


def test_a_poll_timeout_that_only_the_client_tells_is_a_finding() -> None:
    """Brokers before 3.2 log that the member left, and not why."""
    leave = (
        f"Member a-{ID.format(1)} sending LeaveGroup request to coordinator b1:9092 (id: 1 rack: "
        "null) due to consumer poll timeout has expired. This means the time between subsequent "
        "calls to poll() was longer than the configured max.poll.interval.ms"
    )
    left = broker(("10", LEAVES.format(ID.format(1))))
    for logs, kinds in (((left,), []), ((left, consumer(f"09,995 {leave}")), ["poll-timeouts"])):
        events = coordinator_events([event for log in logs for event in log], Source.BROKER_LOG)
        costs = costs_of("g", group_lines(events)["g"])
        found = [each.kind for each in findings_of("g", costs)]
        assert [kind for kind in found if kind == "poll-timeouts"] == kinds


def test_explain_shows_the_first_cause_and_its_line() -> None:
    """The command's JSON has both; a group without clients' logs has neither."""
    log = worker("09,900 Tasks [orders-sink-0] configs updated", "09,990 (Re-)joining group")
    of_broker = broker(("10", f"Updating metadata for member w-{ID.format(1)}"))
    for logs, wanted in ((of_broker, None), ([*of_broker, *log], "connect.log:1")):
        lines = group_lines(coordinator_events(logs, Source.BROKER_LOG))["g"]
        (story,) = explain_group("g", lines, []).rebalances
        assert story.first_cause_at == wanted


def test_a_member_that_comes_back_after_a_poll_timeout_left_once() -> None:
    """Its return has the same first cause, and is no second poll timeout."""
    gone, back = LEAVES.format(ID.format(1)), JOINS.format(ID.format(2))
    log = consumer(
        "09,900 consumer poll timeout has expired.",
        "24,950 (Re-)joining group",
        f"25,105 {joined(6, 2)}",
    )
    events = coordinator_events([*broker(("10", gone), ("25", back)), *log], Source.BROKER_LOG)
    costs = costs_of("g", group_lines(events)["g"])
    assert [each.trigger for each in costs] == ["poll timeout", "joined"]
    assert {each.client_cause for each in costs} == {"poll-timeout"}


def test_the_process_that_is_the_member_speaks_for_it() -> None:
    """It tells no reason; another process with its client id does, and is not asked."""
    member = consumer(f"01,000 {joined(4)}", name="1.log")
    other = consumer("05,000 consumer poll timeout has expired.", name="2.log")
    assert told(broker(("45", LEAVES.format(ID.format(1)))), member, other) == [None]


def test_a_new_process_does_not_tell_why_the_old_member_failed() -> None:
    """Both wrote into one file: what follows the start is of the new one."""
    log = consumer(
        f"00,000 {joined(4)}",
        "10,000 Subscribed to topic(s): orders",
        "11,000 Group coordinator b1:9092 is unavailable or invalid due to cause: coordinator "
        "unavailable.isDisconnected: true. Rediscovery will be attempted.",
    )
    assert told(broker(("45", FAILS.format(ID.format(1)))), log) == [None]


def test_a_file_of_several_processes_tells_of_a_member_that_it_names() -> None:
    """Two members of one generation have the client id: only a line that names one is certain."""
    leave = "sending LeaveGroup request to coordinator b1:9092 (id: 1 rack: null) due to"
    mixed = (f"00,100 {joined(4)}", f"00,200 {joined(4, 2)}", "09,000 (Re-)joining group")
    timeout = "09,900 consumer poll timeout has expired."
    gone = broker(("10", LEAVES.format(ID.format(2))))
    assert told(gone, consumer(*mixed, timeout)) == [None]
    named = f"09,950 Member a-{ID.format(2)} {leave} consumer poll timeout has expired."
    assert told(gone, consumer(*mixed, timeout, named)) == [
        'a left: "consumer poll timeout has expired."'
    ]


@pytest.mark.parametrize("days", [0, 1])
def test_generations_of_yesterday_are_no_clock(days: int) -> None:
    """The group was deleted overnight: the numbers of its generations came again."""
    text = f"[2026-03-{2 - days:02} 10:00:10,105] INFO [Consumer clientId=a, groupId=g] {joined(5)}"
    log = list(parse_broker_log([f"{text} ({JAVA})"], source_ref="app.log", tz=UTC))
    apart = clocks_apart(broker(("10", JOINS.format(ID.format(1)))), log)
    assert apart == ({} if days else {"app.log": 5_000})


def test_a_sign_of_another_version_is_no_reason() -> None:
    """A trace may be older or newer than this library."""
    (event,) = consumer("09,900 Subscribed to topic(s): orders")
    for sign in ("brand-new", "unreachable"):
        other = replace(event, attrs={"sign": sign})
        assert told(broker(("10", JOINS.format(ID.format(1)))), [other]) == [None]


def test_a_fenced_member_of_the_new_protocol_is_known_by_its_id() -> None:
    """Its id is random and has no client id in it."""
    member = "4Xx1aaaaQn6bbbbccccddd"
    shard = "[GroupCoordinator id=1 topic=__consumer_offsets partition=7] [GroupId g]"
    logger = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    of_broker = read(
        (
            f"10,00{number}] INFO {shard} {text} ({logger})"
            for number, text in enumerate(
                (
                    f"Member {member} fenced from the group because its session expired.",
                    "Bumped group epoch to 7 with metadata hash 123.",
                )
            )
        ),
        "server.log",
    )
    log = consumer(f"09,900 Member {member} with epoch 6 transitioned from STABLE to FENCED.")
    events = coordinator_events([*of_broker, *log], Source.BROKER_LOG)
    (start,) = [line for line in events if line.event is Event.EPOCH_BUMPED]
    assert start.attrs[CAUSE] == "a was fenced by the coordinator"


@given(st.permutations(range(4)), st.data())
def test_reasons_depend_on_no_order_of_files_and_change_nothing_else(
    order: list[int], data: st.DataObject
) -> None:
    """Lines of a coordinator stay as they are but for the reasons of those that begin something."""
    seconds = st.integers(0, 59).map("{:02}".format)
    texts = st.sampled_from(
        [
            "(Re-)joining group",
            joined(5),
            joined(6, 2),
            "Request joining group due to: cached metadata has changed",
            "Subscribed to topic(s): orders",
            "Attempt to heartbeat with Generation{} failed due to UNKNOWN_MEMBER_ID, resetting",
        ]
    )
    logs = [
        consumer(
            *(
                f"{second},000 {text}"
                for second, text in sorted(
                    data.draw(st.lists(st.tuples(seconds, texts), max_size=5))
                )
            ),
            client=client,
            name=f"{number}.log",
        )
        for number, client in enumerate("abab")
    ]
    kinds = st.sampled_from((JOINS, LEAVES, FAILS))
    happened = [
        (second, data.draw(kinds).format(ID.format(data.draw(st.integers(1, 2)))))
        for second in sorted(data.draw(st.sets(seconds, max_size=4)))
    ]
    of_broker = broker(*happened)
    given_to = coordinator_events(
        [*of_broker, *(e for log in logs for e in log)], Source.BROKER_LOG
    )
    shuffled = [event for number in order for event in logs[number]]
    assert given_to == coordinator_events([*of_broker, *shuffled], Source.BROKER_LOG)
    for before, after in zip(of_broker, given_to, strict=True):
        kept = {
            name: after.attrs[name] for name in after.attrs if not name.startswith("first_cause")
        }
        assert (before.event, before.ts_us, before.attrs) == (after.event, after.ts_us, kept)
        assert before == after or after.event is Event.PREPARE_REBALANCE
