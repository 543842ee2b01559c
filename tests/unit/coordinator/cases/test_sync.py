"""SyncGroup, and the eviction of members that do not sync (KAFKA-12890)."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
SYNC-001 the leader syncs first, the follower later
  completing A B
  --
  sync A A=a B=b        | A NONE work=a
  sync B                | B NONE work=b
  state Stable gen=2
  log group gen=2 protocol=range leader=A members=A,B
SYNC-002 the follower syncs first
  completing A B
  --
  sync B                | -
  sync A A=a B=b        | A NONE work=a; B NONE work=b
  state Stable gen=2
  log group gen=2 protocol=range leader=A members=A,B
SYNC-003 a missing assignment becomes empty
  completing A
  --
  sync A                | A NONE work=-
  state Stable gen=1
  log group gen=1 protocol=range leader=A members=A
SYNC-004 an assignment for a stranger is ignored
  completing A B
  --
  sync A A=a Z=z        | A NONE work=a
  sync B                | B NONE work=-
  state Stable
  log group leader=A members=A,B
SYNC-005 assignments from a follower are ignored
  completing A B
  --
  sync B A=x B=y        | -
  sync A A=a B=b        | A NONE work=a; B NONE work=b
  log group leader=A members=A,B
SYNC-006 an unknown group
  sync A gen=1 id=a     | A UNKNOWN_MEMBER_ID
  state none
  log none
SYNC-011 a sync while preparing
  stable A
  join B
  --
  sync A                | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=1
  log none
SYNC-012 a sync on a Stable group returns the stored assignment
  stable A B
  --
  sync B                | B NONE work=b type=consumer name=range
  state Stable gen=2
  log none
SYNC-013 a leader's sync on a Stable group changes nothing
  stable A B
  --
  sync A A=x B=y        | A NONE work=a
  sync B                | B NONE work=b
  state Stable gen=2
  log none
SYNC-014 the leader fails in the sync phase
  completing A B
  sync B                | -
  --
  wait 10000            | B REBALANCE_IN_PROGRESS
  join B                | B NONE gen=3 leader=B
  state AwaitingSync gen=3
  log none
SYNC-015 a Dead group
  stable A
  force Dead
  --
  sync A                | A COORDINATOR_NOT_AVAILABLE
  log none
SYNC-016 an Empty group
  stable A
  leave A
  --
  sync A gen=2          | A UNKNOWN_MEMBER_ID
  state Empty gen=2
  log none
SYNC-GENERATION another generation
  completing A
  --
  sync A gen=2          | A ILLEGAL_GENERATION
  state AwaitingSync gen=1
  log none
SYNC-020 a consistent type and name are echoed
  completing A B
  --
  sync A type=consumer name=range | A NONE type=consumer name=range
  state Stable
  log group gen=2 protocol=range leader=A members=A,B
SYNC-PROTOCOL an inconsistent type or name
  completing A
  --
  sync A type=connect name=range    | A INCONSISTENT_GROUP_PROTOCOL
  sync A type=consumer name=sticky  | A INCONSISTENT_GROUP_PROTOCOL
  log none
SYNC-025 the append of the assignment fails
  completing A B
  sync B                | -
  --
  fail NOT_LEADER_OR_FOLLOWER
  sync A A=a B=b        | A NOT_COORDINATOR work=-; B NOT_COORDINATOR work=-
  state PreparingRebalance gen=2
  log none
SYNC-026 the errors of an append
  completing A
  --
  fail UNKNOWN_TOPIC_OR_PARTITION
  sync A A=a            | A COORDINATOR_NOT_AVAILABLE work=-
  join A                | A NONE
  fail NOT_ENOUGH_REPLICAS
  sync A A=a            | A COORDINATOR_NOT_AVAILABLE work=-
  join A                | A NONE
  fail NOT_ENOUGH_REPLICAS_AFTER_APPEND
  sync A A=a            | A NOT_ENOUGH_REPLICAS_AFTER_APPEND work=-
  join A                | A NONE
  fail KAFKA_STORAGE_ERROR
  sync A A=a            | A NOT_COORDINATOR work=-
  join A                | A NONE
  fail REQUEST_TIMED_OUT
  sync A A=a            | A COORDINATOR_NOT_AVAILABLE work=-
  join A                | A NONE
  fail MESSAGE_TOO_LARGE
  sync A A=a            | A UNKNOWN_SERVER_ERROR work=-
  join A                | A NONE
  fail RECORD_LIST_TOO_LARGE
  sync A A=a            | A UNKNOWN_SERVER_ERROR work=-
  join A                | A NONE
  fail INVALID_FETCH_SIZE
  sync A A=a            | A UNKNOWN_SERVER_ERROR work=-
  state PreparingRebalance
  log none
PSYN-001 nobody syncs
  completing A B C rebalance=5000
  --
  wait 4999 beating=A,B,C   | -
  wait 1                    | -
  heartbeat A               | A UNKNOWN_MEMBER_ID
  heartbeat C               | C UNKNOWN_MEMBER_ID
  state Empty gen=4
  log group gen=4 protocol=- leader=- members=-
PSYN-003 the leader does not sync
  completing A B C rebalance=5000
  sync B                    | -
  sync C                    | -
  --
  wait 4999 beating=A       | -
  wait 1                    | B REBALANCE_IN_PROGRESS; C REBALANCE_IN_PROGRESS
  heartbeat A               | A UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=3
  log none
PSYN-004 all have synced in time
  completing A B C rebalance=5000
  --
  sync A A=a B=b C=c        | A NONE
  sync B                    | B NONE
  sync C                    | C NONE
  wait 6000 beating=A,B,C   | -
  heartbeat B               | B NONE
  state Stable gen=3
  log group gen=3 leader=A members=A,B,C
PSYN-006 an absent static member is evicted
  stable L:i1 F:i2 session=60000 rebalance=5000
  join L                    | -
  wait 5000                 | L NONE gen=3 members=F,L
  sync L                    | L NONE
  --
  wait 5000                 | -
  heartbeat F gen=3         | F UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=3 members=L
  log none
PSYN-008 a removed member is not waited for
  completing A B rebalance=5000
  leave B                   | leave NONE
  join A                    | A NONE gen=3
  --
  sync A A=a                | A NONE work=a
  wait 6000 beating=A       | -
  heartbeat A               | A NONE
  state Stable gen=3
  log group gen=3 leader=A members=A
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_sync(case: Case) -> None:
    """A SyncGroup is answered as Kafka 4.4 answers it."""
    case.play()
