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
DESC-STABLE A Stable group is described with its protocol, subscriptions and assignments
  @ LSJ must
  @ GroupMetadata.summary
  @ ClassicGroup.asDescribedGroup
  stable A
  describe                  | describe state=Stable protocol=range metadata=range work=a clients=A
DESC-REBALANCING A group that rebalances shows no protocol; only Java's shows assignments
  @ LSJ must
  @ GroupMetadata.summary
  @ ClassicGroupMember.describeNoMetadata
  stable A B
  join A
  [LS] describe             | describe state=PreparingRebalance protocol=- metadata=-,- work=-,-
  [J] describe              | describe state=PreparingRebalance protocol=- metadata=-,- work=a,b
DESC-SYNCING The phase before Stable is AwaitingSync up to 1.0, and CompletingRebalance since
  @ LSJ must
  @ scala CompletingRebalance
  completing A
  [L] describe              | describe state=AwaitingSync
  [SJ] describe             | describe state=CompletingRebalance
DESC-ORDER Scala's coordinator describes groups in the order of the request, Java's by partition
  @ SJ model
  @ KafkaApis.handleDescribeGroupsRequest
  @ GroupCoordinatorService.describeGroups
  partition a 47
  partition b 48
  [S] describe g1 g2 b a zz g1 | describe order=g1,g2,b,a,zz,g1
  [J] describe g1 g2 b a zz g1 | describe order=a,b,g2,g1,g1,zz
DESC-UNCOMMITTED Only Java's coordinator hides a group until its first record is committed
  @ SJ model
  @ GroupMetadataManager.describeGroups
  hold
  commit - t-0=1
  [S] describe              | describe state=Empty
  [S] list                  | list groups=g
  [J] describe              | describe state=Dead
  [J] list                  | list groups=-
  release
  describe                  | describe state=Empty
DESC-PARTITIONS A group whose partition is not led, or loads, fails alone
  @ SJ model
  @ GroupCoordinatorService.describeGroups
  resign group=a
  resign group=g
  load begin
  describe a g1             | describe a/error=NOT_COORDINATOR a/state=- g1/error=NONE
  describe g g1             | describe g/error=COORDINATOR_LOAD_IN_PROGRESS g1/error=NONE
LIST-SIMPLE A group that stores no more than offsets is listed without protocol type
  @ SJ must
  @ ClassicGroup.asListedGroup
  commit - t-0=1
  [S] list                  | list NONE groups=g g=-
  [J] list                  | list NONE groups=g g=- g.state=Empty g.type=classic
LIST-TYPES The filter of types takes any letter case; without a known type nothing passes
  @ J must
  @ GroupCoordinatorService.listGroups
  commit - t-0=1
  list types=Classic        | list NONE groups=g
  list types=x,CLASSIC      | list NONE groups=g
  list types=consumer       | list NONE groups=-
LIST-LOADING While a partition loads, only Scala's coordinator lists the groups of the others
  @ SJ model
  @ GroupCoordinator.handleListGroups
  @ GroupCoordinatorService.listGroups
  commit - t-0=1
  group a
  resign group=a
  load begin
  [S] list                  | list COORDINATOR_LOAD_IN_PROGRESS groups=g
  [J] list                  | list COORDINATOR_LOAD_IN_PROGRESS groups=-
LIST-RESIGNED Groups of a partition that was given up are not listed, without an error
  @ SJ model
  @ GroupCoordinatorService.listGroups
  commit - t-0=1
  resign
  list                      | list NONE groups=-
DEL-SEVERAL Each group of a DeleteGroups has an error of its own
  @ SJ must since=1.1
  @ GroupCoordinator.handleDeleteGroups
  @ GroupMetadataManager.validateDeleteGroup
  stable A
  group simple
  commit - t-0=5
  delete g simple x simple  | delete g=NON_EMPTY_GROUP simple=NONE x=GROUP_ID_NOT_FOUND
  state none
  group g
  state Stable
DEL-ORDER Scala's coordinator deletes in the order of a map of the names, Java's by partition
  @ SJ model since=1.1
  @ KafkaApis.handleDeleteGroupsRequest
  @ GroupCoordinatorService.deleteGroups
  partition a 47
  partition b 48
  [S] delete g1 nope g2 a b a | delete order=a,b,nope,g1,g2
  [J] delete g1 nope g2 a b a | delete order=a,b,g2,g1,nope
DEL-WAITS In Java's coordinator a deletion waits for its tombstones, and is not read before
  @ J model
  @ GroupCoordinatorService.deleteGroups
  commit - t-0=5
  hold
  delete                    | -
  erase t-0                 | erase GROUP_ID_NOT_FOUND
  list                      | list groups=g
  describe                  | describe state=Empty
  release                   | delete g=NONE
  list                      | list groups=-
DEL-WAITS.scala Scala's coordinator does not wait for the tombstones of a deletion
  @ S model
  @ GroupMetadataManager.cleanupGroupMetadata
  commit - t-0=5
  hold
  delete                    | delete g=NONE
  list                      | list groups=-
DEL-WAITS-TWICE Since 4.1 a deletion waits for earlier writes before it begins
  @ J model
  @ GroupCoordinatorService.deleteGroups
  hold
  commit - t-0=5            | -
  delete                    | -
  [4.0] erase t-0           | erase GROUP_ID_NOT_FOUND
  [4.1 4.2 4.3 4.4] erase t-0 | -
DEL-REFUSED In Java's coordinator a deletion that cannot be stored fails for all of its partition
  @ J model
  @ GroupCoordinatorService.deleteGroups
  broker partitions=1
  group b
  commit - t-0=5
  group a
  commit - t-0=5
  fail NOT_ENOUGH_REPLICAS
  delete a b c              | delete a=COORDINATOR_NOT_AVAILABLE c=COORDINATOR_NOT_AVAILABLE
  list                      | list groups=a,a,b,b
  commit - t-0=6
  list                      | list groups=a,b
DEL-LATE A deletion that is not replicated in time fails, and stands
  @ J model
  @ CoordinatorRuntime.OperationTimeout
  commit - t-0=5
  hold
  delete                    | -
  wait 4999                 | -
  wait 1                    | delete g=COORDINATOR_NOT_AVAILABLE
  erase t-0                 | erase GROUP_ID_NOT_FOUND
DEL-RESIGNED A resignation answers a deletion that waits with NOT_COORDINATOR
  @ J model
  @ CoordinatorRuntime.scheduleUnloadOperation
  hold
  commit - t-0=5            | -
  delete                    | -
  resign                    | - t-0=NOT_COORDINATOR; delete g=NOT_COORDINATOR
DEL-AGAIN A commit makes a simple group of the id of a deleted one
  @ SJ must since=1.1
  @ GroupMetadataManager.getOrMaybeCreateClassicGroup
  commit - t-0=5
  delete                    | delete g=NONE
  commit - t-0=6            | - t-0=NONE
  state Empty gen=0
""",
)
