"""What an administrator sees and removes: DescribeGroups, ListGroups, DeleteGroups."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "ADMIN",
    """
DEL-001 A group with members cannot be deleted
  @ SJ must since=1.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDeleteNonEmptyGroup
  @ java ClassicGroupTest.testValidateDeleteGroup
  completing A
  delete                    | delete g=NON_EMPTY_GROUP
  state AwaitingSync gen=1
LIST-001 A Stable group is listed, with its protocol type
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testListGroupsIncludesStableGroups
  @ java GroupMetadataManagerTest.testListGroups
  @ 0.10.2 GroupCoordinatorResponseTest.testListGroupsIncludesStableGroups
  stable A
  [LS] list                 | list NONE groups=g g=consumer
  [J] list                  | list NONE groups=g g=consumer g.state=Stable g.type=classic
  [S] list v=4              | list g.state=Stable
DEL-002 An Empty group can be deleted, and is described as Dead then
  @ SJ must since=1.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDeleteEmptyGroup
  @ java GroupMetadataManagerTest.testClassicGroupDelete
  stable A
  leave A
  --
  delete                    | delete g=NONE
  log group gone=yes
  describe                  | describe state=Dead
  state none
DESC-002 A static member is described with its instance id, client id and host
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDescribeGroupStableForStaticMember
  stable L:i1
  describe                  | describe error=NONE state=Stable type=consumer protocol=range members=L instances=i1 clients=L hosts=/127.0.0.1
  state Stable gen=1
LIST-002 A group in the sync phase is listed
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testListGroupsIncludesRebalancingGroups
  @ 0.10.2 GroupCoordinatorResponseTest.testListGroupsIncludesRebalancingGroups
  completing A
  list                      | list NONE groups=g g=consumer
  state AwaitingSync
DEL-003 An Empty group is deleted with its offsets
  @ SJ must since=1.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDeleteEmptyGroupWithStoredOffsets
  stable A
  commit A t-0=5
  leave A
  --
  delete                    | delete g=NONE
  log offset t-0=-; group gone=yes
  state none
LIST-003 The filter of ListGroups keeps groups of the states that it names
  @ SJ must since=2.6 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testListGroupsWithStates
  completing A
  list v=4 states=CompletingRebalance          | list NONE groups=g g.state=CompletingRebalance
  list v=4 states=PreparingRebalance,Stable,Empty,Dead | list NONE groups=-
  [3.9 J] list v=4 states=completingrebalance | list NONE groups=g
  [2.8] list v=4 states=completingrebalance    | list NONE groups=-
  sync A A=a
  list v=4 states=Stable    | list NONE groups=g g.state=Stable
  list v=4 states=Empty     | list NONE groups=-
  leave A
  list v=4 states=Empty     | list NONE groups=g
  list v=4 states=Stable    | list NONE groups=-
DESC-005 An unknown group is described as Dead; from version 6 on, with GROUP_ID_NOT_FOUND
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testDescribeGroupInactiveGroup
  @ java GroupMetadataManagerTest.testDescribeGroupsGroupIdNotFoundException
  @ 0.10.2 GroupCoordinatorResponseTest.testDescribeGroupInactiveGroup
  describe                  | describe error=NONE state=Dead type=- protocol=- members=-
  [J] describe v=6 | describe error=GROUP_ID_NOT_FOUND state=Dead
DEL-006 A group that comes back after its deletion begins with generation 1
  @ SJ must since=1.1 seen=2.8-4.4
  @ scala GroupCoordinator.handleDeleteGroups
  stable A
  join A
  sync A
  leave A
  state Empty gen=3
  delete                    | delete g=NONE
  join B                    | B NONE gen=1 leader=B
  state AwaitingSync gen=1
DEL-007 A group with no more than an id that has not joined can be deleted
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinator.handleDeleteGroups
  join A v=9                | A MEMBER_ID_REQUIRED
  --
  delete                    | delete g=NONE
  [S] log none
  [J] log group gone=yes
  join A                    | A UNKNOWN_MEMBER_ID
  state none
""",
)
