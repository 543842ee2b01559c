"""Causes of epochs from a broker's log of 4.4, and from the logs of its clients.

The lines are those of a real broker and its clients, shortened.
"""

from collections.abc import Iterable
from datetime import UTC

import pytest
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import RebalanceStory, explain_group
from coordinator_sim.trace.client_reasons import CAUSE
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines

A, B = "7SyCqwuRQ1KlX2fK0fkO6Q", "BOMwL8fGQoqOcn5rHVsSNA"
REPLACED = (
    " Static member with instance id i re-joins the consumer group using the consumer protocol. "
    f"Created a new member {A} to replace the existing member {B}."
)
MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
MEMBERSHIP = "org.apache.kafka.clients.consumer.internals.ConsumerMembershipManager"


def log(lines: Iterable[str], name: str, before: str, logger: str) -> list[TraceEvent]:
    """The events of lines: minute, second and milliseconds, and the message."""
    whole = (f"[2026-11-30 08:{line[:9]}] INFO {before}{line[10:]} ({logger})" for line in lines)
    return list(parse_broker_log(whole, source_ref=name, tz=UTC))


def broker(*lines: str, group: str = "totals") -> list[TraceEvent]:
    """The events of a broker's lines about a group."""
    where = "[GroupCoordinator id=1 topic=__consumer_offsets partition=1] "
    return log(lines, "server.log", f"{where}[GroupId {group}]", MANAGER)


def client(*lines: str) -> list[TraceEvent]:
    """The events of a new consumer's log."""
    where = "[Consumer clientId=modern-b, groupId=modern] "
    return log(lines, "modern-b.log", where, MEMBERSHIP)


def told(events: list[TraceEvent], group: str = "totals") -> tuple[RebalanceStory, ...]:
    """What is said of each rebalance of a group."""
    lines = group_lines(coordinator_events(events, Source.BROKER_LOG))
    return explain_group(group, lines[group], []).rebalances


def test_first_member_of_a_streams_group_is_the_cause_of_its_epoch() -> None:
    """A broker that has just started takes longer for both lines than lines of one event."""
    (story,) = told(
        broker(
            f"18:56,704 [MemberId {A}] Member joins the streams group.",
            f"18:56,729 [MemberId {A}] Computed new metadata hash: -7765023589041103452.",
            f"18:56,867 [MemberId {A}] Bumped streams group epoch to 2 with metadata hash "
            "-7765023589041103452 and validated topic epoch -1.",
            "18:56,881  Computed a new target assignment for epoch 2 with 'sticky' assignor in "
            "1ms.",
        )
    )
    assert (story.reason.value, story.because) == ("MEMBER_JOINED", f"{A} joined")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"[MemberId {B}] Member {B} left the streams group.", "MEMBER_LEFT"),
        (
            f" Streams member {B} fenced from the group because the member session expired..",
            "MEMBER_FAILED",
        ),
    ],
)
def test_departure_of_a_streams_member_begins_an_epoch_without_a_line(
    line: str, reason: str
) -> None:
    """The broker logs the member that goes, and the target at the next heartbeat of another."""
    stories = told(
        broker(
            f"19:45,136 [MemberId {B}] Member joins the streams group.",
            f"19:45,137 [MemberId {B}] Bumped streams group epoch to 5 with metadata hash 7 and "
            "validated topic epoch 0.",
            "19:45,146  Computed a new target assignment for epoch 5 with 'sticky' assignor in "
            "1ms.",
            f"19:46,970 {line}",
            "19:47,903  Computed a new target assignment for epoch 6 with 'sticky' assignor in "
            "1ms.",
        )
    )
    assert [(each.reason.value, each.generation) for each in stories] == [
        ("MEMBER_JOINED", 5),
        (reason, 6),
    ]
    assert stories[1].join_ms == 933
    assert stories[1].caused_by == (B,)


def test_departures_that_do_not_account_for_the_epoch_add_none() -> None:
    """Lines are missing then: nothing is made up for them."""
    events = broker(
        "19:45,137  Bumped streams group epoch to 5 with metadata hash 7 and validated topic "
        "epoch 0.",
        f"19:46,970 [MemberId {B}] Member {B} left the streams group.",
        "19:47,903  Computed a new target assignment for epoch 8 with 'sticky' assignor in 1ms.",
    )
    epochs = [
        line.generation
        for line in coordinator_events(events, Source.BROKER_LOG)
        if line.event is Event.EPOCH_BUMPED
    ]
    assert epochs == [5]


@pytest.mark.parametrize(
    ("topics_hash", "reason"), [("-8447309953715741391", "TOPICS_CHANGED"), ("3", "UNKNOWN")]
)
def test_epoch_with_another_hash_of_topics(topics_hash: str, reason: str) -> None:
    """At INFO a broker says nothing of changed topics but the hash in the line of the epoch."""
    stories = told(
        broker(
            f"19:04,540  Member {B} joins the consumer group using the consumer protocol.",
            "19:04,541  Bumped group epoch to 3 with metadata hash 3.",
            "19:04,541  Computed a new target assignment for epoch 3 with 'uniform' assignor in "
            "0ms.",
            f"19:35,677  Bumped group epoch to 4 with metadata hash {topics_hash}.",
            group="modern",
        ),
        "modern",
    )
    assert [each.reason.value for each in stories] == ["MEMBER_JOINED", reason]


def test_new_consumer_joins_leaves_and_joins_again_for_what_its_log_says() -> None:
    """Ids of new consumers are random: the lines of their states tell which log is theirs."""
    at_broker = broker(
        f"17:20,084  Member {B} joins the consumer group using the consumer protocol.",
        "17:20,084  Bumped group epoch to 3 with metadata hash 3.",
        f"17:56,356  Member {B} left the consumer group.",
        "17:56,357  Bumped group epoch to 4 with metadata hash 3.",
        f"17:59,539  Member {B} joins the consumer group using the consumer protocol.",
        "17:59,539  Bumped group epoch to 5 with metadata hash 3.",
        group="modern",
    )
    at_client = client(
        "17:19,511 Subscribed to topic(s): payments",
        f"17:19,764 Member {B} with epoch 0 transitioned from UNSUBSCRIBED to JOINING.",
        f"17:20,103 Member {B} with epoch 3 transitioned from JOINING to RECONCILING.",
        "17:56,354 Consumer poll timeout has expired. This means the time between subsequent calls "
        "to poll() was longer than the configured max.poll.interval.ms.",
        f"17:56,354 Member {B} with epoch 3 transitioned from STABLE to PREPARE_LEAVING.",
        f"17:59,520 Member {B} with epoch 0 transitioned from STALE to JOINING.",
        f"17:59,546 Member {B} with epoch 5 transitioned from JOINING to STABLE.",
    )
    late = "modern-b did not poll in time: its poll timeout has expired"
    events = coordinator_events([*at_broker, *at_client], Source.BROKER_LOG)
    starts = [line for line in events if line.event is Event.EPOCH_BUMPED]
    assert [line.attrs.get(CAUSE) for line in starts] == [
        "modern-b subscribed to payments, as at its start",
        late,
        late,
    ]


def test_new_consumer_that_unsubscribes_leaves_for_that() -> None:
    """Its request names no reason."""
    at_broker = broker(
        f"21:41,734  Member {B} left the consumer group.",
        "21:41,734  Bumped group epoch to 15 with metadata hash 3.",
        group="modern",
    )
    at_client = client(
        f"21:37,389 Member {B} with epoch 14 transitioned from JOINING to RECONCILING.",
        "21:41,624 Unsubscribing all topics or patterns and assigned partitions",
    )
    (story,) = told([*at_broker, *at_client], "modern")
    assert story.first_cause == "modern-b gave its subscription up (0.110 s before)"


def test_fenced_stream_thread_that_subscribes_anew_is_not_told_as_started() -> None:
    """It goes on in the same process; its log tells that it was fenced before it subscribes."""
    at_broker = broker(
        f"58:37,459  [MemberId {B}] Member joins the streams group.",
        f"58:37,460 [MemberId {B}] Bumped streams group epoch to 6 with metadata hash 7 and "
        "validated topic epoch 0.",
    )
    consumer = "[Consumer clientId=totals-b-StreamThread-1-consumer, groupId=totals] "
    thread = "stream-thread [totals-b-StreamThread-1] "
    at_client = (
        f"58:06,453 {consumer}Member {B} with epoch 4 transitioned from JOINING to RECONCILING.",
        f"58:37,349 {consumer}Member {B} with epoch 4 transitioned from STABLE to FENCED.",
        f"58:37,409 {thread}Detected that the thread is being fenced.",
        f"58:37,451 {consumer}Unsubscribing all topics or patterns and assigned partitions",
        f"58:37,454 {consumer}Subscribed to topic(s): clicks, totals-words-repartition",
        f"58:37,465 {consumer}Member {B} with epoch 6 transitioned from JOINING to RECONCILING.",
    )
    (story,) = told([*at_broker, *log(at_client, "totals-b.log", "", MEMBERSHIP)])
    cause = "totals-b-StreamThread-1-consumer was fenced by the coordinator (0.111 s before)"
    assert story.first_cause == cause


@pytest.mark.parametrize(
    ("line", "epoch", "reason"),
    [
        ("19:10,000  Anything else", 9, "UNKNOWN"),
        (
            f"19:34,900  Static member {B} with instance id i temporarily left the consumer group.",
            4,
            "TOPICS_CHANGED",
        ),
        (
            f"19:34,900 {REPLACED}",
            4,
            "TOPICS_CHANGED",
        ),
    ],
)
def test_epoch_that_another_line_above_did_not_begin(line: str, epoch: int, reason: str) -> None:
    """A static member that goes or is back begins none; after a gap the hash may be another's."""
    stories = told(
        broker(
            "19:04,541  Bumped group epoch to 3 with metadata hash 3.",
            line,
            f"19:35,677  Bumped group epoch to {epoch} with metadata hash 4.",
            group="modern",
        ),
        "modern",
    )
    assert stories[-1].reason.value == reason


def test_departure_of_a_streams_member_right_before_other_epochs_has_its_own() -> None:
    """No target was computed in between; the number of the next epoch shows that one began."""
    stories = told(
        broker(
            "19:45,137  Bumped streams group epoch to 5 with metadata hash 7 and validated topic "
            "epoch 0.",
            f"19:46,970 [MemberId {B}] Member {B} left the streams group.",
            f"19:47,001 [MemberId {A}] Bumped streams group epoch to 7 with metadata hash 8 and "
            "validated topic epoch 0.",
        )
    )
    assert [(each.generation, each.reason.value) for each in stories[1:]] == [
        (6, "MEMBER_LEFT"),
        (7, "TOPICS_CHANGED"),
    ]


def test_departure_in_a_log_that_was_cut_before_adds_no_epoch() -> None:
    """Which epoch it would be is not known."""
    (story,) = told(
        broker(
            f"19:46,970 [MemberId {B}] Member {B} left the streams group.",
            "19:47,903  Computed a new target assignment for epoch 1 with 'sticky' assignor in "
            "1ms.",
        )
    )
    assert story.reason.value == "UNKNOWN"


@pytest.mark.parametrize("apart_s", [-30, -3, 0, 3, 30])
def test_clock_of_a_new_consumer_is_known_by_the_epochs_that_it_began(apart_s: int) -> None:
    """By its own clock it would have joined because it gave its subscription up, later."""
    at_broker = broker(
        f"17:20,084  Member {B} joins the consumer group using the consumer protocol.",
        "17:20,084  Bumped group epoch to 3 with metadata hash 3.",
        f"17:22,356  Member {B} left the consumer group.",
        "17:22,357  Bumped group epoch to 4 with metadata hash 3.",
        f"17:26,000  Member {B} joins the consumer group using the consumer protocol.",
        "17:26,001  Bumped group epoch to 5 with metadata hash 3.",
        group="modern",
    )
    at_client = client(
        "17:19,511 Subscribed to topic(s): payments",
        f"17:20,103 Member {B} with epoch 3 transitioned from JOINING to RECONCILING.",
        "17:22,354 Unsubscribing all topics or patterns and assigned partitions",
        "17:25,990 Subscribed to topic(s): payments",
        f"17:26,010 Member {B} with epoch 5 transitioned from JOINING to STABLE.",
    )
    off = [replace(line, ts_us=line.ts_us + apart_s * 1_000_000) for line in at_client]
    events = coordinator_events([*at_broker, *off], Source.BROKER_LOG)
    starts = [line for line in events if line.event is Event.EPOCH_BUMPED]
    start = "modern-b subscribed to payments, as at its start"
    gave_up = "modern-b gave its subscription up"
    assert [line.attrs.get(CAUSE) for line in starts] == [start, gave_up, start]
