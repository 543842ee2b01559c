"""Heartbeats: what they are told, and which of them keep a session."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
HB-002 an unknown group
  heartbeat A gen=1 id=a    | A UNKNOWN_MEMBER_ID
  state none
HB-003 an unknown member
  stable A
  heartbeat A id=x          | A UNKNOWN_MEMBER_ID
  state Stable gen=1
HB-004 another generation
  stable A
  heartbeat A gen=2         | A ILLEGAL_GENERATION
  state Stable gen=1
HB-005 while preparing, and the session restarts
  stable A
  join B
  wait 9000
  heartbeat A               | A REBALANCE_IN_PROGRESS
  wait 9000
  state PreparingRebalance gen=1 members=A,B
HB-006 in the sync phase, and the session restarts
  completing A
  wait 9000
  heartbeat A               | A NONE
  wait 9000
  state AwaitingSync gen=1 members=A
HB-009 an Empty group
  stable A
  leave A
  heartbeat A gen=2         | A UNKNOWN_MEMBER_ID
  state Empty
HB-010 a Dead group
  stable A
  force Dead
  heartbeat A               | A COORDINATOR_NOT_AVAILABLE
HB-013 heartbeats keep the session
  stable A
  wait 5000
  heartbeat A               | A NONE
  wait 5100
  heartbeat A               | A NONE
  state Stable gen=1
HB-014 a refused heartbeat does not keep the session
  stable A
  --
  wait 3333
  heartbeat A gen=99        | A ILLEGAL_GENERATION
  wait 3333
  heartbeat A gen=99        | A ILLEGAL_GENERATION
  wait 3334
  heartbeat A gen=99        | A UNKNOWN_MEMBER_ID
  state Empty gen=2
  log group gen=2 protocol=- leader=- members=-
HB-015 commits keep the session
  stable A
  --
  wait 5000
  commit A t-0=1            | A t-0=NONE
  wait 5100
  heartbeat A               | A NONE
  log offset t-0=1
HB-021 an absent static member gets a fresh session when the join phase ends
  stable L:i1 F:i2 session=1000 rebalance=600
  join L                    | -
  wait 600                  | L NONE gen=3
  --
  wait 500
  state AwaitingSync members=F,L
  log none
HB-EMPTY a member of an Empty group, which only a bug can make
  stable A
  force Empty
  heartbeat A               | A UNKNOWN_MEMBER_ID
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_heartbeat(case: Case) -> None:
    """A Heartbeat is answered as Kafka 4.4 answers it."""
    case.play()
