"""Groups of a limited size."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "MAXSIZE",
    """
MAX-001 A group of group.max.size members refuses the next
  @ SJ must since=2.2 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testJoinGroupShouldReceiveErrorIfGroupOverMaxSize
  @ java GroupMetadataManagerTest.testJoinGroupShouldReceiveErrorIfGroupOverMaxSize
  broker size=4
  stable A B C D
  --
  join E                | E GROUP_MAX_SIZE_REACHED id=-
  state Stable gen=4
  log none
MAX-002 Ids that have not joined do not count for group.max.size
  @ SJ must since=2.6 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember
  @ java GroupMetadataManagerTest.testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember
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
MAX-003 group.max.size holds where members join in one step, as up to version 3
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.testDynamicMembersJoinGroupWithMaxSize
  @ java GroupMetadataManagerTest.testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember
  broker size=4 delay=300
  join A
  join B
  join C
  join D
  join E v=3            | E GROUP_MAX_SIZE_REACHED
  wait 600              | A NONE; B NONE; C NONE; D NONE
MAX-004 group.max.size holds for static members, who can rejoin
  @ SJ must since=2.6 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersJoinGroupWithMaxSize
  @ java GroupMetadataManagerTest.testStaticMembersJoinGroupWithMaxSize
  broker size=4 delay=300
  join A:a
  join B:b
  join C:c
  join D:d
  join E:e              | E GROUP_MAX_SIZE_REACHED
  wait 600              | A NONE; B NONE; C NONE; D NONE
  join B                | B NONE
  state AwaitingSync gen=1 members=A,B,C,D
MAX-006 A loaded group above group.max.size rebalances, and the last to rejoin are refused
  @ SJ model since=2.6
  @ scala GroupCoordinatorTest.testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize
  @ java GroupMetadataManagerTest.testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize
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
  [J] join F            | F GROUP_MAX_SIZE_REACHED
  [J] state PreparingRebalance members=A,B,C,D
  [S] join F            | A NONE members=A,B,C,D; B NONE; C NONE; D NONE; F GROUP_MAX_SIZE_REACHED
  [S] state AwaitingSync members=A,B,C,D
  log none
MAX-007 Only Scala's coordinator ends the join phase by a refusal that leaves nobody to wait for
  @ SJ model quirk
  @ scala GroupCoordinator.handleJoinGroup
  @ java GroupMetadataManager.classicGroupJoinToClassicGroup
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  join A                | -
  [S] join B            | A NONE gen=2 members=A; B GROUP_MAX_SIZE_REACHED
  [J] join B            | B GROUP_MAX_SIZE_REACHED
  [J] wait 59999        | -
  [J] wait 1            | A NONE gen=2 members=A
MAX-NONE In 0.10.2 a group has no largest size
  @ L must
  @ 0.10.2 GroupCoordinator.doJoinGroup
  broker size=1
  stable A B
  state Stable members=A,B
""",
)
