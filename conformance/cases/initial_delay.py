"""The delay in front of a group's first generation."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "INITIAL",
    """
INIT-002 A joiner within the initial delay extends it by as much again
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance
  @ java GroupMetadataManagerTest.testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance
  broker delay=300
  join A rebalance=900  | -
  wait 299              | -
  join B rebalance=900  | -
  wait 300              | -
  wait 1                | A NONE gen=1; B NONE gen=1
  state AwaitingSync gen=1
INIT-003 The initial delay is extended up to the rebalance timeout
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.shouldDelayRebalanceUptoRebalanceTimeout
  @ java GroupMetadataManagerTest.testDelayRebalanceUptoRebalanceTimeout
  broker delay=300
  join A rebalance=600
  join B rebalance=600
  wait 301              | -
  join C rebalance=600
  wait 298              | -
  wait 1                | A NONE gen=1; B NONE gen=1; C NONE gen=1
INIT-004 The last extension of the initial delay is what the rebalance timeout leaves
  @ SJ must seen=2.8-4.4
  @ scala InitialDelayedJoin.onComplete
  broker delay=300
  join A rebalance=750
  wait 199
  join B rebalance=750
  wait 199
  join C rebalance=750
  wait 299
  join D rebalance=750
  wait 49               | -
  wait 4                | A NONE; B NONE; C NONE; D NONE
INIT-005 A rebalance timeout below the initial delay does not shorten it
  @ SJ must quirk seen=2.8-4.4
  @ scala GroupCoordinator.prepareRebalance
  broker delay=300
  join A rebalance=100
  wait 299              | -
  wait 1                | A NONE gen=1
INIT-007 The initial delay does not end early where all have joined
  @ SJ must seen=2.8-4.4
  @ scala InitialDelayedJoin.tryComplete
  broker delay=300
  join A
  join B
  wait 299              | -
  state PreparingRebalance gen=0 members=A,B
INIT-008 The initial delay does not wait for an id that has not joined
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.onCompleteJoin
  broker delay=300
  join A                | -
  join B v=9            | B MEMBER_ID_REQUIRED
  --
  wait 300              | A NONE gen=1 members=A
  state AwaitingSync gen=1 pending=B
  log none
INIT-009 Where everybody leaves within the initial delay, the group is Empty at its end
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.onCompleteJoin
  broker delay=300
  join A
  --
  leave A               | A UNKNOWN_MEMBER_ID id=-; leave NONE entries=NONE
  state PreparingRebalance gen=0
  wait 300              | -
  state Empty gen=1
  log group gen=1 protocol=- leader=- members=-
INIT-010 A group that became Empty waits for the initial delay again
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.prepareRebalance
  broker delay=300
  stable A
  leave A
  --
  join A id=            | -
  wait 299              | -
  wait 1                | A NONE gen=3
  log none
INIT-011 The initial delay of a group with a past is not extended by joiners
  @ S must quirk seen=2.8-3.9
  @ scala GroupCoordinator.addMemberAndRebalance
  broker delay=300
  stable A
  leave A
  --
  join B rebalance=900
  wait 150
  join C rebalance=900
  wait 149              | -
  wait 1                | B NONE gen=3; C NONE gen=3
INIT-012 The initial delay of a group with a past is extended by joiners, too
  @ J must quirk seen=4.0-4.4
  @ java GroupMetadataManager.addMemberThenRebalanceOrCompleteJoin
  broker delay=300
  stable A
  leave A
  --
  join B rebalance=900
  wait 150
  join C rebalance=900
  wait 449              | -
  wait 1                | B NONE gen=3; C NONE gen=3
  log none
INIT-013 A joiner after the last extension extends the group's next initial delay
  @ SJ model quirk
  @ scala InitialDelayedJoin.onComplete
  broker delay=300
  join A rebalance=300
  join B rebalance=300
  wait 300              | A NONE gen=1; B NONE gen=1
  leave A B
  state Empty gen=2
  --
  join C rebalance=900  | -
  wait 300              | -
  wait 300              | C NONE gen=3
INIT-014 The initial delay ends early when its last member expires
  @ J model quirk
  @ java GroupMetadataManagerTest.testHeartbeatExpirationShouldRemoveMember
  broker delay=1000000
  join A session=1800000 rebalance=2000000
  --
  wait 300000           | A UNKNOWN_MEMBER_ID id=-
  state Empty gen=1
  log group gen=1 protocol=- leader=- members=-
INIT-015 The initial delay runs to its end although its last member expired
  @ S model
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  broker delay=1000000
  join A session=1800000 rebalance=2000000
  wait 300000           | A UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=0
  wait 700000
  state Empty gen=1
""",
)
