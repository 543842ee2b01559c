"""Ids that were handed out and have not joined yet."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "MEMBERID",
    """
MID-001 From version 4 on, a dynamic member is first told its id and must join with it
  @ S must since=2.2 seen=2.8-3.9
  @ scala GroupCoordinatorTest.testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember
  @ java GroupMetadataManagerTest.testGenerateRecordsOnNewClassicGroup
  join A v=4            | A MEMBER_ID_REQUIRED id=A prefix=A gen=-1
  state Empty gen=0
  log none
MID-003 A join with the id that was handed out makes a member
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinator.doCurrentMemberJoinGroup
  join A v=9        | A MEMBER_ID_REQUIRED id=A
  --
  join A            | A NONE gen=1 leader=A id=A
  state AwaitingSync gen=1
  log none
MID-005 MEMBER_ID_REQUIRED starts no rebalance
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testSecondMemberPartiallyJoinAndTimeout
  @ java GroupMetadataManagerTest.testSecondMemberPartiallyJoinAndTimeout
  stable A
  --
  join B v=4        | B MEMBER_ID_REQUIRED
  heartbeat A       | A NONE
  state Stable gen=1 pending=B
  log none
MID-006 An id that was handed out expires by the session timeout asked for
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testSecondMemberPartiallyJoinAndTimeout
  @ java GroupMetadataManagerTest.testHeartbeatExpirationShouldRemovePendingMember
  stable A
  join B v=9 session=5000
  --
  wait 5000 beating=A
  join B            | B UNKNOWN_MEMBER_ID
  state Stable gen=1 pending=-
  log none
MID-007 The join phase does not end early while an id that was handed out is missing
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupCompletionWhenPendingMemberJoins
  @ java GroupMetadataManagerTest.testJoinGroupCompletionWhenPendingMemberJoins
  stable A B
  join C v=9        | C MEMBER_ID_REQUIRED
  --
  join A            | -
  join B            | -
  state PreparingRebalance
  log none
MID-008 The join phase ends once the last id that was handed out has joined
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupCompletionWhenPendingMemberJoins
  @ java GroupMetadataManagerTest.testJoinGroupCompletionWhenPendingMemberJoins
  stable A B
  join C v=9
  join A
  join B
  --
  join C            | A NONE gen=3; B NONE gen=3; C NONE gen=3
  state AwaitingSync
  log none
MID-009 The join phase ends once the last id that was handed out has expired
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupCompletionWhenPendingMemberTimesOut
  @ java GroupMetadataManagerTest.testJoinGroupCompletionWhenPendingMemberTimesOut
  stable A B
  join C v=9 session=5000
  join A
  join B
  --
  wait 4999         | -
  wait 1            | A NONE gen=3 members=A,B; B NONE gen=3
  state AwaitingSync
  log none
MID-011 The rebalance timeout ends the join phase without ids that have not joined
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.onCompleteJoin
  stable A rebalance=5000
  join C v=9 session=20000 rebalance=5000
  join A            | -
  --
  wait 5000         | A NONE gen=2 members=A
  state AwaitingSync pending=C
  join C            | -
  join A            | A NONE gen=3 members=A,C; C NONE gen=3
  log none
MID-012 An id that has not joined is no member: heartbeats and syncs are UNKNOWN_MEMBER_ID
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.validateCurrentMember
  stable A
  join C v=9
  --
  heartbeat C gen=1 | C UNKNOWN_MEMBER_ID
  sync C gen=1      | C UNKNOWN_MEMBER_ID
  state Stable
  log none
MID-013 A dynamic id that joins with an instance id is UNKNOWN_SERVER_ERROR
  @ SJ must seen=2.8-4.4
  @ java GroupMetadataManagerTest.testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException
  @ scala GroupCoordinator.doCurrentMemberJoinGroup
  join C v=9
  --
  join C:i          | C UNKNOWN_SERVER_ERROR
  log none
MID-014 A join refused for its protocols leaves its id valid
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupSecondJoinInconsistentProtocol
  @ java GroupMetadataManagerTest.testJoinGroupSecondJoinInconsistentProtocol
  join A v=9
  --
  join A protocols= | A INCONSISTENT_GROUP_PROTOCOL id=A
  state Empty pending=A
  join A protocols=range | A NONE gen=1
""",
)
