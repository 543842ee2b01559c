"""Members with a group instance id."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "STATIC",
    """
STAT-001 A static member joins without being told an id first; the id begins with its instance
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberJoinAsFirstMember
  @ java GroupMetadataManagerTest.testStaticMemberJoinAsFirstMember
  join L:i1             | L NONE gen=1 id=L prefix=i1 leader=L
  state AwaitingSync gen=1
STAT-002 A known instance id with an invented member id is FENCED_INSTANCE_ID
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberReJoinWithExplicitUnknownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithExplicitUnknownMemberId
  stable L:i1
  --
  join X:i1 id=unknown  | X FENCED_INSTANCE_ID
  log none
STAT-004 A second process of a static member fences the first one, which waits for its sync
  @ SJ must since=2.5 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged
  @ java GroupMetadataManagerTest.testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged
  @ java GroupMetadataManagerTest.testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance
  completing L:i1 F:i2
  sync F                | -
  --
  join F2:i2            | F FENCED_INSTANCE_ID
  state PreparingRebalance
  join L                | L NONE gen=3 members=F2,L; F2 NONE gen=3
  state AwaitingSync gen=3
  log none
STAT-005 The process that was replaced is FENCED_INSTANCE_ID when it joins later
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged
  @ java GroupMetadataManagerTest.testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged
  stable L:i1 F:i2
  join L                | -
  --
  join F2:i2            | L NONE gen=3; F2 NONE gen=3
  join F                | F FENCED_INSTANCE_ID gen=-1
  state AwaitingSync gen=3
  log none
STAT-006 From version 9 on, a static leader that returns leads, and is told to skip assigning
  @ SJ must since=3.2 seen=3.9-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndUnknownMemberId(true)
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnknownMemberId
  stable L:i1 F:i2
  --
  join L2:i1 v=9        | L2 NONE gen=2 leader=L2 id=L2 skip=true members=F,L2
  state Stable gen=2
  log group gen=2 protocol=range leader=L2 members=F,L2 instances=i1,i2 work=f,l
STAT-006.loaded After a failover, each return of a static member is given an id of its own
  stable L:i1 F:i2
  resign
  elect
  join L2:i1 v=9        | L2 NONE gen=2 leader=L2 id=L2 skip=true members=F,L2
  join L3:i1 v=9        | L3 NONE gen=2 leader=L3 id=L3 skip=true members=F,L3
  heartbeat L2          | L2 FENCED_INSTANCE_ID
  heartbeat L3          | L3 NONE
STAT-007 Up to version 8, a static leader that returns is told that its old id leads
  @ SJ must since=2.3 seen=3.9-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndUnknownMemberId(false)
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnknownMemberId
  stable L:i1 F:i2
  --
  join L2:i1 v=8        | L2 NONE gen=2 leader=L id=L2 skip=false members=-
  state Stable gen=2
  log group gen=2 protocol=range leader=L2 members=F,L2
STAT-009 A static leader that rejoins with its id rebalances the group
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndKnownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndKnownMemberId
  stable L:i1 F:i2 session=30000
  --
  join L                | -
  wait 30000            | L NONE gen=3 leader=L members=L
  state AwaitingSync gen=3
  log none
STAT-010 Where a static leader does not rejoin, a follower leads that did
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithFollowerIdAndChangeOfProtocol
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol
  stable L:i1 F:i2 protocols=range,roundrobin session=100000 rebalance=5000
  --
  join F protocols=roundrobin | -
  wait 5000             | F NONE gen=3 leader=F members=F,L
  state AwaitingSync gen=3 members=F,L
  log none
STAT-012 A static member that returns without an id gets its assignment without a rebalance
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged
  @ scala GroupCoordinatorTest.staticMemberRejoinAsFollowerWithUnknownMemberId
  @ java GroupMetadataManagerTest.testReplaceStaticMemberInStableStateNoError
  stable L:i1 F:i2
  --
  join F2:i2            | F2 NONE gen=2 members=- leader=L
  sync F2               | F2 NONE work=f
  heartbeat L           | L NONE
  state Stable gen=2
  log group gen=2 protocol=range leader=L members=F2,L
STAT-013 A replacement that cannot be stored is undone, and the old id stays valid
  @ SJ model since=2.5
  @ scala GroupCoordinatorTest.staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure
  @ java GroupMetadataManagerTest.testReplaceStaticMemberInStableStateErrors
  @ scala GroupCoordinatorTest.staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange
  stable L:i1 F:i2
  --
  fail MESSAGE_TOO_LARGE
  join F2:i2            | F2 UNKNOWN_SERVER_ERROR id=- gen=2 type=consumer
  join F                | F NONE gen=2
  sync F                | F NONE work=f
  state Stable gen=2 members=F,L
  log none
STAT-014 A static follower that rejoins with its id unchanged does not rebalance
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
  @ java GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
  stable L:i1 F:i2
  --
  join F                | F NONE gen=2 members=- leader=L
  state Stable gen=2
  log none
STAT-015 A member id with another member's instance id is FENCED_INSTANCE_ID
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinAsFollowerWithMismatchedMemberId
  @ scala GroupCoordinatorTest.staticMemberRejoinAsLeaderWithMismatchedMemberId
  @ java GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithMismatchedInstanceId
  stable L:i1 F:i2
  --
  join F:i1             | F FENCED_INSTANCE_ID
  join L:i2             | L FENCED_INSTANCE_ID
  state Stable gen=2
  log none
STAT-016 SyncGroup and Heartbeat with an instance id and a wrong member id are fenced
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberSyncAsLeaderWithInvalidMemberId
  @ scala GroupCoordinatorTest.staticMemberHeartbeatLeaderWithInvalidMemberId
  @ java GroupMetadataManagerTest.testStaticMemberHeartbeatLeaderWithInvalidMemberId
  stable L:i1 F:i2
  --
  sync L id=invalid     | L FENCED_INSTANCE_ID
  heartbeat L id=invalid | L FENCED_INSTANCE_ID
  state Stable gen=2
  log none
STAT-017 A static member gets a new member id at each return
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.shouldGetDifferentStaticMemberIdAfterEachRejoin
  @ java GroupMetadataManagerTest.testGetDifferentStaticMemberIdAfterEachRejoin
  stable L:i1
  --
  join L2:i1            | L2 NONE id=L2 prefix=i1
  join L3:i1            | L3 NONE id=L3 prefix=i1
  join L4:i1            | L4 NONE id=L4 prefix=i1
  join L5:i1            | L5 NONE id=L5 prefix=i1
  join L6:i1            | L6 NONE id=L6 prefix=i1
  state Stable gen=1 members=L6
  log group members=L2; group members=L3; group members=L4; group members=L5; group members=L6
STAT-018 A known member id with an unknown instance id is UNKNOWN_MEMBER_ID
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberJoinWithUnknownInstanceIdAndKnownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId
  stable L:i1 F:i2
  --
  join L:unknown        | L UNKNOWN_MEMBER_ID
  state Stable gen=2
  log none
STAT-019 A static member that an Empty group holds by a bug is UNKNOWN_SERVER_ERROR
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.staticMemberReJoinWithIllegalStateAsUnknownMember
  @ java GroupMetadataManagerTest.testStaticMemberReJoinWithIllegalStateAsUnknownMember
  stable L:i1 F:i2
  force Empty
  --
  join F2:i2            | F2 UNKNOWN_SERVER_ERROR
  state Empty
  log none
STAT-020 Where no static member rejoins, the join phase goes on until their sessions end
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout
  @ java GroupMetadataManagerTest.testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember
  @ java GroupMetadataManagerTest.testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase
  @ scala GroupCoordinatorTest.groupStuckInRebalanceTimeoutDueToNonjoinedStaticMember
  stable L:i1 F:i2 session=20000 rebalance=5000
  leave :i2
  --
  wait 19999            | -
  state PreparingRebalance gen=2
  wait 1                | -
  state Empty gen=3
  log group gen=3 members=-
STAT-020.left A group whose absent static members left waits the initial delay again
  broker delay=3000
  stable L:i1 F:i2 A
  leave A
  leave :i1 :i2             | leave NONE entries=NONE,NONE
  state Empty
  join B                    | -
  wait 2999                 | -
  wait 1                    | B NONE members=B
STAT-020.second A static member that rejoins waits for the others until the next timeout
  stable A L:i1 F:i2 rebalance=5000
  leave A
  wait 5500                 | -
  heartbeat F
  join L                    | -
  wait 4499                 | -
  wait 1                    | L NONE leader=L members=F,L
STAT-022 A static follower that does not rejoin stays a member of the next generation
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout
  @ java GroupMetadataManagerTest.testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout
  stable L:i1 F:i2 session=100000 rebalance=5000
  join N:i3 rebalance=5000 | -
  join L                | -
  --
  wait 5000             | L NONE gen=3 members=F,L,N; N NONE gen=3
  state AwaitingSync gen=3
  log none
STAT-023 A static leader that does not rejoin loses the lead, and stays a member
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout
  @ java GroupMetadataManagerTest.testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout
  stable L:i1 F:i2 session=100000 rebalance=5000
  join N:i3 rebalance=5000
  join F
  --
  wait 5000             | F NONE gen=3 leader=F/N; N NONE gen=3 leader=F/N
  state AwaitingSync gen=3 members=F,L,N
  log none
STAT-024 A second process of a static member in the join phase fences the first one
  @ SJ must since=2.3 seen=2.8-4.4
  @ java GroupMetadataManagerTest.testJoinGroupReplaceStaticMember
  broker delay=3000
  join L:i1             | -
  --
  join L2:i1            | L FENCED_INSTANCE_ID
  wait 3000             | L2 NONE gen=1 members=L2
  state AwaitingSync gen=1
  log none
STAT-026 The first session of a replacement lasts as long as its predecessor's
  @ SJ must quirk since=3.3 seen=3.9-4.4
  @ scala GroupCoordinator.updateStaticMemberAndRebalance
  stable L:i1 F:i2
  --
  join F2:i2 session=1000 | F2 NONE
  wait 2000
  heartbeat F2          | F2 NONE
  wait 999
  state Stable members=F2,L
  wait 1
  state PreparingRebalance members=L
  log group gen=2 leader=L members=F2,L
STAT-PROTOCOL A replacement by which another protocol would be chosen rebalances
  @ SJ must
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  @ GroupCoordinator.updateStaticMemberAndRebalance
  stable L:i1 F:i2 protocols=range,roundrobin
  --
  join F2:i2 protocols=roundrobin | -
  state PreparingRebalance gen=2 members=F2,L
  log none
STAT-NEW Only in Scala's coordinator a replacement in its first rebalance has a session
  @ SJ model since=2.4
  @ GroupCoordinator.updateStaticMemberAndRebalance
  @ GroupMetadataManager.replaceStaticMember
  stable A rebalance=600000
  join B:i                  | -
  join C:i                  | B FENCED_INSTANCE_ID
  wait 5000
  heartbeat A
  [S] wait 5000             | C UNKNOWN_MEMBER_ID
  [J] wait 5000             | -
""",
)
