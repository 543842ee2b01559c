"""How the applications of a scenario work: how long records take, and when they are committed.

Plain data and its checks. `coordinator_sim.sim` does the work.
"""

from typing import Final, Literal

from msgspec import Struct

from coordinator_sim.errors import ScenarioError

_LONGEST_US: Final = 3_600_000_000
"""An hour for one record or one poll: longer than any `max.poll.interval.ms` worth a scenario."""


class PerPoll(Struct, frozen=True, tag="per-poll", forbid_unknown_fields=True):
    """What a poll returned takes `ms` milliseconds, however many records; done all at once."""

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


ProcessingLaw = PerPoll | PerRecord | TablePerRecord

CommitMoment = Literal["auto", "before", "sync", "async", "every", "never"]


class CommitPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an application commits what it processed.

    Args:
        when: `auto` leaves it to `enable.auto.commit`. `sync` and `async` commit after each poll
            that returned records, waiting or not. `every` commits and waits after each so many
            records. `before` commits what a poll returned before processing it, so a crash skips
            records instead of repeating them. `never` commits at no time.
        records: Of `every`: after how many records.
        on_revoke: Whether the rebalance callback commits, and waits, when partitions are revoked;
            `auto` does so anyway.
    """

    when: CommitMoment = "auto"
    records: int = 0
    on_revoke: bool = True


def check_processing(owner: str, law: ProcessingLaw) -> None:
    """Refuse a law that takes negative or absurd time.

    Raises:
        ScenarioError: Names the owner, the value and the bound.
    """
    times: tuple[int, ...]
    match law:
        case PerPoll(ms=ms):
            times = (ms * 1_000,)
        case PerRecord(us=us, poll_us=poll_us):
            times = (us, poll_us)
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
        ScenarioError: Names the owner, the value and the fix.
    """
    if policy.when == "every" and policy.records < 1:
        raise ScenarioError(
            f"commits of {owner!r}: records={policy.records} must be at least 1 with when='every'"
        )
    if policy.when != "every" and policy.records:
        raise ScenarioError(
            f"commits of {owner!r}: records={policy.records} is read with when='every' alone"
        )
