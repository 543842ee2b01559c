"""Answers that wait for the log, and what happens to the group meanwhile."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
LOG-DEFERRED a held log delays every answer but those of the join phase
  stable A
  hold
  commit A t-0=1            | -
  heartbeat A               | -
  release                   | A t-0=NONE; A NONE
LOG-HEARTBEAT an error of a heartbeat does not wait
  stable A
  hold
  commit A t-0=1            | -
  heartbeat A gen=9         | A ILLEGAL_GENERATION
LOG-RESUMED an append that is replicated takes what waits before it along
  hold
  commit - t-0=1            | -
  hold off
  commit - t-0=2            | - t-0=NONE; - t-0=NONE
LOG-TIMEOUT a write is given up after its timeout, and stays in the log
  hold
  commit - t-0=1            | -
  wait 4999                 | -
  wait 1                    | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0                 | fetch t-0=-1
  release                   | -
  fetch t-0                 | fetch t-0=1
LOG-KEPT offsets survive a failover
  commit - t-0=1
  commit - t-0=2
  resign
  elect
  state Empty gen=0
  fetch *                   | fetch t-0=2
LOG-RESIGNED an unload refuses what waits
  hold
  commit - t-0=1            | -
  resign                    | - t-0=NOT_COORDINATOR
LOG-UNLOADED-TIMERS a write that failed by an unload leaves no timer behind
  completing A
  hold
  sync A A=a                | -
  resign                    | A NOT_COORDINATOR
  wait 300000               | -
LOG-ANSWERED the record of a new group times out after its member was admitted
  hold
  join A                    | A NONE gen=1
  wait 5000                 | -
  state AwaitingSync gen=1
LOG-SYNC-PREPARING an assignment is stored after the group moved on
  stable A
  join A                    | A NONE gen=2
  hold
  sync A A=x                | -
  join B                    | A REBALANCE_IN_PROGRESS
  release                   | -
  state PreparingRebalance gen=2
LOG-SYNC-GENERATION an assignment is stored after the next generation began
  completing A
  hold
  sync A A=x                | -
  join A meta=2             | A REBALANCE_IN_PROGRESS; A NONE gen=2
  release                   | -
  state AwaitingSync gen=2
LOG-002.java a record of an Empty group that cannot be stored
  stable A
  --
  fail NOT_ENOUGH_REPLICAS
  leave A                   | leave COORDINATOR_NOT_AVAILABLE
  state Empty gen=2
  resign
  elect
  state Stable gen=1
  log none
LOG-STATIC-PREPARING a static leader returns and the group rebalances before that is stored
  stable L:i1 F:i2 G:i3
  hold
  join L2:i1 v=9            | -
  join F meta=2             | -
  release                   | -
  state PreparingRebalance gen=3
LOG-STATIC-OVERTAKEN a static member returns twice before either is stored
  stable L:i1 F:i2
  hold
  join L2:i1                | -
  join L3:i1                | L2 FENCED_INSTANCE_ID
  wait 5000                 | L3 COORDINATOR_NOT_AVAILABLE
  state Stable gen=2 members=F,L2
LOG-NEW-GROUP a group whose first record fails is gone, its timers find nothing
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  state none
  wait 300000               | -
LOG-NEW-NAMESAKE a timer of a group that is gone counts up the generation of its namesake
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  commit - t-0=1            | - t-0=NONE
  wait 3000                 | -
  state Empty gen=1
LOG-NEW-SYNC a sync timer of a group that is gone leaves its namesake alone
  broker partitions=1
  commit - t-0=1/5000       | - t-0=OFFSET_METADATA_TOO_LARGE
  completing A
  group other
  fail NOT_ENOUGH_REPLICAS
  commit - t-0=1            | - t-0=COORDINATOR_NOT_AVAILABLE
  group g
  state none
  commit - t-0=1            | - t-0=NONE
  wait 60000                | -
  state Empty gen=0
LOG-UNCOMMITTED a value replaced before it was committed is not shown
  commit - t-0=1
  hold
  commit - t-0=2            | -
  commit - t-0=3            | -
  fetch t-0                 | fetch t-0=1
  release to=2              | - t-0=NONE
  fetch t-0                 | fetch t-0=2
  release                   | - t-0=NONE
  fetch t-0                 | fetch t-0=3
LOG-RELOADED what was not committed is not shown after a load either
  commit - t-0=1
  hold
  commit - t-0=2            | -
  resign                    | - t-0=NOT_COORDINATOR
  elect
  fetch t-0                 | fetch t-0=1
  release
  fetch t-0                 | fetch t-0=2
LOG-REPLICATED-MEANWHILE replication goes on while nobody leads
  hold
  commit - t-0=2            | -
  resign                    | - t-0=NOT_COORDINATOR
  release                   | -
  elect
  fetch t-0                 | fetch t-0=2
LOG-EPOCH a newer epoch of an active partition changes nothing
  stable A
  elect epoch=5
  resign epoch=5            | -
  heartbeat A               | A NONE
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_replication(case: Case) -> None:
    """A write is answered in order, refused, or overtaken, as by Kafka 4.4."""
    case.play()
