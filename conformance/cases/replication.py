"""Writes that are held, refused, overtaken or given up."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "LOG",
    """
LOG-002 a record of an Empty group that cannot be stored is only logged
  @ LS model
  @ scala GroupCoordinator.onCompleteJoin
  stable A
  --
  fail NOT_ENOUGH_REPLICAS
  leave A                   | leave NONE
  state Empty gen=2
  resign
  elect
  state Stable gen=1
  log none
LOG-002.java a record of an Empty group that cannot be stored fails the leave
  @ J model
  stable A
  --
  fail NOT_ENOUGH_REPLICAS
  leave A                   | leave COORDINATOR_NOT_AVAILABLE
  state Empty gen=2
  resign
  elect
  state Stable gen=1
  log none
LOG-ANSWERED the record of a new group times out after its member was admitted
  @ J model
  @ GroupMetadataManager.classicGroupJoinToClassicGroup
  hold
  join A                    | A NONE gen=1
  wait 5000                 | -
  hold off
  sync A A=a                | A NONE work=a
LOG-DEFERRED a held log delays every answer but those of the join phase
  @ SJ model
  @ CoordinatorRuntime.CoordinatorContext.append
  @ DelayedProduce
  stable A
  hold
  commit A t-0=1            | -
  [S] heartbeat A           | A NONE
  [S] release               | A t-0=NONE
  [J] heartbeat A           | -
  [J] release               | A t-0=NONE; A NONE
LOG-EPOCH a newer epoch of an active partition changes nothing
  @ J model
  @ CoordinatorRuntime.scheduleLoadOperation
  stable A
  elect epoch=5
  resign epoch=5            | -
  heartbeat A               | A NONE
LOG-HEARTBEAT an error of a heartbeat does not wait
  @ SJ model
  @ CoordinatorRuntime.CoordinatorWriteEvent.run
  stable A
  hold
  commit A t-0=1            | -
  heartbeat A gen=9         | A ILLEGAL_GENERATION
LOG-KEPT offsets survive a failover
  @ LSJ model
  @ CoordinatorLoaderImpl.load
  @ GroupMetadataManager.loadGroupsAndOffsets
  commit - t-0=1
  commit - t-0=2
  resign
  elect
  state Empty gen=0
  fetch *                   | fetch t-0=2
LOG-NEW-GROUP a group whose first record fails is gone, its timers find nothing
  @ J model
  @ GroupMetadataManager.classicGroupJoinToClassicGroup
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  state none
  wait 300000               | -
LOG-NEW-NAMESAKE a timer of a group that is gone counts up the generation of its namesake
  @ J model
  @ GroupMetadataManager.completeClassicGroupJoin
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  commit - t-0=1            | - t-0=NONE
  wait 3000                 | -
  state Empty gen=1
LOG-NEW-SYNC a sync timer of a group that is gone leaves its namesake alone
  @ J model
  @ GroupMetadataManager.expirePendingSync
  broker partitions=1
  commit - t-0=1/5000       | - t-0=OFFSET_METADATA_TOO_LARGE
  completing A
  group other
  fail NOT_ENOUGH_REPLICAS
  commit - t-0=1            | - t-0=COORDINATOR_NOT_AVAILABLE
  group g
  state none
  commit - t-0=1            | - t-0=NONE
  wait 60000                | -
  state Empty gen=0
LOG-RELOADED what was not committed is not shown after a load either
  @ J model
  @ CoordinatorRuntime.CoordinatorContext.unload
  commit - t-0=1
  hold
  commit - t-0=2            | -
  resign                    | - t-0=NOT_COORDINATOR
  elect
  fetch t-0                 | fetch t-0=1
  release
  fetch t-0                 | fetch t-0=2
LOG-REPLICATED-MEANWHILE replication goes on while nobody leads
  @ J model
  @ CoordinatorRuntime.HighWatermarkListener
  hold
  commit - t-0=2            | -
  resign                    | - t-0=NOT_COORDINATOR
  release                   | -
  elect
  fetch t-0                 | fetch t-0=2
LOG-RESIGNED an unload refuses what waits
  @ J model
  @ CoordinatorRuntime.CoordinatorContext.failCurrentBatch and unload
  hold
  commit - t-0=1            | -
  resign                    | - t-0=NOT_COORDINATOR
LOG-RESUMED an append that is replicated takes what waits before it along
  @ J model
  @ CoordinatorRuntime.DeferredEventCollection
  hold
  commit - t-0=1            | -
  hold off
  commit - t-0=2            | - t-0=NONE; - t-0=NONE
LOG-STATIC-OVERTAKEN a static member returns twice before either is stored
  @ J model
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  stable L:i1 F:i2
  hold
  join L2:i1                | -
  join L3:i1                | L2 FENCED_INSTANCE_ID
  wait 5000                 | L3 COORDINATOR_NOT_AVAILABLE
  state Stable gen=2 members=F,L2
LOG-STATIC-PREPARING a static leader returns and the group rebalances before that is stored
  @ J model
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  stable L:i1 F:i2 G:i3
  hold
  join L2:i1 v=9            | -
  join F meta=2             | -
  release                   | -
  state PreparingRebalance gen=3
LOG-SYNC-GENERATION an assignment is stored after the next generation began
  @ SJ model
  @ GroupMetadataManager.classicGroupSyncToClassicGroup
  @ GroupCoordinator.doSyncGroup
  completing A
  hold
  sync A A=x                | -
  join A meta=2             | A REBALANCE_IN_PROGRESS; A NONE gen=2
  release                   | -
  state AwaitingSync gen=2
LOG-SYNC-PREPARING an assignment is stored after the group moved on
  @ SJ model
  @ GroupMetadataManager.classicGroupSyncToClassicGroup
  @ GroupCoordinator.doSyncGroup
  stable A
  join A                    | A NONE gen=2
  hold
  sync A A=x                | -
  join B                    | A REBALANCE_IN_PROGRESS
  release                   | -
  state PreparingRebalance gen=2
LOG-TIMEOUT a write is given up after its timeout, and stays in the log
  @ SJ model
  @ CoordinatorRuntime.OperationTimeout
  @ DelayedProduce.onExpiration
  hold
  commit - t-0=1            | -
  wait 4999                 | -
  [S] wait 1                | - t-0=REQUEST_TIMED_OUT
  [J] wait 1                | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0                 | fetch t-0=-1
  release                   | -
  [S] fetch t-0             | fetch t-0=-1
  [S] resign
  [S] elect
  fetch t-0                 | fetch t-0=1
LOG-UNCOMMITTED a value replaced before it was committed is not shown
  @ J model
  @ OffsetMetadataManager.fetchOffsets
  commit - t-0=1
  hold
  commit - t-0=2            | -
  commit - t-0=3            | -
  fetch t-0                 | fetch t-0=1
  release to=2              | - t-0=NONE
  fetch t-0                 | fetch t-0=2
  release                   | - t-0=NONE
  fetch t-0                 | fetch t-0=3
LOG-UNLOADED-TIMERS a write that failed by an unload leaves no timer behind
  @ SJ model
  @ CoordinatorRuntime.CoordinatorContext.unload
  completing A
  hold
  sync A A=a                | -
  resign                    | A NOT_COORDINATOR
  wait 300000               | -
""",
)
