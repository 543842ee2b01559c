"""The account of an upgrade: a right run, and one run that breaks each rule."""

import pytest

from coordinator_sim_conformance.real_kafka.upgrade.account import (
    Account,
    Event,
    Repeat,
    account_of,
)

A, B = "a.1", "b.1"
PLACE = "t-0"


def run(*told: tuple[str, str, int]) -> list[Event]:
    """Events one microsecond apart: who, what, at which offset; values are the offsets."""
    return [
        Event(
            at,
            who,
            what,
            "" if what == "killed" else PLACE,
            offset,
            f"v{offset}" * (what == "read"),
        )
        for at, (who, what, offset) in enumerate(told)
    ]


def judged(*told: tuple[str, str, int], written: int = 4, automatic: bool = False) -> Account:
    """The account of such events, with so many records written."""
    values = [f"v{offset}" for offset in range(written)]
    return account_of(run(*told), values, commits_itself=automatic)


def again(end: str) -> Repeat:
    """The second reading of the second record, which the end of its first reader permits."""
    return Repeat(who=B, place=PLACE, offset=1, before=A, end=end, is_permitted=True)


FIRST = ((A, "assigned", -1), (A, "read", 0), (A, "read", 1))
COMMIT = ((A, "committing", 2), (A, "committed", 2))
SECOND = ((B, "assigned", -1), (B, "read", 2), (B, "read", 3))
END = ((B, "committing", 4), (B, "committed", 4), (B, "revoked", -1))


def test_clean_change_of_owner_reads_each_record_once() -> None:
    """The next owner begins at the commit that was made when the partition was given up."""
    account = judged(*FIRST, *COMMIT, (A, "revoked", -1), *SECOND, *END)
    assert account.faults() == []
    assert (account.produced, account.repeats) == (4, [])


def test_killed_owner_permits_what_it_had_not_committed() -> None:
    """One of two records was committed: one may be read again, not both."""
    killed = (*FIRST, (A, "committing", 1), (A, "committed", 1), (A, "killed", -1))
    account = judged(*killed, (B, "assigned", -1), (B, "read", 1), *SECOND[1:], *END)
    assert account.faults() == []
    assert account.repeats == [again("killed")]
    both = (*killed, (B, "assigned", -1), (B, "read", 0), (B, "read", 1), *SECOND[1:], *END)
    assert judged(*both).faults() == [
        "b.1 began t-0 at 0, committed were 1 to 1",
        "b.1 read t-0 0 again after a.1",
    ]


def test_commit_of_a_killed_owner_that_was_not_answered_may_count_or_not() -> None:
    """Whether it was appended nobody knows: the next owner begins before it or behind it."""
    killed = (*FIRST, (A, "committing", 2), (A, "killed", -1))
    assert judged(*killed, *SECOND, *END).faults() == []
    whole = ((B, "assigned", -1), *((B, "read", offset) for offset in range(4)))
    assert judged(*killed, *whole, *END).faults() == []


def test_automatic_commit_excuses_what_was_read_after_it() -> None:
    """Nothing excuses that a record is read again which was committed."""
    revoked = (*FIRST, (A, "committed", 1), (A, "revoked", -1), (B, "assigned", -1))
    end = (*SECOND[1:], *END)
    account = judged(*revoked, (B, "read", 1), *end, automatic=True)
    assert account.faults() == []
    assert account.repeats == [again("revoked")]
    assert judged(*revoked, (B, "read", 0), (B, "read", 1), *end, automatic=True).faults() == [
        "b.1 began t-0 at 0, committed were 1 to 1",
        "b.1 read t-0 0 again after a.1",
    ]


def test_commit_told_late_counts_for_the_holding_it_was_made_in() -> None:
    """An interceptor hears of it after the partition was given up, and even got back."""
    late = (*FIRST, (A, "revoked", -1), (A, "assigned", -1), (A, "committed", 2), (A, "read", 2))
    account = judged(*late, (A, "committed", 3), (A, "revoked", -1), written=3)
    assert account.faults() == []


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ((*FIRST, *COMMIT, (A, "revoked", -1)), ["lost v2", "lost v3"]),
        (
            (*FIRST, *COMMIT, (A, "revoked", -1), (B, "assigned", -1), (B, "read", 3), *END),
            ["lost v2", "b.1 began t-0 at 3, committed were 2 to 2"],
        ),
        (
            (*FIRST, (A, "read", 3), (A, "committed", 4), (A, "revoked", -1)),
            ["lost v2", "a.1 read t-0 3 after 1"],
        ),
        (
            (*FIRST, *COMMIT, *SECOND[:1], (A, "revoked", -1), *SECOND[1:], *END),
            ["b.1 got t-0 before a.1 gave it up"],
        ),
        (
            (
                *FIRST,
                (A, "revoked", -1),
                SECOND[0],
                *((B, "read", each) for each in range(4)),
                *END,
            ),
            [
                "a.1 left t-0 by revoked with 2 uncommitted",
                "b.1 read t-0 0 again after a.1",
                "b.1 read t-0 1 again after a.1",
            ],
        ),
        ((*FIRST, *COMMIT, (A, "lost", -1), *SECOND), ["b.1 left t-0 by held with 2 uncommitted"]),
    ],
    ids=["lost", "skipped by an owner", "skipped within", "two owners", "no commit", "held"],
)
def test_run_that_breaks_a_rule_is_told_which(
    told: tuple[tuple[str, str, int], ...], fault: list[str]
) -> None:
    """Each rule is broken once."""
    assert judged(*told).faults() == fault
