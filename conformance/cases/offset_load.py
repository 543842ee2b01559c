"""State read back from the offsets log."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "OFFSETLOAD",
    """
OLOAD-001 Offsets without a group's record are loaded as an Empty group without protocol type
  @ LSJ model
  @ GroupMetadataManagerTest.scala testLoadOffsetsWithoutGroup (trunk)
  append foo-0=23
  append foo-1=455
  append bar-0=8992
  resign
  elect
  state Empty gen=0 type=-
  fetch *               | fetch foo-0=23 foo-1=455 bar-0=8992
OLOAD-002 A group with members is loaded as Stable, and their sessions begin
  @ LSJ model
  @ GroupMetadataManagerTest.scala testLoadOffsetsAndGroup (trunk)
  append t-0=5
  append group gen=935 members=A
  resign
  elect
  state Stable gen=935 members=A
  wait 9999
  state Stable
  wait 1
  state Empty gen=936
OLOAD-004 A tombstone takes its offset away
  @ LSJ model
  @ GroupMetadataManagerTest.scala testLoadOffsetsWithTombstones (trunk)
  append foo-0=23
  append foo-1=455
  append foo-1=
  resign
  elect
  fetch foo-0 foo-1     | fetch foo-0=23 foo-1=-1
OLOAD-005 A tombstone of a group takes the group away, but no offsets
  @ LSJ model
  @ GroupMetadataManagerTest.scala testLoadGroupWithTombstone, testOffsetWriteAfterGroupRemoved (trunk)
  append group gen=293 members=A
  append group=
  resign
  elect
  state none
OLOAD-005.offsets Offsets after a group's tombstone make a group without protocol type
  append group gen=293 members=A
  append group=
  append foo-0=23
  resign
  elect
  state Empty gen=0 type=-
  fetch foo-0           | fetch foo-0=23
OLOAD-005.before Offsets before a group's tombstone stay
  append foo-0=23
  append group=
  append foo-1=5
  resign
  elect
  state Empty gen=0 type=-
  fetch foo-0 foo-1     | fetch foo-0=23 foo-1=5
OLOAD-005.unknown The tombstone of a group that nothing else tells of is passed over
  append group=
  append foo-0=23
  resign
  elect
  state Empty gen=0 type=-
  fetch foo-0           | fetch foo-0=23
OLOAD-006 Offsets of committed transactions are loaded, those of aborted ones are not
  @ SJ model since=0.11
  @ GroupMetadataManagerTest.scala testLoadTransactionalOffsetCommitsFromMultipleProducers (trunk) and siblings
  txn - foo-0=23 pid=1000
  txn - bar-0=45 pid=1001
  marker COMMIT pid=1000
  marker ABORT pid=1001
  resign
  elect
  fetch * v=7               | fetch foo-0=23 count=1
  fetch * v=7 stable=1      | fetch foo-0=23 foo-0.error=NONE count=1
OLOAD-007 The offsets of an open transaction are unstable after a load, until its marker
  @ SJ model since=2.5
  @ GroupMetadataManagerTest.scala testGroupLoadedWithPendingCommits (trunk)
  txn - foo-0=23 pid=1000
  resign
  elect
  fetch foo-0 v=7 stable=1  | fetch foo-0=-1 foo-0.error=UNSTABLE_OFFSET_COMMIT
  marker COMMIT pid=1000
  fetch foo-0 v=7           | fetch foo-0=23 foo-0.error=NONE
OLOAD-008 Of several records of a partition the last one counts, also with transactions
  @ SJ model since=0.11
  @ GroupMetadataManagerTest.scala testGroupLoadWithConsumerAndTransactionalOffsetCommitsConsumerWins, ...TransactionWins (trunk)
  txn - foo-0=23 pid=1000
  commit - foo-0=24
  marker COMMIT pid=1000
  resign
  elect
  fetch foo-0 v=7           | fetch foo-0=24
OLOAD-008.txn Of several records of a partition the last one counts, also a transaction's
  commit - foo-0=24
  txn - foo-0=23 pid=1000
  marker COMMIT pid=1000
  resign
  elect
  fetch foo-0 v=7           | fetch foo-0=23
OLOAD-009 An empty control batch does not disturb a load
  @ SJ model since=2.0
  @ GroupMetadataManagerTest.scala testLoadOffsetsWithEmptyControlBatch (trunk)
  append empty
  append t-0=5
  append group gen=3 members=A
  resign
  elect
  state Stable gen=3 members=A
  fetch t-0                 | fetch t-0=5
OLOAD-010 A record whose key has an unknown version is passed over
  @ SJ model since=3.0
  @ GroupMetadataManagerTest.scala testLoadGroupsAndOffsetsWillIgnoreUnknownMessage (trunk)
  append key=32767
  append t-0=5
  append group gen=3 members=A
  resign
  elect
  state Stable gen=3 members=A
  fetch t-0 v=7             | fetch t-0=5
OLOAD-012 A partition whose load failed stays refused with NOT_COORDINATOR
  @ J model
  @ CoordinatorLoaderImpl.scala and CoordinatorRuntime.java (trunk)
  append t-0=5
  resign
  load begin
  load failed
  fetch t-0             | fetch NOT_COORDINATOR
  join A                | A NOT_COORDINATOR
OLOAD-013 A read without bytes before the end of the log ends the load
  @ SJ model since=2.4
  @ GroupMetadataManagerTest.scala testLoadGroupAndOffsetsWithCorruptedLog (trunk)
  append t-0=5
  append t-1=6
  resign
  load short batches=1
  fetch t-0 t-1 v=7         | fetch t-0=5 t-1=-1
  commit - t-1=7            | - t-1=NONE
OLOAD-016 A group above group.max.size rebalances after its load
  @ SJ model since=2.2
  @ GroupCoordinator.scala (trunk) onGroupLoaded
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  state PreparingRebalance
OLOAD-017 Elections and resignations of an older epoch are passed over
  @ SJ model since=2.8
  @ GroupMetadataManagerTest.scala testUnloadOffsetsAndGroupIgnored (trunk)
  stable A
  elect epoch=2
  --
  resign epoch=1
  elect epoch=1
  heartbeat A           | A NONE
  state Stable gen=1
OLOAD-017.equal Only Scala's coordinator resigns at the epoch by which it was elected
  stable A
  elect epoch=2
  resign epoch=2
  [S] heartbeat A           | A NOT_COORDINATOR
  [J] heartbeat A           | A NONE
OLOAD-017.forgotten Java's coordinator forgets the epoch of a partition that it gave up
  resign epoch=5
  elect epoch=4
  [S] join A id=m           | A NOT_COORDINATOR
  [J] join A id=m           | A UNKNOWN_MEMBER_ID
OLOAD-018 Ids that have not joined are lost by a load
  @ SJ model since=2.2
  @ GroupCoordinator.scala (trunk)
  commit - t-0=1
  join M v=9            | M MEMBER_ID_REQUIRED
  resign
  elect
  join M                | M UNKNOWN_MEMBER_ID
OLOAD-019 Tagged fields that nobody knows are passed over
  @ SJ model since=3.3
  @ GroupMetadataManagerTest.scala testDeserializeFutureOffsetCommitValue (trunk)
  append t-0=5 tags=yes
  append group gen=3 members=A tags=yes
  resign
  elect
  state Stable gen=3 members=A
  fetch t-0 v=7             | fetch t-0=5
OLOAD-020 Compaction does not change what is loaded
  @ LSJ model
  @ LogCleaner.scala (trunk)
  commit - t-0=1 t-1=7
  stable A B
  commit A t-0=5
  resign
  compact
  elect
  state Stable gen=2 leader=A members=A,B
  fetch *               | fetch t-0=5 t-1=7 count=2
  heartbeat A           | A NONE
  sync B                | B NONE work=b
OLOAD-021 A tombstone stands for delete.retention.ms after its first cleaning
  @ SJ model since=3.1
  @ LogCleaner.scala (trunk)
  append foo-0=23
  append foo-0=
  stored offset foo-0=23; offset foo-0=-
  compact
  stored offset foo-0=-
  wait 86399999
  compact
  stored offset foo-0=-
  wait 1
  compact
  stored none
""",
)
