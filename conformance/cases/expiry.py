"""When offsets and groups expire."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "EXPIRE",
    """
EXPIRE-002 an Empty group counts from when it became Empty
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
EXPIRE-002.strict a millisecond too early
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  commit A t-0=10
  wait 50001
  leave A
  wait 60998
  fetch t-0 v=7             | fetch t-0=10
  wait 1
  fetch t-0 v=7             | fetch t-0=-1
EXPIRE-RELOADED the time at which a group became Empty survives a failover
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
EXPIRE-003 a fresh commit does not prolong an Empty group
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
EXPIRE-005 a Stable group loses the topics it no longer subscribes to
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
EXPIRE-006 nothing expires during a rebalance
  @ SJ model since=2.8
  @ GroupMetadata.scala (trunk); KAFKA-13636
  broker retention=1 check=1000 partitions=1
  stable A topics=foo session=1000000 rebalance=1000000
  commit A bar-0=10
  join B topics=foo session=1000000 rebalance=1000000
  state PreparingRebalance
  wait 60000
  fetch bar-0 v=7           | fetch bar-0=10
EXPIRE-007 active groups that lose nothing
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
EXPIRE-008 versions 2 to 4 say how long to keep an offset
  @ SJ must since=2.1 seen=2.8,3.9,4.3,4.4
  @ GroupMetadataManagerTest.scala testOffsetExpirationSemantics (trunk)
  broker retention=1 check=1000 partitions=1
  commit - t-0=10 v=3 retention=1000 | - t-0=NONE
  wait 999
  fetch t-0 v=7             | fetch t-0=10
  wait 1
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
EXPIRE-010 offsets of live groups expire, strictly after their time
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
EXPIRE-010.empty an Empty group goes with its last offset
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
EXPIRE-010.pending a commit in flight protects the old offset
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  wait 60999
  hold
  commit - t-0=11           | -
  --
  wait 1
  fetch t-0                 | fetch t-0=10
  log none
EXPIRE-010.record an offset is stored with its time
  broker retention=1 check=1000 partitions=1
  stable A session=100000
  --
  commit A t-0=10
  commit A t-1=10 v=2 retention=5000
  log offset t-0=10 version=1 expires=1060000; offset t-1=10 version=1 expires=1005000
EXPIRE-011 with its last offset an Empty group goes
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
EXPIRE-012 a simple group goes without a tombstone of its own
  @ S model since=2.1
  @ GroupMetadataManagerTest.scala testExpireGroupWithOffsetsOnly (trunk)
  broker retention=1 check=1000 partitions=1
  commit - t-0=10
  --
  wait 60000
  log offset t-0=-
  state none
EXPIRE-013 an Empty group without offsets goes at the next run
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
EXPIRE-014 a plain commit in flight protects the old offset
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
EXPIRE-015 a pending offset of a transaction protects the committed one
  @ J model
  @ OffsetMetadataManagerTest.java testCleanupExpiredOffsetsWithPendingTransactionalOffsets (trunk)
  broker retention=1 check=1000 partitions=1
  commit - foo-0=10
  txn - foo-0=11 pid=10     | - foo-0=NONE
  --
  wait 60000
  log none
EXPIRE-016 a pending offset of a transaction does not protect the committed one
  @ S model since=0.11
  @ GroupMetadata.scala (trunk)
  broker retention=1 check=1000 partitions=1
  commit - foo-0=10
  txn - foo-0=11 pid=10     | - foo-0=NONE
  --
  wait 60000
  log offset foo-0=-
  state Empty
EXPIRE-017 the largest retention does not overflow
  @ LSJ model
  @ GroupCoordinatorTest.scala testOffsetsRetentionMsIntegerOverflow (trunk)
  broker retention=2147483647 check=1000 partitions=1
  commit - t-0=10
  wait 1000
  fetch t-0 v=7             | fetch t-0=10
""",
)
