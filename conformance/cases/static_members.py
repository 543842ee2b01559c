"""Members with a group instance id."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "STATIC",
    """
STAT-001 a static first member
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberJoinAsFirstMember
  @ java GroupMetadataManagerTest.testStaticMemberJoinAsFirstMember
  join L:i1             | L NONE gen=1 id=L prefix=i1 leader=L
  state AwaitingSync gen=1
STAT-002 an invented member id with a known instance
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberReJoinWithExplicitUnknownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithExplicitUnknownMemberId
  stable L:i1
  --
  join X:i1 id=unknown  | X FENCED_INSTANCE_ID
  log none
STAT-004 a duplicate follower replaces one that syncs
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
STAT-005 a duplicate follower joins first, the old one comes late
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
STAT-006 the leader returns without an id, version 9
  @ SJ must since=3.2 seen=3.9-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndUnknownMemberId(true)
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnknownMemberId
  stable L:i1 F:i2
  --
  join L2:i1 v=9        | L2 NONE gen=2 leader=L2 id=L2 skip=true members=F,L2
  state Stable gen=2
  log group gen=2 protocol=range leader=L2 members=F,L2 instances=i1,i2 work=f,l
STAT-007 the leader returns without an id, version 8
  @ SJ must since=2.3 seen=3.9-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndUnknownMemberId(false)
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnknownMemberId
  stable L:i1 F:i2
  --
  join L2:i1 v=8        | L2 NONE gen=2 leader=L id=L2 skip=false members=-
  state Stable gen=2
  log group gen=2 protocol=range leader=L2 members=F,L2
STAT-009 the leader returns with its id
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithLeaderIdAndKnownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndKnownMemberId
  stable L:i1 F:i2 session=30000
  --
  join L                | -
  wait 30000            | L NONE gen=3 leader=L members=L
  state AwaitingSync gen=3
  log none
STAT-010 a follower with its id changes protocols, the leader is absent
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinWithFollowerIdAndChangeOfProtocol
  @ java GroupMetadataManagerTest.testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol
  stable L:i1 F:i2 protocols=range,roundrobin session=100000 rebalance=5000
  --
  join F protocols=roundrobin | -
  wait 5000             | F NONE gen=3 leader=F members=F,L
  state AwaitingSync gen=3 members=F,L
  log none
STAT-012 a replacement that keeps the selected protocol
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
STAT-013 a replacement cannot be stored
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
STAT-014 a follower returns with its id, nothing changed
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
  @ java GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
  stable L:i1 F:i2
  --
  join F                | F NONE gen=2 members=- leader=L
  state Stable gen=2
  log none
STAT-015 member id and instance id of different members
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
STAT-016 a wrong member id in SyncGroup and Heartbeat
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
STAT-017 a new id on every return
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
STAT-018 a known member id with an unknown instance id
  @ SJ must since=2.3 seen=2.8-4.4
  @ scala GroupCoordinatorTest.staticMemberJoinWithUnknownInstanceIdAndKnownMemberId
  @ java GroupMetadataManagerTest.testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId
  stable L:i1 F:i2
  --
  join L:unknown        | L UNKNOWN_MEMBER_ID
  state Stable gen=2
  log none
STAT-019 an Empty group that knows a static member is a bug
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.staticMemberReJoinWithIllegalStateAsUnknownMember
  @ java GroupMetadataManagerTest.testStaticMemberReJoinWithIllegalStateAsUnknownMember
  stable L:i1 F:i2
  force Empty
  --
  join F2:i2            | F2 UNKNOWN_SERVER_ERROR
  state Empty
  log none
STAT-020 a join phase cannot end without a parked member
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
STAT-022 an absent static follower stays in the generation
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
STAT-023 an absent static leader loses the lead, not the membership
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
STAT-024 a replacement while preparing
  @ SJ must since=2.3 seen=2.8-4.4
  @ java GroupMetadataManagerTest.testJoinGroupReplaceStaticMember
  broker delay=3000
  join L:i1             | -
  --
  join L2:i1            | L FENCED_INSTANCE_ID
  wait 3000             | L2 NONE gen=1 members=L2
  state AwaitingSync gen=1
  log none
STAT-026 the first session after a replacement uses the old timeout
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
STAT-PROTOCOL a replacement that changes the selected protocol
  @ SJ must
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  @ GroupCoordinator.updateStaticMemberAndRebalance
  stable L:i1 F:i2 protocols=range,roundrobin
  --
  join F2:i2 protocols=roundrobin | -
  state PreparingRebalance gen=2 members=F2,L
  log none
""",
)
