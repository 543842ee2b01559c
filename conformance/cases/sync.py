"""SyncGroup: who brings the assignment and who gets it."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "SYNC",
    """
SYNC-001 After the leader's sync a follower gets its assignment at once
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSyncGroupFollowerAfterLeader
  @ java GroupMetadataManagerTest.testSyncGroupFollowerAfterLeader
  @ 0.10.2 GroupCoordinatorResponseTest.testSyncGroupFollowerAfterLeader
  completing A B
  --
  sync A A=a B=b        | A NONE work=a
  sync B                | B NONE work=b
  state Stable gen=2
  log group gen=2 protocol=range type=consumer leader=A members=A,B work=a,b metadata=range,range clients=A,B hosts=/127.0.0.1,/127.0.0.1
SYNC-002 A follower's sync waits for the leader's
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSyncGroupLeaderAfterFollower
  @ java GroupMetadataManagerTest.testSyncGroupLeaderAfterFollower
  @ 0.10.2 GroupCoordinatorResponseTest.testSyncGroupLeaderAfterFollower
  completing A B
  --
  sync B                | -
  sync A A=a B=b        | A NONE work=a; B NONE work=b
  state Stable gen=2
  log group gen=2 protocol=range type=consumer leader=A members=A,B work=a,b metadata=range,range clients=A,B hosts=/127.0.0.1,/127.0.0.1
SYNC-003 A member that the leader left out gets an empty assignment
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSyncGroupEmptyAssignment
  @ java GroupMetadataManagerTest.testSyncGroupEmptyAssignment
  @ 0.10.2 GroupCoordinatorResponseTest.testSyncGroupEmptyAssignment
  completing A
  --
  sync A                | A NONE work=-
  state Stable gen=1
  log group gen=1 protocol=range leader=A members=A work=-
SYNC-004 An assignment for somebody who is no member is passed over
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.doSyncGroup
  completing A B
  --
  sync A A=a Z=z        | A NONE work=a
  sync B                | B NONE work=-
  state Stable
  log group leader=A members=A,B
SYNC-005 Assignments from a follower are passed over
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.doSyncGroup
  completing A B
  --
  sync B A=x B=y        | -
  sync A A=a B=b        | A NONE work=a; B NONE work=b
  log group leader=A members=A,B
SYNC-006 A sync with an unknown group is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSyncGroupFromUnknownGroup
  @ java GroupMetadataManagerTest.testSyncGroupFromUnknownGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testSyncGroupFromUnknownGroup
  sync A gen=1 id=a     | A UNKNOWN_MEMBER_ID
  state none
  log none
SYNC-011 A sync in the join phase is REBALANCE_IN_PROGRESS
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.doSyncGroup
  stable A
  join B
  --
  sync A                | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=1
  log none
SYNC-012 A sync with a Stable group gets the stored assignment
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.doSyncGroup
  stable A B
  --
  [L] sync B            | B NONE work=b
  [SJ] sync B           | B NONE work=b type=consumer name=range
  state Stable gen=2
  log none
SYNC-012.session In Scala's coordinator a sync with a Stable group restarts the session
  @ S model
  stable A
  wait 9000
  sync A                | A NONE
  wait 9000
  state Stable
SYNC-013 A leader's sync with a Stable group changes no assignment
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.doSyncGroup
  stable A B
  --
  sync A A=x B=y        | A NONE work=a
  sync B                | B NONE work=b
  state Stable gen=2
  log none
SYNC-014 Where the leader dies in the sync phase, followers are sent back and one of them leads
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testLeaderFailureInSyncGroup
  @ java GroupMetadataManagerTest.testLeaderFailureInSyncGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testLeaderFailureInSyncGroup
  completing A B
  sync B                | -
  --
  wait 10000            | B REBALANCE_IN_PROGRESS
  join B                | B NONE gen=3 leader=B
  state AwaitingSync gen=3
  log none
SYNC-LEFT-OUT A member that a later assignment leaves out loses its earlier one
  @ LSJ must
  @ scala GroupCoordinator.setAndPropagateAssignment
  stable A B
  join A                | -
  join B                | A NONE gen=3; B NONE gen=3
  sync B                | -
  sync A A=a            | A NONE work=a; B NONE work=-
SYNC-OLD-GENERATION A sync of another generation of a Stable group is ILLEGAL_GENERATION
  @ LSJ must
  @ scala GroupCoordinator.doSyncGroup
  stable A B
  sync B gen=1          | B ILLEGAL_GENERATION
  sync B gen=3          | B ILLEGAL_GENERATION
  state Stable gen=2
SYNC-015 A sync with a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.testSyncDeadGroup
  stable A
  force Dead
  --
  sync A                | A COORDINATOR_NOT_AVAILABLE
  log none
SYNC-016 A sync with an Empty group is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.validateSyncGroup
  stable A
  leave A
  --
  sync A gen=2          | A UNKNOWN_MEMBER_ID
  state Empty gen=2
  log none
SYNC-016.scala An Empty group answers a sync as any other group does
  @ S model
  stable A
  leave A
  sync A gen=2          | A UNKNOWN_MEMBER_ID
SYNC-020 Protocol type and name that fit are accepted and told back
  @ SJ must since=2.5 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent
  @ java GroupMetadataManagerTest.testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent
  @ scala GroupCoordinatorTest.testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided
  completing A B
  --
  sync A type=consumer name=range | A NONE type=consumer name=range
  state Stable
  log group gen=2 protocol=range leader=A members=A,B
SYNC-021 From version 5 on, a sync without protocol type or name is refused
  @ SJ must since=2.5 seen=2.8-4.4
  @ scala KafkaApis.handleSyncGroupRequest
  completing A
  sync A type=-             | A INCONSISTENT_GROUP_PROTOCOL
  sync A name=-             | A INCONSISTENT_GROUP_PROTOCOL
  state AwaitingSync gen=1
  group nobody
  sync A type=-             | A INCONSISTENT_GROUP_PROTOCOL
SYNC-025 Where the assignment cannot be appended all get the error, and the group rebalances
  @ LSJ model
  @ java GroupMetadataManagerTest.testSyncGroupAsLeaderAppendFailureTransformsError
  @ scala GroupCoordinator.doSyncGroup
  completing A B
  sync B                | -
  --
  fail NOT_LEADER_OR_FOLLOWER
  sync A A=a B=b        | A NOT_COORDINATOR work=-; B NOT_COORDINATOR work=-
  state PreparingRebalance gen=2
  log none
SYNC-026 Each error of an assignment's append becomes one certain error of SyncGroup
  @ SJ model
  @ java GroupMetadataManagerTest.testJoinGroupAppendErrorConversion
  @ scala GroupMetadataManager.storeGroup
  completing A
  --
  fail UNKNOWN_TOPIC_OR_PARTITION
  sync A A=a            | A COORDINATOR_NOT_AVAILABLE work=-
  join A                | A NONE
  fail NOT_ENOUGH_REPLICAS
  sync A A=a            | A COORDINATOR_NOT_AVAILABLE work=-
  join A                | A NONE
  fail NOT_ENOUGH_REPLICAS_AFTER_APPEND
  [S] sync A A=a        | A COORDINATOR_NOT_AVAILABLE work=-
  [J] sync A A=a        | A NOT_ENOUGH_REPLICAS_AFTER_APPEND work=-
  join A                | A NONE
  fail KAFKA_STORAGE_ERROR
  sync A A=a            | A NOT_COORDINATOR work=-
  join A                | A NONE
  fail REQUEST_TIMED_OUT
  [S] sync A A=a        | A REBALANCE_IN_PROGRESS work=-
  [J] sync A A=a        | A COORDINATOR_NOT_AVAILABLE work=-
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
SYNC-GENERATION A sync of another generation in the sync phase is ILLEGAL_GENERATION
  @ SJ must
  @ ClassicGroup.validateSyncGroup
  @ GroupCoordinator.validateSyncGroup
  completing A
  --
  sync A gen=2          | A ILLEGAL_GENERATION
  state AwaitingSync gen=1
  log none
SYNC-PROTOCOL A sync with another protocol type or name is INCONSISTENT_GROUP_PROTOCOL
  @ SJ must
  @ GroupMetadataManager.validateSyncGroup
  @ GroupCoordinator.validateSyncGroup
  completing A
  --
  sync A type=connect name=range    | A INCONSISTENT_GROUP_PROTOCOL
  sync A type=consumer name=sticky  | A INCONSISTENT_GROUP_PROTOCOL
  log none
""",
)
