"""Processing times and commit policies of a scenario's applications.

Plain data and its checks. `coordinator_sim.sim` does the work.
"""

from typing import Final, Literal

from msgspec import Struct

from coordinator_sim.errors import ScenarioError

_LONGEST_US: Final = 3_600_000_000
"""An hour for one record or one poll: longer than any useful `max.poll.interval.ms`."""


class PerPoll(Struct, frozen=True, tag="per-poll", forbid_unknown_fields=True):
    """A poll's records take `ms` milliseconds, however many; done all at once."""

    ms: int


class PerRecord(Struct, frozen=True, tag="per-record", forbid_unknown_fields=True):
    """Every record takes `us` microseconds, one after another, and each poll `poll_us` before."""

    us: int
    poll_us: int = 0


class TablePerRecord(Struct, frozen=True, tag="table", forbid_unknown_fields=True):
    """The records of one poll take equally long, drawn for each poll from a quantile table.

    Args:
        quantiles_us: At least two values in microseconds a record, never descending, at equal
            steps of probability.
    """

    quantiles_us: tuple[int, ...]


Shape = Literal["steady", "heavy-tailed", "batch"]

SHAPES: Final[dict[Shape, tuple[int, ...]]] = {
    "steady": (80, 90, 94, 97, 99, 100, 101, 103, 106, 110, 125),
    "heavy-tailed": (
        *(10, 20, 28, 36, 43, 51, 60, 68, 78, 88, 100),
        *(113, 128, 147, 168, 195, 230, 279, 356, 510, 1_120),
    ),
    "batch": (
        *(40, 50, 60, 70, 75, 80, 85, 90, 95, 98, 100),
        *(102, 105, 110, 115, 120, 130, 140, 160, 200, 4_000),
    ),
}
"""Shapes of the time from one poll to the next: quantiles in percent of the member's typical time.

All three are chosen, none is measured. `steady` is what many like records make together.
`heavy-tailed` has the body of a log-normal law: one poll in twenty takes five times as long as is
typical, one in a hundred ten times, as with calls to other systems. `batch` is mostly short, and
one poll in twenty takes up to forty times as long, as where work is gathered and written at once.
"""


class ShapedPerPoll(Struct, frozen=True, kw_only=True, tag="shaped", forbid_unknown_fields=True):
    """A poll's records take a time drawn for each poll, however many; done all at once.

    Args:
        shape: A name of `SHAPES`.
        typical_ms: The median time in milliseconds.
    """

    shape: Shape
    typical_ms: int


class ShapedPerRecord(
    Struct, frozen=True, kw_only=True, tag="shaped-per-record", forbid_unknown_fields=True
):
    """The records of one poll take equally long, a time drawn for each poll.

    Args:
        shape: A name of `SHAPES`.
        typical_us: The median time of a record in microseconds.
    """

    shape: Shape
    typical_us: int


ProcessingLaw = PerPoll | PerRecord | TablePerRecord | ShapedPerPoll | ShapedPerRecord

CommitMoment = Literal["auto", "before", "sync", "async", "every", "interval", "never"]


class CommitPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an application commits its processed records.

    Args:
        when: `auto` leaves it to `enable.auto.commit`. `sync` and `async` commit after each poll
            that returned records, waiting or not. `every` commits and waits after every `records`
            records. `before` commits a poll's records before processing them, so a crash skips
            records instead of repeating them. `interval` commits before a poll when it is time,
            without waiting. `never` does not commit.
        records: For `every`: the number of records.
        interval_ms: For `interval`: the time from one commit to the next.
        on_revoke: Whether the rebalance callback commits, and waits, when partitions are revoked;
            `auto` does so anyway.
    """

    when: CommitMoment = "auto"
    records: int = 0
    interval_ms: int = 60_000
    on_revoke: bool = True


DEFAULT_START_MS: Final = 100
"""Duration of a task's start where its work does not give one; a variety draws another."""
DEFAULT_STOP_MS: Final = 200
"""Duration of a task's stop where its work does not give one; a variety draws another."""


class SourceWork(Struct, frozen=True, kw_only=True, tag="source", forbid_unknown_fields=True):
    """A source connector: its tasks copy records of an outside system into a topic.

    Its source partitions (tables, files) are distributed to the tasks by number. A task that ends
    in an orderly way commits its progress, a killed one does not.

    Args:
        topic: Topic of the records; from time 0 on it holds nothing else.
        partitions: Number of source partitions.
        records_per_s: Records that come to each source partition every second from time 0.
        record_us: Time a task needs for a record, in microseconds.
        poll_ms: Time from one poll of the source to the next, unless a poll was full.
        start_ms: Duration of a task's start.
        stop_ms: How long a stopping task waits before it commits for the last time, as in a slow
            call; beyond the graceful timeout it is cancelled.
        fails_after: Number of records since its start after which a task fails.
    """

    topic: str
    partitions: int = 1
    records_per_s: int = 100
    record_us: int = 100
    poll_ms: int = 200
    start_ms: int = DEFAULT_START_MS
    stop_ms: int = DEFAULT_STOP_MS
    fails_after: int | None = None


class SinkWork(Struct, frozen=True, kw_only=True, tag="sink", forbid_unknown_fields=True):
    """A sink connector: its tasks are the consumers of the group `connect-` and its name.

    Args:
        topics: Topics that they read.
        record_us: Time a task needs for a record, in microseconds.
        start_ms: Duration of a task's start.
        stop_ms: How long a stopping task waits before it commits for the last time, as in a slow
            call; beyond the graceful timeout it is cancelled.
        fails_after: Number of records since its start after which a task fails.
    """

    topics: tuple[str, ...]
    record_us: int = 100
    start_ms: int = DEFAULT_START_MS
    stop_ms: int = DEFAULT_STOP_MS
    fails_after: int | None = None


ConnectorWork = SourceWork | SinkWork


def source_topic(connector: str) -> str:
    """Return the trace's name of a source connector's outside system, beside topics."""
    return f"source:{connector}"


def check_connector_work(connector: str, work: ConnectorWork) -> None:
    """Refuse work with numbers that are too small.

    Raises:
        ScenarioError: names the connector, the field, the value and the bound.
    """
    bounds = {"record_us": 0, "start_ms": 0, "stop_ms": 0, "fails_after": 1}
    if isinstance(work, SourceWork):
        bounds |= {"partitions": 1, "records_per_s": 0, "poll_ms": 1}
    elif not work.topics:
        raise ScenarioError(f"work of {connector!r}: a sink needs at least one topic")
    for name, low in bounds.items():
        value = getattr(work, name)
        if value is not None and not low <= value <= _LONGEST_US:
            raise ScenarioError(
                f"work of {connector!r}: {name}={value} must be from {low} to {_LONGEST_US}"
            )


def check_processing(owner: str, law: ProcessingLaw) -> None:
    """Refuse a law that takes negative or absurd time.

    Raises:
        ScenarioError: names the owner, the value and the bound.
    """
    times: tuple[int, ...]
    match law:
        case PerPoll(ms=ms):
            times = (ms * 1_000,)
        case PerRecord(us=us, poll_us=poll_us):
            times = (us, poll_us)
        case ShapedPerPoll(shape=shape) | ShapedPerRecord(shape=shape):
            if shape not in SHAPES:
                raise ScenarioError(
                    f"processing of {owner!r}: shape={shape!r} must be one of {', '.join(SHAPES)}"
                )
            typical_us = (
                law.typical_ms * 1_000 if isinstance(law, ShapedPerPoll) else law.typical_us
            )
            times = (typical_us, typical_us * SHAPES[shape][-1] // 100)
        case TablePerRecord(quantiles_us=times):
            if len(times) < 2 or list(times) != sorted(times):  # noqa: PLR2004 - a span has two ends
                raise ScenarioError(
                    f"processing of {owner!r}: quantiles_us={times} must be at least two values, "
                    "never descending"
                )
    for time_us in times:
        if not 0 <= time_us <= _LONGEST_US:
            raise ScenarioError(
                f"processing of {owner!r}: {time_us} us must be from 0 to {_LONGEST_US}"
            )


def check_commits(owner: str, policy: CommitPolicy) -> None:
    """Refuse a policy whose number of records does not fit its moment.

    Raises:
        ScenarioError: names the owner, the value and the fix.
    """
    if policy.interval_ms < 1:
        raise ScenarioError(
            f"commits of {owner!r}: interval_ms={policy.interval_ms} must be positive"
        )
    if policy.when == "every" and policy.records < 1:
        raise ScenarioError(
            f"commits of {owner!r}: records={policy.records} must be at least 1 with when='every'"
        )
    if policy.when != "every" and policy.records:
        raise ScenarioError(
            f"commits of {owner!r}: records={policy.records} is read with when='every' alone"
        )
