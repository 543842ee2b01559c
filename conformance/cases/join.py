"""JoinGroup: who is admitted, who is told what, what rebalances."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "JOIN",
    """
JOIN-001 The first member of a new group waits the initial delay, leads, and gets generation 1
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.testValidJoinGroup
  broker delay=3000
  join A v=3        | -
  [S] log none
  [J] log group gen=0 leader=- members=- protocol=-
  --
  wait 2999         | -
  wait 1            | A NONE gen=1 leader=A id=A prefix=A members=A protocol=range
  state AwaitingSync gen=1
  log none
JOIN-002 The first join of 0.10.2 is answered at once: there is no initial delay
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinator.prepareRebalance
  @ 0.10.2 GroupCoordinatorResponseTest.testValidJoinGroup
  broker delay=3000
  join A                | A NONE gen=1 leader=A
  state AwaitingSync gen=1
  log none
JOIN-003 A member id that a new group did not hand out is UNKNOWN_MEMBER_ID, and makes no group
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testJoinGroupUnknownConsumerNewGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupUnknownConsumerNewGroup
  [L] join A id=ghost       | A UNKNOWN_MEMBER_ID id=ghost gen=0
  [SJ] join A id=ghost      | A UNKNOWN_MEMBER_ID id=ghost gen=-1
  state none
  log none
JOIN-004 A member id that a known group did not hand out is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testJoinGroupUnknownConsumerExistingGroup
  @ java GroupMetadataManagerTest.testJoinGroupUnknownConsumerExistingGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupUnknownConsumerExistingGroup
  stable A
  --
  join B id=ghost   | B UNKNOWN_MEMBER_ID id=ghost
  state Stable gen=1
  log none
JOIN-006 Every API of groups answers NOT_COORDINATOR where the group is not coordinated
  @ LSJ must seen=3.9,4.4
  @ scala GroupCoordinatorTest.testJoinGroupWrongCoordinator
  @ scala GroupCoordinatorTest.testSyncGroupNotCoordinator
  @ scala GroupCoordinatorTest.testHeartbeatWrongCoordinator
  @ scala GroupCoordinatorTest.testLeaveGroupWrongCoordinator
  @ scala GroupCoordinatorTest.testDescribeGroupWrongCoordinator
  @ scala GroupCoordinatorTest.testDeleteGroupWithWrongCoordinator
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupWrongCoordinator
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatWrongCoordinator
  stable A
  resign
  --
  join B            | B NOT_COORDINATOR id=-
  sync A            | A NOT_COORDINATOR
  heartbeat A       | A NOT_COORDINATOR
  leave A           | leave NOT_COORDINATOR entries=-
  describe          | describe error=NOT_COORDINATOR state=- type=- protocol=- members=-
  [SJ] delete       | delete g=NOT_COORDINATOR
  commit A t-0=1    | A t-0=NOT_COORDINATOR
  log none
JOIN-010 A protocol type other than the group's is INCONSISTENT_GROUP_PROTOCOL
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testJoinGroupInconsistentProtocolType
  @ java GroupMetadataManagerTest.testClassicGroupJoinInconsistentProtocolType
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupInconsistentProtocolType
  stable A
  --
  join B type=connect | B INCONSISTENT_GROUP_PROTOCOL id=-
  state Stable gen=1
  log none
JOIN-012 A join with an empty protocol type is refused, and leaves an Empty group behind
  @ SJ must since=1.0 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupWithEmptyProtocolType
  @ java GroupMetadataManagerTest.testJoinGroupWithEmptyProtocolType
  join A type=      | A INCONSISTENT_GROUP_PROTOCOL
  join B:i1 type=   | B INCONSISTENT_GROUP_PROTOCOL
  state Empty gen=0
JOIN-015 A join into a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.testJoinGroupUnknownConsumerNewDeadGroup
  @ java GroupMetadataManagerTest.testJoinGroupUnknownConsumerNewDeadGroup
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup
  @ java GroupMetadataManagerTest.testExistingMemberJoinDeadGroup
  stable A
  force Dead
  --
  join B            | B COORDINATOR_NOT_AVAILABLE id=-
  join A            | A COORDINATOR_NOT_AVAILABLE id=A
  log none
JOIN-019 A follower that rejoins a Stable group unchanged is told the present generation
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testJoinGroupFromUnchangedFollowerDoesNotRebalance
  @ java GroupMetadataManagerTest.testJoinGroupFromUnchangedFollowerDoesNotRebalance
  @ java GroupMetadataManagerTest.testJoinGroupExistingMemberDoesNotTriggerRebalanceInStableState
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupFromUnchangedFollowerDoesNotRebalance
  stable A B
  --
  join B            | B NONE gen=2 members=- leader=A
  state Stable gen=2
  log none
JOIN-020 A leader that rejoins a Stable group rebalances it, also with the same metadata
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testJoinGroupFromUnchangedLeaderShouldRebalance
  @ java GroupMetadataManagerTest.testJoinGroupFromUnchangedLeaderShouldRebalance
  @ java GroupMetadataManagerTest.testJoinGroupAsExistingLeaderTriggersRebalanceInStableState
  @ 0.10.2 GroupCoordinatorResponseTest.testJoinGroupFromUnchangedLeaderShouldRebalance
  stable A
  --
  join A            | A NONE gen=2 leader=A members=A
  state AwaitingSync gen=2
  log none
JOIN-021 A follower that rejoins a Stable group with new metadata rebalances it
  @ LSJ must seen=0.10.2-4.4
  @ java GroupMetadataManagerTest.testJoinGroupAsExistingMemberWithUpdatedMetadataTriggersRebalanceInStableState
  @ scala GroupCoordinator.doCurrentMemberJoinGroup
  stable A B
  --
  join B meta=2     | -
  state PreparingRebalance gen=2
  join A            | A NONE gen=3 members=A,B; B NONE gen=3
  log none
JOIN-022 Another order of the same protocols rebalances, too
  @ LSJ must seen=0.10.2-4.4
  @ scala MemberMetadataTest.testMatchesSupportedProtocols
  stable A B protocols=range,roundrobin
  --
  join B protocols=roundrobin,range | -
  state PreparingRebalance
  log none
JOIN-025 A rejoin with new metadata in the sync phase sends those who wait there back
  @ LSJ must seen=0.10.2-4.4
  @ java GroupMetadataManagerTest.testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance
  @ scala GroupCoordinator.doCurrentMemberJoinGroup
  @ scala GroupCoordinatorTest.staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeOfProtocol
  completing A B C
  sync C            | -
  --
  join B meta=2     | C REBALANCE_IN_PROGRESS work=-
  state PreparingRebalance gen=3
  log none
JOIN-025.leader A leader that rejoins unchanged in the sync phase is told its members again
  completing A B
  join A            | A NONE gen=2 members=A,B
  join B            | B NONE gen=2 members=-
  state AwaitingSync gen=2
JOIN-026 A lone member cannot change to protocols that it did not offer before
  @ LSJ must quirk seen=0.10.2-4.4
  @ scala GroupMetadata.supportsProtocols
  stable A
  --
  join A protocols=roundrobin | A INCONSISTENT_GROUP_PROTOCOL id=A
  state Stable gen=1
  log none
JOIN-027 An Empty group takes another protocol type
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadata.supportsProtocols, add
  stable A
  leave A
  --
  join B v=9 type=connect protocols=default
  join B            | B NONE gen=3 protocol=default
  [SJ] sync B       | B NONE type=connect name=default
  [L] state AwaitingSync gen=3 type=connect
  [SJ] state Stable gen=3 type=connect
JOIN-028 Each completed rebalance adds 1 to the generation
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testGenerationIdIncrementsOnRebalance
  @ java GroupMetadataManagerTest.testGenerationIdIncrementsOnRebalance
  @ 0.10.2 GroupCoordinatorResponseTest.testGenerationIdIncrementsOnRebalance
  stable A
  --
  join A            | A NONE gen=2
  state AwaitingSync gen=2
  log none
JOIN-029 From version 7 on, the answer to a join carries the protocol type
  @ SJ must since=2.5 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupReturnsTheProtocolType
  @ java GroupMetadataManagerTest.testJoinGroupReturnsTheProtocolType
  broker delay=300
  join A v=7        | A MEMBER_ID_REQUIRED
  join A v=7        | -
  join B v=7        | B MEMBER_ID_REQUIRED
  join B v=7        | -
  wait 600          | A NONE gen=1 type=consumer; B NONE gen=1 type=consumer
  state AwaitingSync gen=1
JOIN-032 A refused join of 0.10.2 carries generation 0
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinator.joinError
  join A id=ghost           | A UNKNOWN_MEMBER_ID gen=0 protocol=- leader=-
JOIN-033 In version 0 the session timeout is the rebalance timeout, too
  @ LSJ model
  @ clients JoinGroupRequest.maybeOverrideRebalanceTimeout
  join A v=0 session=6000   | A NONE gen=1
  sync A
  join B session=4000 rebalance=4000 | -
  --
  wait 5999 beating=A       | -
  wait 1                    | B NONE gen=2 leader=B members=B
  state AwaitingSync
  log none
JOIN-034 Only the leader is told the members, with their metadata of the chosen protocol
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.onCompleteJoin
  stable A protocols=range,roundrobin
  join B protocols=range,roundrobin | -
  join A            | A NONE gen=2 leader=A members=A,B metadata=range,range protocol=range; B NONE gen=2 leader=A members=- protocol=range
JOIN-036 A member's second JoinGroup replaces its parked one, which is never answered
  @ LSJ must quirk seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing
  @ scala GroupMetadata.updateMember
  @ scala GroupCoordinator.doSyncGroup
  stable A B
  join A            | -
  join A            | -
  join B            | A NONE gen=3; B NONE gen=3
  wait 300000       | -
JOIN-036.sync A member's second SyncGroup replaces its parked one, which is never answered
  completing A B
  sync B            | -
  sync B            | -
  sync A B=b        | A NONE; B NONE work=b
JOIN-037 What follows a parked JoinGroup on its connection waits until that is answered
  @ LSJ must seen=0.10.2-4.4
  @ broker socket muting (comment in GroupCoordinator.addMemberAndRebalance)
  stable A B
  join A on=c1              | -
  heartbeat A on=c1         | -
  heartbeat A               | A REBALANCE_IN_PROGRESS
  [L] join B                | A NONE gen=3; B NONE gen=3; A REBALANCE_IN_PROGRESS
  [SJ] join B               | A NONE gen=3; B NONE gen=3; A ILLEGAL_GENERATION
JOIN-038 A member keeps the client id and host of its first join
  @ LSJ must quirk seen=0.10.2-4.4
  @ scala GroupMetadata.updateMember
  stable A
  --
  join A client=other | A NONE gen=2
  sync A A=a
  describe          | describe state=Stable clients=A hosts=/127.0.0.1
  log group gen=2 members=A clients=A
JOIN-039 A rejoin changes session and rebalance timeout
  @ SJ model since=3.3
  @ scala GroupCoordinatorTest.staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange
  @ scala GroupMetadataTest.testUpdateMember
  stable A B
  --
  join B session=20000 rebalance=70000 meta=2 | -
  join A            | A NONE; B NONE
  sync A A=a
  log group gen=3 session=10000,20000/20000,10000 rebalance=60000,70000/70000,60000
JOIN-039.frozen Up to 3.2 a rejoin does not change the timeouts
  @ LS model until=3.2
  stable A
  --
  join A session=20000  | A NONE
  sync A A=a
  log group session=10000
JOIN-EMPTY A member that an Empty group holds by a bug is UNKNOWN_MEMBER_ID when it joins
  @ J model
  @ GroupMetadataManager.classicGroupJoinExistingMember
  stable A
  force Empty
  join A                | A UNKNOWN_MEMBER_ID id=A
JOIN-GROUP-ID An empty group id is INVALID_GROUP_ID for all APIs of membership
  @ SJ must
  @ GroupCoordinatorService.joinGroup and isGroupIdNotEmpty
  @ GroupCoordinator.validateGroupStatus
  group -
  join A                | A INVALID_GROUP_ID id=-
  sync A gen=1          | A INVALID_GROUP_ID
  heartbeat A gen=1     | A INVALID_GROUP_ID
  leave A               | leave INVALID_GROUP_ID
JOIN-GROUP-ID.stored An empty group id that stores offsets is refused by heartbeats all the same
  group -
  commit - t-0=1            | - t-0=NONE
  heartbeat A id=m gen=1    | A INVALID_GROUP_ID
JOIN-MANY A group has room for more members than the first size of Java's table
  @ SJ must
  @ java.util.HashMap.resize
  broker delay=1000
  join A
  join B
  join C
  join D
  join E
  join F
  join G
  join H
  join I
  join J
  join K
  join L
  join M
  wait 1000
  wait 1000
  state AwaitingSync gen=1 members=A,B,C,D,E,F,G,H,I,J,K,L,M
JOIN-SESSION A session timeout below the broker's minimum is INVALID_SESSION_TIMEOUT
  @ SJ must
  @ GroupCoordinatorService.joinGroup
  @ GroupCoordinator.handleJoinGroup
  broker session_min=6000
  join A session=5999   | A INVALID_SESSION_TIMEOUT id=-
  state none
JOIN-FIRST-REFUSED Only Java's coordinator takes a new group back when its record is refused
  @ SJ model
  @ GroupCoordinator.handleJoinGroup
  @ GroupMetadataManager.classicGroupJoin
  fail NOT_LEADER_OR_FOLLOWER
  join A v=9
  [S] state Empty
  [J] state none
JOIN-ORDER-OF-CHECKS Scala's coordinator checks its leadership before the session timeout
  @ SJ must
  @ GroupCoordinator.handleJoinGroup
  @ GroupCoordinatorService.joinGroup
  resign
  [S] join A id=m session=1 | A NOT_COORDINATOR id=m
  [J] join A id=m session=1 | A INVALID_SESSION_TIMEOUT id=m
JOIN-NO-TYPE In 0.10.2 the first member of a group needs no protocol type
  @ L must
  @ 0.10.2 GroupCoordinator.doJoinGroup
  join A type=              | A NONE gen=1 leader=A
  state AwaitingSync
""",
)
