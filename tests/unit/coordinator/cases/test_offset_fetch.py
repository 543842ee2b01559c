"""OffsetFetch: what is read, and what a require-stable read waits for."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
FETCH-002 a fetch of everything
  commit - t-0=15 t-1=16 u-0=17
  fetch *                   | fetch t-0=15 t-1=16 u-0=17
FETCH-003 the group's state does not matter
  commit - t-0=15
  completing A
  state AwaitingSync
  fetch t-0                 | fetch t-0=15
FETCH-004 not the coordinator
  commit - t-0=15
  resign
  fetch t-0                 | fetch NOT_COORDINATOR
FETCH-009 a commit in flight delays a require-stable fetch
  hold
  commit - t-0=10           | -
  fetch t-0 stable=1        | -
  release                   | - t-0=NONE; fetch t-0=10
FETCH-010 a commit in flight is invisible to an ordinary fetch
  commit - t-0=5
  hold
  commit - t-0=10           | -
  fetch t-0                 | fetch t-0=5
FETCH-011 a require-stable fetch that waits too long
  hold
  commit - t-0=10
  fetch t-0 stable=1        | -
  wait 4999                 | -
  wait 1                    | - t-0=COORDINATOR_NOT_AVAILABLE; fetch NOT_COORDINATOR
FETCH-012 a fetch of several groups fails group by group
  group g1
  commit - t-0=5
  resign group=g2
  fetch t-0 groups=g1,g2    | fetch g1/t-0=5 g2/error=NOT_COORDINATOR
FETCH-013 a classic group ignores the member's id and epoch
  commit - t-0=5
  fetch t-0 v=9 member=zzz epoch=77 | fetch t-0=5
FETCH-UNKNOWN a group that does not exist
  fetch *                   | fetch NONE
  fetch t-0                 | fetch t-0=-1
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_offset_fetch(case: Case) -> None:
    """An OffsetFetch is answered as Kafka 4.4 answers it."""
    case.play()
