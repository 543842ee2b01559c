"""FindCoordinator: where a group is coordinated."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "FINDCOORDINATOR",
    """
FIND-001 Every group has a coordinator, and it is told with its address
  @ LSJ must seen=0.10.2-4.4
  @ scala KafkaApis.getCoordinator
  find                      | find NONE found=yes
FIND-001.every Each group has a coordinator, also one that nobody has used
  find otherGroup           | find NONE found=yes
  find my-group             | find NONE found=yes
FIND-004 The first question for a coordinator makes the offsets topic, and must be asked again
  @ LSJ must seen=0.10.2-4.4
  @ scala KafkaApis.getCoordinator
  cluster fresh
  find                      | find COORDINATOR_NOT_AVAILABLE node=-1 host=- port=-1
  find                      | find NONE found=yes
FIND-005 Where the group's partition has no leader, COORDINATOR_NOT_AVAILABLE is answered
  @ LSJ model
  @ scala KafkaApis.getCoordinator
  cluster leaderless
  find                      | find COORDINATOR_NOT_AVAILABLE node=-1
FIND-006 From version 4 on, several keys are looked up at once
  @ SJ must since=3.0 seen=3.9-4.4
  @ scala KafkaApis.handleFindCoordinatorRequestV4AndAbove
  find g1 g2 g3 v=4         | find NONE keys=g1,g2,g3 g1=NONE g2=NONE g3=NONE
FIND-007 A type of key that does not exist is INVALID_REQUEST
  @ SJ must seen=2.8-4.4
  @ clients FindCoordinatorRequest.CoordinatorType.forId
  find type=9               | find INVALID_REQUEST
""",
)
