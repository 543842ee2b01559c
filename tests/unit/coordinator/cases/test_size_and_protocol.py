"""The limit `group.max.size` (4 here), and the choice of the protocol."""

import pytest

from tests.unit.coordinator.cases.stage import Case, read_cases

CASES = """
MAX-001 a fifth member is refused
  broker size=4
  stable A B C D
  --
  join E                | E GROUP_MAX_SIZE_REACHED id=-
  state Stable gen=4
  log none
MAX-002 pending ids do not count, the second join decides
  broker size=4 delay=300
  join A v=4            | A MEMBER_ID_REQUIRED
  join B v=4            | B MEMBER_ID_REQUIRED
  join C v=4            | C MEMBER_ID_REQUIRED
  join D v=4            | D MEMBER_ID_REQUIRED
  join E v=4            | E MEMBER_ID_REQUIRED
  join A                | -
  join B                | -
  join C                | -
  join D                | -
  join E                | E GROUP_MAX_SIZE_REACHED id=-
  wait 600              | A NONE; B NONE; C NONE; D NONE
  join B                | B NONE
  join E                | E GROUP_MAX_SIZE_REACHED
  state AwaitingSync gen=1
MAX-003 joins in one step
  broker size=4 delay=300
  join A
  join B
  join C
  join D
  join E v=3            | E GROUP_MAX_SIZE_REACHED
  wait 600              | A NONE; B NONE; C NONE; D NONE
MAX-004 static members
  broker size=4 delay=300
  join A:a
  join B:b
  join C:c
  join D:d
  join E:e              | E GROUP_MAX_SIZE_REACHED
  wait 600              | A NONE; B NONE; C NONE; D NONE
  join B                | B NONE
  state AwaitingSync gen=1 members=A,B,C,D
MAX-006 the last to rejoin are removed
  broker size=4
  append group gen=1 members=A,B,C,D,E,F
  resign
  elect
  --
  join A                | -
  join B                | -
  join C                | -
  join D                | -
  join E                | E GROUP_MAX_SIZE_REACHED
  join F                | F GROUP_MAX_SIZE_REACHED
  state PreparingRebalance members=A,B,C,D
  log none
MAX-007 a refusal does not look again whether all have joined
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  join A                | -
  join B                | B GROUP_MAX_SIZE_REACHED
  --
  wait 59999            | -
  wait 1                | A NONE gen=2 members=A
PROTO-001 a majority chooses among the common protocols
  broker delay=1000
  join A protocols=range,roundrobin
  join B protocols=roundrobin,range
  join C protocols=roundrobin,range
  wait 2000             | A NONE protocol=roundrobin; B NONE; C NONE
PROTO-002 only common protocols are candidates
  broker delay=1000
  join A protocols=range,roundrobin
  join B protocols=roundrobin,blah
  wait 2000             | A NONE protocol=roundrobin; B NONE protocol=roundrobin
PROTO-003 a tie goes to the first in the order of Java's hash map
  broker delay=1000
  join A protocols=roundrobin,range
  join B protocols=range,roundrobin
  wait 2000             | A NONE protocol=range; B NONE protocol=range
PROTO-004 a joiner must share a protocol common to all
  broker delay=1000
  join A protocols=range,roundrobin
  join B protocols=roundrobin,blah
  join C protocols=range,foo      | C INCONSISTENT_GROUP_PROTOCOL
  join C protocols=roundrobin,foo | -
  wait 2000             | A NONE members=A,B,C; B NONE; C NONE
PROTO-005 the leader keeps its role
  stable A B
  join C
  join B
  join A                | A NONE gen=3 leader=A; B NONE leader=A; C NONE leader=A
"""


@pytest.mark.parametrize("case", read_cases(CASES), ids=lambda case: case.case_id)
def test_size_and_protocol(case: Case) -> None:
    """Kafka 4.4 refuses the same members and chooses the same protocol."""
    case.play()
