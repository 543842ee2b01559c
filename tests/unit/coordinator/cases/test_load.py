"""Failover: what a load gives back, and what an unload answers."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
LOAD-002 requests while loading
  stable A
  resign
  load begin
  --
  join A                | A COORDINATOR_LOAD_IN_PROGRESS
  sync A                | A COORDINATOR_LOAD_IN_PROGRESS
  heartbeat A           | A NONE
  log none
LOAD-004 a Stable group survives a failover
  stable A B
  resign
  elect
  --
  heartbeat A           | A NONE
  heartbeat B           | B NONE
  sync B                | B NONE work=b
  state Stable gen=2
  log none
LOAD-005 a rebalancing group falls back
  stable A
  join B
  join A                | A NONE gen=2; B NONE gen=2
  resign
  elect
  --
  heartbeat A gen=2     | A ILLEGAL_GENERATION
  heartbeat A gen=1     | A NONE
  heartbeat B gen=2     | B UNKNOWN_MEMBER_ID
  join A                | A NONE gen=2
  state AwaitingSync gen=2
  log none
LOAD-006 over capacity after a load
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  state PreparingRebalance gen=1 members=A,B
LOAD-007 an unload while preparing
  stable A B C
  join A                | -
  join B                | -
  resign                | A NOT_COORDINATOR id=A; B NOT_COORDINATOR id=B
LOAD-008 an unload in the sync phase
  completing A B
  sync B                | -
  resign                | B NOT_COORDINATOR
  wait 300000           | -
LOAD-009 a follower with two protocols rebalances after a load
  stable A B protocols=range,roundrobin
  resign
  elect
  --
  join B                | -
  state PreparingRebalance
  log none
LOAD-010 pending ids are lost
  stable A
  join C v=9            | C MEMBER_ID_REQUIRED
  resign
  elect
  join C                | C UNKNOWN_MEMBER_ID
OLOAD-001 offsets without a group record become a simple group
  append foo-0=23
  append foo-1=455
  append bar-0=8992
  resign
  elect
  state Empty gen=0 type=-
  fetch *               | fetch foo-0=23 foo-1=455 bar-0=8992
OLOAD-002 a group with members loads as Stable with its generation
  append t-0=5
  append group gen=935 members=A
  resign
  elect
  state Stable gen=935 members=A
  wait 9999
  state Stable
  wait 1
  state Empty gen=936
OLOAD-004 a tombstone of an offset
  append foo-0=23
  append foo-1=455
  append foo-1=
  resign
  elect
  fetch foo-0 foo-1     | fetch foo-0=23 foo-1=-1
OLOAD-005 a tombstone of a group removes the group only
  append group gen=293 members=A
  append group=
  resign
  elect
  state none
OLOAD-005.offsets offsets after a group's tombstone make a simple group
  append group gen=293 members=A
  append group=
  append foo-0=23
  resign
  elect
  state Empty gen=0 type=-
  fetch foo-0           | fetch foo-0=23
OLOAD-012 a load that fails leaves the partition refused
  append t-0=5
  resign
  load begin
  load failed
  fetch t-0             | fetch NOT_COORDINATOR
  join A                | A NOT_COORDINATOR
OLOAD-016 a group over capacity rebalances
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  state PreparingRebalance
OLOAD-017 a stale epoch is ignored
  stable A
  elect epoch=2
  --
  resign epoch=1
  elect epoch=1
  heartbeat A           | A NONE
  state Stable gen=1
OLOAD-018 pending members are lost by a failover
  commit - t-0=1
  join M v=9            | M MEMBER_ID_REQUIRED
  resign
  elect
  join M                | M UNKNOWN_MEMBER_ID
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_load(case: Case) -> None:
    """A partition is taken over and given up as in Kafka 4.4."""
    case.play()
