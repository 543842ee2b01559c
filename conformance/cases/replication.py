"""Writes that are held, refused, overtaken or given up."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "LOG",
    """
LOG-002 A leave that empties a group succeeds although its record cannot be stored
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
LOG-002.java In Java's coordinator a leave whose record cannot be stored fails, and stands
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
LOG-ANSWERED The first member of a group is kept although the group's first record times out
  @ J model
  @ GroupMetadataManager.classicGroupJoinToClassicGroup
  hold
  join A                    | A NONE gen=1
  wait 5000                 | -
  hold off
  sync A A=a                | A NONE work=a
LOG-DEFERRED A commit waits for replication; in Java's coordinator a heartbeat behind it, too
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
LOG-EPOCH A newer epoch for a partition that is led already changes nothing
  @ J model
  @ CoordinatorRuntime.scheduleLoadOperation
  stable A
  elect epoch=5
  resign epoch=5            | -
  heartbeat A               | A NONE
LOG-HEARTBEAT The error of a heartbeat does not wait for earlier writes
  @ SJ model
  @ CoordinatorRuntime.CoordinatorWriteEvent.run
  stable A
  hold
  commit A t-0=1            | -
  heartbeat A gen=9         | A ILLEGAL_GENERATION
LOG-KEPT Committed offsets survive a failover
  @ LSJ model
  @ CoordinatorLoaderImpl.load
  @ GroupMetadataManager.loadGroupsAndOffsets
  commit - t-0=1
  commit - t-0=2
  resign
  elect
  state Empty gen=0
  fetch *                   | fetch t-0=2
LOG-NEW-GROUP A group whose first record fails is gone, and its timers do nothing
  @ J model
  @ GroupMetadataManager.classicGroupJoinToClassicGroup
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  state none
  wait 300000               | -
LOG-NEW-NAMESAKE A timer of a group that is gone counts up the generation of its namesake
  @ J model
  @ GroupMetadataManager.completeClassicGroupJoin
  broker delay=3000
  fail NOT_ENOUGH_REPLICAS
  join A                    | A COORDINATOR_NOT_AVAILABLE
  commit - t-0=1            | - t-0=NONE
  wait 3000                 | -
  state Empty gen=1
LOG-NEW-SYNC The sync timer of a group that is gone leaves its namesake alone
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
LOG-RELOADED A commit that is not replicated is not shown after a failover, until it is
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
LOG-REPLICATED-MEANWHILE A commit that is replicated while nobody leads is shown after the load
  @ J model
  @ CoordinatorRuntime.HighWatermarkListener
  hold
  commit - t-0=2            | -
  resign                    | - t-0=NOT_COORDINATOR
  release                   | -
  elect
  fetch t-0                 | fetch t-0=2
LOG-RESIGNED A resignation answers what waits for replication with NOT_COORDINATOR
  @ J model
  @ CoordinatorRuntime.CoordinatorContext.failCurrentBatch and unload
  hold
  commit - t-0=1            | -
  resign                    | - t-0=NOT_COORDINATOR
LOG-RESUMED Replication of a write answers all writes before it, too
  @ J model
  @ CoordinatorRuntime.DeferredEventCollection
  hold
  commit - t-0=1            | -
  hold off
  commit - t-0=2            | - t-0=NONE; - t-0=NONE
LOG-STATIC-OVERTAKEN A static member that returns twice unstored fences its first return
  @ J model
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  stable L:i1 F:i2
  hold
  join L2:i1                | -
  join L3:i1                | L2 FENCED_INSTANCE_ID
  wait 5000                 | L3 COORDINATOR_NOT_AVAILABLE
  state Stable gen=2 members=F,L2
LOG-STATIC-PREPARING A rebalance overtakes a static leader's return that is not stored yet
  @ J model
  @ GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin
  stable L:i1 F:i2 G:i3
  hold
  join L2:i1 v=9            | -
  join F meta=2             | -
  release                   | -
  state PreparingRebalance gen=3
LOG-SYNC-GENERATION An assignment that is stored after the next generation began changes nothing
  @ SJ model
  @ GroupMetadataManager.classicGroupSyncToClassicGroup
  @ GroupCoordinator.doSyncGroup
  completing A
  hold
  sync A A=x                | -
  join A meta=2             | A REBALANCE_IN_PROGRESS; A NONE gen=2
  release                   | -
  state AwaitingSync gen=2
LOG-SYNC-PREPARING An assignment that is stored after the group rebalances changes nothing
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
LOG-TIMEOUT A write that is not replicated in time fails, and still counts after a failover
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
LOG-UNCOMMITTED A commit replaced before it was replicated is shown only once it is
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
LOG-UNLOADED-TIMERS A write that failed by a resignation leaves no timer behind
  @ SJ model
  @ CoordinatorRuntime.CoordinatorContext.unload
  completing A
  hold
  sync A A=a                | -
  resign                    | A NOT_COORDINATOR
  wait 300000               | -
LOG-UNLOADED-TIMERS.released What is replicated after a resignation answers nobody
  completing A
  hold
  sync A A=a                | -
  resign                    | A NOT_COORDINATOR
  release                   | -
LOG-LOADED-UNCOMMITTED After a load, too, only a generation that is replicated is described
  @ J model
  @ CoordinatorRuntime.CoordinatorContext
  completing A
  hold
  sync A A=a                | -
  resign                    | A NOT_COORDINATOR
  elect
  describe                  | describe state=Empty
  release                   | -
  describe                  | describe state=Stable
LOG-LOADED-UNCOMMITTED.deleted A deleted group is listed until its tombstone is replicated
  commit - t-0=1
  hold
  delete                    | -
  resign                    | delete g=NOT_COORDINATOR
  elect
  list                      | list groups=g
  release                   | -
  list                      | list groups=-
LOG-LINGER Writes within the linger are appended and answered together, and not read before
  @ J model
  @ CoordinatorRuntime.CoordinatorContext.maybeFlushCurrentBatch
  broker linger=5
  commit - t-0=1            | -
  wait 3                    | -
  commit - t-0=2            | -
  describe                  | describe state=Dead
  fetch t-0                 | fetch t-0=-1
  log none
  wait 2                    | - t-0=NONE; - t-0=NONE
  describe                  | describe state=Empty
  log offset t-0=1; offset t-0=2
LOG-LINGER.one A linger of one millisecond ends a millisecond later
  broker linger=1
  commit - t-0=1            | -
  wait 1                    | - t-0=NONE
LOG-LINGER.refused A refused append fails and undoes all that lingered
  broker linger=5 partitions=1
  commit - t-0=1
  wait 5
  commit - t-0=2            | -
  group other
  commit - t-0=3            | -
  fail NOT_LEADER_OR_FOLLOWER
  wait 5                    | - t-0=NOT_COORDINATOR; - t-0=NOT_COORDINATOR
  state none
  group g
  fetch t-0                 | fetch t-0=1
LOG-LINGER.stable A require-stable fetch waits for what lingers, and fails with it
  broker linger=5
  commit - t-0=1            | -
  fetch t-0 stable=1        | -
  wait 5                    | - t-0=NONE; fetch t-0=1
  commit - t-0=2            | -
  fetch t-0 stable=1        | -
  fail NOT_LEADER_OR_FOLLOWER
  wait 5                    | - t-0=NOT_COORDINATOR; fetch NOT_COORDINATOR
LOG-LINGER.marker A marker appends what lingers first
  broker linger=5
  commit - t-0=1            | -
  marker COMMIT pid=7       | - t-0=NONE; marker NONE
  log offset t-0=1; marker is=COMMIT
LOG-LINGER.deleted A deletion that lingers is undone by a refused append
  broker linger=5
  commit - t-0=1
  wait 5
  delete                    | -
  erase t-0                 | erase GROUP_ID_NOT_FOUND
  describe                  | describe state=Empty
  fail NOT_LEADER_OR_FOLLOWER
  wait 5                    | delete g=NOT_COORDINATOR
  describe                  | describe state=Empty
  fetch t-0                 | fetch t-0=1
LOG-LINGER.resigned A resignation drops what lingers
  broker linger=5
  commit - t-0=1            | -
  resign                    | - t-0=NOT_COORDINATOR
  wait 10                   | -
  log none
LOG-TOGETHER Deletions that a commit lets go on share one append, and its error
  @ J model since=4.3
  @ CoordinatorRuntime.CoordinatorContext.maybeFlushCurrentBatch
  broker linger=-1 partitions=1
  group a
  commit - t-0=1
  group b
  commit - t-0=1
  hold
  commit - t-0=2            | -
  delete a                  | -
  delete b                  | -
  hold off
  fail NOT_LEADER_OR_FOLLOWER
  release                   | - t-0=NONE; delete a=NOT_COORDINATOR; delete b=NOT_COORDINATOR
  delete a b                | delete a=NONE b=NONE
""",
)
