"""Offsets committed in transactions, and the markers that end them."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "TXN",
    """
TXN-001 A commit marker makes the offsets of its transaction visible
  @ SJ must since=0.11 seen=3.9-4.4
  @ GroupCoordinatorTest.scala testBasicFetchTxnOffsets (trunk)
  --
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
  marker COMMIT pid=1000    | marker NONE
  fetch t-0 v=7             | fetch t-0=10 t-0.error=NONE
  log offset t-0=10 pid=1000; marker is=COMMIT pid=1000
TXN-001.held The end of a transaction is answered once its marker is committed, and counts then
  txn - t-0=10 pid=1000     | - t-0=NONE
  hold
  marker COMMIT pid=1000    | -
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
  release                   | marker NONE
  fetch t-0 v=7             | fetch t-0=10 t-0.error=NONE
TXN-002 An abort drops the offsets of its transaction; a late commit marker brings none back
  @ SJ model since=0.11
  @ GroupCoordinatorTest.scala testFetchTxnOffsetsWithAbort, testFetchTxnOffsetsIgnoreSpuriousCommit (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  marker ABORT pid=1000
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  marker COMMIT pid=1000
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
TXN-002.before An abort leaves the offset before its transaction
  commit - t-0=1
  txn - t-0=2 pid=1000      | - t-0=NONE
  marker ABORT pid=1000
  marker COMMIT pid=1000
  fetch t-0 v=7 stable=1    | fetch t-0=1 t-0.error=NONE
TXN-003 A marker counts for the groups on its partition of the log alone
  @ SJ model since=0.11
  @ GroupCoordinatorTest.scala testFetchTxnOffsetsOneProducerMultipleGroups (trunk)
  group g1
  txn - t-0=10 pid=1000     | - t-0=NONE
  group g2
  txn - t-0=10 pid=1000     | - t-0=NONE
  marker COMMIT pid=1000 group=g1
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
  group g1
  fetch t-0 v=7             | fetch t-0=10 t-0.error=NONE
TXN-004 Transactions of two producers end each by itself
  @ SJ must since=0.11 seen=3.9-4.4
  @ GroupCoordinatorTest.scala testFetchTxnOffsetsMultipleProducersOneGroup (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  txn - t-1=20 pid=1005     | - t-1=NONE
  marker COMMIT pid=1000
  marker ABORT pid=1005
  fetch t-0 t-1 v=7         | fetch t-0=10 t-1=-1
TXN-005 Of a commit and a transaction the later record counts, not the later end
  @ SJ must since=0.11 seen=3.9-4.4
  @ GroupMetadataTest.scala testConsumerBeatsTransactionalOffsetCommit, testTransactionBeatsConsumerOffsetCommit, testTransactionalCommitIsAbortedAndConsumerCommitWins (trunk)
  group g1
  txn - t-0=23 pid=1000
  commit - t-0=24
  marker COMMIT pid=1000
  fetch t-0 v=7             | fetch t-0=24
  group g2
  commit - t-0=24
  txn - t-0=23 pid=1000
  marker COMMIT pid=1000
  fetch t-0 v=7             | fetch t-0=23
  group g3
  txn - t-0=23 pid=1000
  commit - t-0=24
  marker ABORT pid=1000
  fetch t-0 v=7             | fetch t-0=24
TXN-006 A commit in a transaction that cannot be appended leaves nothing pending
  @ SJ model since=0.11
  @ GroupMetadataManagerTest.scala testTransactionalCommitOffsetAppendFailure (trunk)
  fail NOT_ENOUGH_REPLICAS
  txn - t-0=10 pid=1000     | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
TXN-007 A commit in a transaction is checked by member id and generation where it names them
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testTxnCommitOffsetWithIllegalGeneration (trunk)
  stable M
  txn M t-0=10 pid=1000 gen=6   | M t-0=ILLEGAL_GENERATION
  txn M t-0=10 pid=1000 id=zzz  | M t-0=UNKNOWN_MEMBER_ID
  txn M t-0=10 pid=1000         | M t-0=NONE
TXN-008 A commit in a transaction is accepted in any state of the group
  @ SJ must since=2.5 seen=2.8-4.4
  @ ClassicGroup.java (trunk) validateOffsetCommit
  completing M
  txn - t-0=10 pid=1000     | - t-0=NONE
  txn M t-0=10 pid=1000     | M t-0=NONE
  state AwaitingSync
TXN-009 A commit in a transaction with an instance id alone is FENCED_INSTANCE_ID
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testTxnCommitOffsetWithFencedInstanceId (trunk)
  stable M:i1
  txn - t-0=10 pid=1000 i=i1 | - t-0=FENCED_INSTANCE_ID
TXN-010 In Scala's coordinator a transaction's member of an unknown group is UNKNOWN_MEMBER_ID
  @ S must since=3.0 seen=2.8-3.9
  @ GroupCoordinator.scala (trunk) handleTxnCommitOffsets
  txn - t-0=10 pid=1000 gen=5 id=m1 | - t-0=UNKNOWN_MEMBER_ID
  state Empty
TXN-011 In Java's coordinator a transaction's member of an unknown group is ILLEGAL_GENERATION
  @ J must seen=4.0-4.4
  @ OffsetMetadataManagerTest.java testGenericGroupTransactionalOffsetCommitWithUnknownGroupId (trunk)
  txn - t-0=10 pid=1000 gen=5 id=m1 | - t-0=ILLEGAL_GENERATION
  state none
TXN-012 A commit in a transaction for the empty group id is INVALID_GROUP_ID
  @ SJ must since=2.0 seen=2.8-4.4
  @ GroupCoordinator.scala (trunk)
  group -
  txn - t-0=10 pid=1000     | - t-0=INVALID_GROUP_ID
TXN-016 A commit in a transaction does not keep the session
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinator.scala (trunk) doTxnCommitOffsets
  stable M session=1000
  wait 899
  txn M t-0=10 pid=1000     | M t-0=NONE
  wait 200
  state Empty members=-
TXN-MARKER-REFUSED A marker that cannot be appended leaves its transaction open
  @ S model since=2.5
  @ GroupMetadataManager.handleTxnCompletion
  commit - t-0=1
  txn - t-0=2 pid=7         | - t-0=NONE
  fail NOT_ENOUGH_REPLICAS
  marker COMMIT pid=7       | marker NOT_ENOUGH_REPLICAS
  fetch t-0 v=7             | fetch t-0=1
  fetch t-0 v=7 stable=1    | fetch t-0.error=UNSTABLE_OFFSET_COMMIT
TXN-GROUPS One marker ends a transaction for all groups on its partition
  @ SJ model since=2.5
  @ GroupMetadataManager.handleTxnCompletion
  @ OffsetMetadataManager.replayEndTransactionMarker
  broker partitions=1
  txn - t-0=2 pid=7         | - t-0=NONE
  group h
  txn - t-0=3 pid=7         | - t-0=NONE
  marker COMMIT pid=7
  fetch t-0 v=7             | fetch t-0=3
  group g
  fetch t-0 v=7             | fetch t-0=2
TXN-GROUPS.abort One abort ends a transaction for all groups on its partition
  broker partitions=1
  txn - t-0=2 pid=7         | - t-0=NONE
  group h
  txn - t-0=3 pid=7         | - t-0=NONE
  marker ABORT pid=7
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  group g
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
TXN-MARKER-STOPS A marker that meets a commit in flight in one group does not reach the next
  @ S model since=2.5
  @ GroupMetadata.completePendingTxnOffsetCommit
  broker partitions=1
  txn - t-0=1 pid=7
  group h
  txn - t-0=1 pid=7
  group g
  hold
  txn - t-1=1 pid=7         | -
  hold off
  marker COMMIT pid=7
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  group h
  fetch t-0 v=7 stable=1    | fetch t-0.error=UNSTABLE_OFFSET_COMMIT
  marker COMMIT pid=7
  fetch t-0 v=7             | fetch t-0=1
TXN-MARKER-LOST Offsets behind one whose commit is in flight at the marker are lost
  @ S model quirk since=2.5
  @ GroupMetadata.completePendingTxnOffsetCommit
  broker topics=t:12
  txn - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 pid=7
  hold
  txn - t-2=1 pid=7         | -
  hold off
  marker COMMIT pid=7
  fetch * v=7               | fetch t-3=1 t-4=1 t-5=1 count=3
TXN-MARKER-LOST.loaded A load changes nothing about which offsets a marker loses
  broker topics=t:12
  txn - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 pid=7
  resign
  elect
  hold
  txn - t-2=1 pid=7         | -
  hold off
  marker COMMIT pid=7
  fetch * v=7               | fetch t-3=1 t-4=1 t-5=1 count=3
TXN-MARKER-LOST.doubled An offset that is put again doubles the table, and fewer are lost
  broker topics=t:12
  txn - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1 pid=7
  hold
  txn - t-2=1 pid=7         | -
  hold off
  marker COMMIT pid=7
  fetch * v=7               | fetch t-3=1 t-4=1 t-10=1 count=8
TXN-MARKER-LOST.loaded-doubled A loaded table doubles, too
  broker topics=t:12
  txn - t-0=1 t-1=1 t-2=1 t-3=1 t-4=1 t-5=1 t-6=1 t-7=1 t-8=1 t-9=1 t-10=1 pid=7
  resign
  elect
  hold
  txn - t-2=1 pid=7         | -
  hold off
  marker COMMIT pid=7
  fetch * v=7               | fetch t-3=1 t-4=1 t-10=1 count=8
TXN-REPLACED A static member's replacement may commit in a transaction, its predecessor may not
  @ SJ must since=2.5
  @ GroupCoordinator.validateTxnOffsetCommit
  @ ClassicGroup.validateOffsetCommit
  stable M:i1
  join N:i1
  txn M t-0=1 pid=7         | M t-0=FENCED_INSTANCE_ID
  txn N t-0=1 pid=7 gen=1   | N t-0=NONE
TXN-IDS Since 3.0 all ids that a transactional commit names are checked, before only known ones
  @ S must since=2.5
  @ GroupCoordinator.validateTxnOffsetCommit
  stable M
  [2.8] txn M t-0=1 pid=7 i=nobody | M t-0=NONE
  [2.8] txn M t-0=1 pid=7 gen=-1   | M t-0=NONE
  [2.8] txn - t-0=1 pid=7 gen=2    | - t-0=ILLEGAL_GENERATION
  [3.9] txn M t-0=1 pid=7 i=nobody | M t-0=UNKNOWN_MEMBER_ID
  [3.9] txn M t-0=1 pid=7 gen=-1   | M t-0=ILLEGAL_GENERATION
  [3.9] txn - t-0=1 pid=7 gen=2    | - t-0=UNKNOWN_MEMBER_ID
TXN-NO-IDS A producer without ids commits beside a generation; generation 0 needs a member
  @ SJ must since=3.0
  @ GroupCoordinator.validateTxnOffsetCommit
  @ ClassicGroup.validateOffsetCommit
  txn - t-0=1 pid=7                | - t-0=NONE
  txn - t-0=1 pid=7 gen=0          | - t-0=UNKNOWN_MEMBER_ID
  txn - t-0=1 pid=7 id=gone        | - t-0=NONE
  stable M
  txn - t-0=1 pid=7                | - t-0=NONE
  txn - t-0=1 pid=7 gen=0          | - t-0=UNKNOWN_MEMBER_ID
  txn - t-0=1 pid=7 i=nobody       | - t-0=UNKNOWN_MEMBER_ID
TXN-NO-IDS.unknown In Java's coordinator an unknown group has no generation 0 either
  [J] txn - t-0=1 pid=7 gen=0 id=m | - t-0=ILLEGAL_GENERATION
TXN-DEAD A commit in a transaction to a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.5
  @ GroupCoordinator.doTxnCommitOffsets
  @ ClassicGroup.validateOffsetCommit
  stable A
  force Dead
  txn - t-0=1 pid=7         | - t-0=COORDINATOR_NOT_AVAILABLE
""",
)
