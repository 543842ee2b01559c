"""When offsets and groups expire."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "EXPIRE",
    """
EXPIRE-002 The retention of an Empty group counts from when it became Empty
  @ SJ must since=2.1 seen=2.8,3.9,4.3,4.4
  @ GroupMetadataManagerTest.scala testOffsetExpirationSemantics (trunk)
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  commit A t-0=10
  wait 50000
  leave A
  wait 59999
  fetch t-0 v=7             | fetch t-0=10
  wait 1
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
EXPIRE-002.strict The retention of an Empty group is over at its millisecond, and not before
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  commit A t-0=10
  wait 50001
  leave A
  wait 60998
  fetch t-0 v=7             | fetch t-0=10
  wait 1
  fetch t-0 v=7             | fetch t-0=-1
EXPIRE-RELOADED The time at which a group became Empty survives a failover
  @ SJ model since=2.1
  @ GroupMetadataManager.scala loadGroup (trunk); KAFKA-10401
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  commit A t-0=10
  wait 50000
  leave A
  wait 5000
  resign
  elect
  wait 50000
  fetch t-0 v=7             | fetch t-0=10
  wait 6000
  fetch t-0 v=7             | fetch t-0=-1
EXPIRE-003 A new commit does not prolong the retention of an Empty group
  @ SJ must since=2.1 seen=2.8,3.9,4.3,4.4
  @ GroupMetadata.scala (trunk) removeExpiredOffsets
  broker retention=1 check=1000 partitions=1
  stable A
  commit A t-0=10
  leave A
  wait 59999
  commit - t-0=99           | - t-0=NONE
  wait 1
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
EXPIRE-005 A Stable group loses the offsets of topics that it does not subscribe to any more
  @ SJ must since=2.4 seen=2.8,3.9,4.3,4.4
  @ GroupMetadataManagerTest.scala testOffsetExpirationOfActiveGroupSemantics (trunk)
  broker retention=1 check=1000 partitions=1
  stable A topics=foo session=100000
  commit A foo-0=10 bar-0=10
  --
  wait 59999
  log none
  wait 1
  log offset bar-0=-
  fetch foo-0 bar-0 v=7     | fetch foo-0=10 bar-0=-1
  state Stable
EXPIRE-006 Nothing expires while a group rebalances
  @ SJ model since=2.8
  @ GroupMetadata.scala (trunk); KAFKA-13636
  broker retention=1 check=1000 partitions=1
  stable A topics=foo session=1000000 rebalance=1000000
  commit A bar-0=10
  join B topics=foo session=1000000 rebalance=1000000
  state PreparingRebalance
  wait 60000
  fetch bar-0 v=7           | fetch bar-0=10
EXPIRE-007 Nothing expires of active groups whose subscriptions cannot be read
  @ SJ must since=2.4 seen=2.8,3.9,4.3,4.4
  @ GroupMetadata.scala (trunk)
  broker retention=1 check=1000000 partitions=1
  group g1
  join A type=connect session=1800000
  sync A A=a
  commit A t-0=10
  group g2
  stable B topics=- session=1800000
  commit B t-0=10
  wait 1000000
  fetch t-0 v=7             | fetch t-0=10
  group g1
  fetch t-0 v=7             | fetch t-0=10
EXPIRE-008 Versions 2 to 4 of a commit say how long its offsets are kept
  @ SJ must since=2.1 seen=2.8,3.9,4.3,4.4
  @ GroupMetadataManagerTest.scala testOffsetExpirationSemantics (trunk)
  broker retention=1 check=1000 partitions=1
  commit - t-0=10 v=3 retention=1000 | - t-0=NONE
  wait 999
  fetch t-0 v=7             | fetch t-0=10
  wait 1
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
EXPIRE-008.stored A stored offset of version 1 that names no end is kept as long as the broker says
  broker retention=1 check=1000 partitions=1
  append t-0=10 version=1 at=1000000
  resign
  elect
  wait 59000
  fetch t-0 v=7             | fetch t-0=10
  wait 1001
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
EXPIRE-008.once An offset that names a retention of 0 goes at the next check
  broker retention=1 check=1000 partitions=1
  commit - t-0=10 v=4 retention=0
  wait 1000
  fetch t-0 v=7             | fetch t-0=-1
EXPIRE-010 Up to 2.0 offsets of live groups expire, too, strictly after their time
  @ L model until=2.0
  @ GroupMetadata.scala (0.10.2)
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  commit A t-0=10
  wait 999
  commit A t-1=10
  wait 59001
  fetch t-0 t-1             | fetch t-0=10 t-1=10
  wait 1000
  fetch t-0 t-1             | fetch t-0=-1 t-1=-1
EXPIRE-010.empty Up to 2.0 an Empty group goes with its last offset
  broker retention=1 check=1000 partitions=1
  stable A
  commit A t-0=10
  leave A
  --
  wait 60000
  fetch t-0                 | fetch t-0=10
  wait 1000
  fetch t-0                 | fetch t-0=-1
  log offset t-0=-; group gone=yes
EXPIRE-010.pending Up to 2.0 a commit in flight keeps the offset before it
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  wait 60999
  hold
  commit - t-0=11           | -
  --
  wait 1
  fetch t-0                 | fetch t-0=10
  log none
EXPIRE-010.record Up to 2.0 the record of an offset says when it expires
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  --
  commit A t-0=10
  commit A t-1=10 v=2 retention=5000
  log offset t-0=10 version=1 expires=1060000; offset t-1=10 version=1 expires=1005000
EXPIRE-010.loaded Up to 2.0 an offset of a record of version 0 is kept from its commit on
  broker retention=2 check=60000 partitions=1
  resign
  append t-0=5 version=0 at=1000000
  elect
  wait 120000
  fetch t-0                 | fetch t-0=5
  wait 60000
  fetch t-0                 | fetch t-0=-1
EXPIRE-011 An Empty group goes with its last offset
  @ SJ model since=2.1
  @ GroupMetadataManagerTest.scala testGroupMetadataRemoval (trunk)
  broker retention=1 check=1000 partitions=1
  stable A
  commit A t-0=10
  leave A
  --
  wait 60000
  log offset t-0=-; group gone=yes
  state none
EXPIRE-012 A group without members goes with its last offset, without a tombstone of its own
  @ S model since=2.1
  @ GroupMetadataManagerTest.scala testExpireGroupWithOffsetsOnly (trunk)
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  --
  wait 60000
  log offset t-0=-
  state none
EXPIRE-013 An Empty group without offsets goes at the next run of the cleaner
  @ LSJ model
  @ GroupMetadataManager.scala (trunk)
  broker retention=1 check=1000 partitions=1
  stable A
  leave A
  --
  wait 999
  log none
  wait 1
  log group gone=yes
  state none
EXPIRE-014 In Scala's coordinator a commit in flight keeps the offset before it
  @ S model since=2.1
  @ GroupMetadata.scala (trunk)
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  wait 59999
  hold
  commit - t-0=11           | -
  --
  wait 1
  log none
  fetch t-0 v=7             | fetch t-0=10
EXPIRE-015 In Java's coordinator an offset of an open transaction keeps the one before it
  @ J model
  @ OffsetMetadataManagerTest.java testCleanupExpiredOffsetsWithPendingTransactionalOffsets (trunk)
  broker retention=1 check=1000 partitions=1
  commit - foo-0=10
  txn - foo-0=11 pid=10     | - foo-0=NONE
  --
  wait 60000
  log none
EXPIRE-016 In Scala's coordinator an offset of an open transaction keeps nothing
  @ S model since=0.11
  @ GroupMetadata.scala (trunk)
  broker retention=1 check=1000 partitions=1
  commit - foo-0=10
  txn - foo-0=11 pid=10     | - foo-0=NONE
  --
  wait 60000
  log offset foo-0=-
  state Empty
EXPIRE-017 The largest retention does not overflow
  @ LSJ model
  @ GroupCoordinatorTest.scala testOffsetsRetentionMsIntegerOverflow (trunk)
  broker retention=2147483647 check=1000 partitions=1
  commit - t-0=10
  wait 1000
  fetch t-0 v=7             | fetch t-0=10
EXPIRE-SIMPLE Each commit to a simple group begins its retention anew
  @ SJ must since=2.1
  @ GroupMetadata.removeExpiredOffsets
  @ ClassicGroup.offsetExpirationCondition
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  wait 30000
  commit - t-0=11
  --
  wait 59999
  fetch t-0 v=7             | fetch t-0=11
  wait 1
  fetch t-0 v=7             | fetch t-0=-1
  [S] log offset t-0=-
  [J] log offset t-0=-; group gone=yes
EXPIRE-REFUSED In Java's coordinator an expiry that cannot be stored is tried at the next check
  @ J model
  @ CoordinatorRuntime.EventBasedCoordinatorTimer
  broker retention=2 check=60000 partitions=1
  commit - t-0=10
  wait 119999
  fail NOT_ENOUGH_REPLICAS
  wait 1
  fetch t-0                 | fetch t-0=10
  wait 59999
  fetch t-0                 | fetch t-0=10
  wait 1
  fetch t-0                 | fetch t-0=-1
EXPIRE-OPEN-TXN An offset expires beside another one of an open transaction, its group does not
  @ J model
  @ OffsetMetadataManager.cleanupExpiredOffsets
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  txn - t-1=5 pid=7
  --
  wait 60000
  log offset t-0=-
  state Empty
""",
)
