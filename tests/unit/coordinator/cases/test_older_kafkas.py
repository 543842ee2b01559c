"""What the Scala coordinators did otherwise, as far as the profiles follow them."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
JOIN-002 no initial delay in 0.10.2
  broker profile=0.10.2 delay=3000
  join A                | A NONE gen=1 leader=A
  state AwaitingSync gen=1
  log none
MID-001 a dynamic member must return with its id
  broker profile=3.9
  join A v=4            | A MEMBER_ID_REQUIRED id=A gen=-1
  state Empty gen=0
  log none
JOIN-039.frozen up to 3.2 a rejoin does not refresh the timeouts
  broker profile=2.8
  stable A
  --
  join A session=20000  | A NONE
  sync A A=a
  log group session=10000
INIT-011 a joiner does not extend the delay of a used group
  broker profile=3.9 delay=300
  stable A
  leave A
  --
  join B rebalance=900
  wait 150
  join C rebalance=900
  wait 149              | -
  wait 1                | B NONE gen=3; C NONE gen=3
INIT-015 an expiry does not shorten the delay
  broker profile=3.9 delay=1000000
  join A session=1800000 rebalance=2000000
  wait 300000           | A UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=0
  wait 700000
  state Empty gen=1
PSYN-005 0.10.2 waits for the leader as long as its session lasts
  broker profile=0.10.2
  completing A B session=60000 rebalance=5000
  sync B                | -
  wait 59999            | -
  wait 1                | B REBALANCE_IN_PROGRESS
MAX-007.scala a refusal looks again whether all have joined
  broker profile=3.9 size=1
  append group gen=1 members=A,B
  resign
  elect
  join A                | -
  join B                | A NONE gen=2; B GROUP_MAX_SIZE_REACHED
SYNC-012.session a sync on a Stable group restarts the session
  broker profile=3.9
  stable A
  wait 9000
  sync A                | A NONE
  wait 9000
  state Stable
SYNC-016.scala an Empty group is asked like any other
  broker profile=3.9
  stable A
  leave A
  sync A gen=2          | A UNKNOWN_MEMBER_ID
SYNC-026.scala a timeout of the assignment's append
  broker profile=3.9
  completing A
  fail REQUEST_TIMED_OUT
  sync A A=a            | A REBALANCE_IN_PROGRESS
COMMIT-003.scala an unknown group with a generation, version 9
  broker profile=3.9
  commit - t-0=10 gen=1 id=m v=9 | - t-0=ILLEGAL_GENERATION
LOAD-001 requests while loading
  broker profile=3.9
  stable A
  resign
  load begin
  join A                | A COORDINATOR_LOAD_IN_PROGRESS
  sync A                | A REBALANCE_IN_PROGRESS
  heartbeat A           | A NONE
  leave A               | leave COORDINATOR_LOAD_IN_PROGRESS
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_older_kafka(case: Case) -> None:
    """An older Kafka behaves as its profile says."""
    case.play()
