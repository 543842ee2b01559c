"""LeaveGroup, one member or many, static and pending ones."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
LEAVE-001 a member leaves
  stable A
  --
  leave A                   | leave NONE entries=NONE
  state Empty gen=2
  log group gen=2 type=consumer protocol=- leader=- members=-
LEAVE-002 one of two leaves
  stable A B
  --
  leave B                   | leave NONE entries=NONE
  heartbeat A               | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=2
  log none
LEAVE-003 an unknown group
  leave x y                 | leave NONE entries=UNKNOWN_MEMBER_ID,UNKNOWN_MEMBER_ID
  state none
LEAVE-005 an unknown member
  stable A
  --
  leave x                   | leave NONE entries=UNKNOWN_MEMBER_ID
  state Stable gen=1
  log none
LEAVE-007 a Dead group
  stable A B
  force Dead
  leave A                   | leave COORDINATOR_NOT_AVAILABLE entries=-
  leave A B                 | leave COORDINATOR_NOT_AVAILABLE entries=-
LEAVE-008 leaving while parked in JoinGroup
  stable A B
  join A                    | -
  leave A                   | leave NONE; A UNKNOWN_MEMBER_ID id=-
LEAVE-009 leaving completes a waiting join phase
  stable A B
  join C                    | -
  join A                    | -
  --
  leave B                   | leave NONE; A NONE gen=3; C NONE gen=3
  state AwaitingSync
  log none
LEAVE-011 a fenced static member
  stable L:i1
  leave some:i1             | leave NONE entries=FENCED_INSTANCE_ID
LEAVE-012 an administrator removes by instance id
  stable L:i1
  leave :i1                 | leave NONE entries=NONE
  state Empty
LEAVE-013 a batch of static members
  stable L:i1 F:i2
  --
  leave :i1 :i2             | leave NONE entries=NONE,NONE
  state Empty gen=3
  log group gen=3 protocol=- leader=- members=-
LEAVE-014 a batch with one fenced
  stable L:i1 F:i2
  --
  leave :i1 invalid:i2      | leave NONE entries=NONE,FENCED_INSTANCE_ID
  state PreparingRebalance gen=2
  log none
LEAVE-015 a batch with one unknown instance
  stable L:i1 F:i2
  --
  leave :unknown :i2        | leave NONE entries=UNKNOWN_MEMBER_ID,NONE
  state PreparingRebalance gen=2
  log none
LEAVE-016 a batch with a pending member
  stable A B
  join C v=9
  join A                    | -
  join B                    | -
  --
  leave :unknown C          | leave NONE entries=UNKNOWN_MEMBER_ID,NONE; A NONE; B NONE
  state AwaitingSync
  log none
LEAVE-018 the whole batch leaves
  stable A B C
  --
  leave A B C               | leave NONE entries=NONE,NONE,NONE
  state Empty gen=4
  log group gen=4 protocol=- leader=- members=-
LEAVE-019 the same member twice in a batch
  stable A B
  --
  leave A A                 | leave NONE entries=NONE,UNKNOWN_MEMBER_ID
  state PreparingRebalance
  log none
LEAVE-024 leaving while parked in SyncGroup
  completing A B
  sync B                    | -
  --
  leave B                   | leave NONE
  state PreparingRebalance
  wait 300000               | -
LEAVE-026 the leader leaves
  stable A B
  --
  leave A                   | leave NONE
  join B                    | B NONE gen=3 leader=B members=B
  state AwaitingSync gen=3
  log none
LEAVE-PENDING a pending member leaves an Empty group
  join A v=9            | A MEMBER_ID_REQUIRED
  leave A               | leave NONE entries=NONE
  state Empty gen=0 pending=-
LEAVE-PENDING.stable a pending member that leaves rebalances a Stable group
  stable A
  join B v=9            | B MEMBER_ID_REQUIRED
  leave B               | leave NONE entries=NONE
  state PreparingRebalance gen=1
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_leave(case: Case) -> None:
    """A LeaveGroup is answered as Kafka 4.4 answers it."""
    case.play()
