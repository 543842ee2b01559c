"""The checkers of share groups' records, judged by histories whose verdict is known."""

import pytest

from coordinator_sim_conformance.broken.share_histories import BROKEN_SHARES, share_history
from coordinator_sim_conformance.checkers import SHARE_CHECKERS, Verdict, check_all, slice_lines

INVARIANTS = ("I11", "I12", "I13")


def test_a_correct_history_passes_every_checker() -> None:
    """Every invariant is judged, and none is broken."""
    report = check_all(share_history())

    assert report.violations == ()
    assert report.having(Verdict.PASS) == INVARIANTS


@pytest.mark.parametrize("name", BROKEN_SHARES)
def test_a_broken_history_is_found_by_exactly_its_checker(name: str) -> None:
    """One thing is wrong, one checker fails, and the smallest history shows it."""
    events = share_history(name)
    report = check_all(events)

    assert report.having(Verdict.FAIL) == (BROKEN_SHARES[name][0],)
    assert slice_lines(events, report.violations[0])


def test_every_invariant_has_a_broken_history() -> None:
    """No checker goes untested."""
    assert {invariant for invariant, _ in BROKEN_SHARES.values()} == set(INVARIANTS)
    assert tuple(checker.invariant for checker in SHARE_CHECKERS) == INVARIANTS


def test_a_trace_without_share_groups_is_not_judged_by_them() -> None:
    """The report ends with I10."""
    assert check_all([]).results[-1].invariant == "I10"
