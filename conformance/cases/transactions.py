"""Offsets committed in transactions, and the markers that end them."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "TXN",
    """
TXN-001 a commit marker makes the offset visible
  @ SJ must since=0.11 seen=3.9-4.4
  @ GroupCoordinatorTest.scala testBasicFetchTxnOffsets (trunk)
  --
  txn - t-0=10 pid=1000     | - t-0=NONE
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
  marker COMMIT pid=1000    | marker NONE
  fetch t-0 v=7             | fetch t-0=10 t-0.error=NONE
  log offset t-0=10 pid=1000; marker is=COMMIT pid=1000
TXN-002 an abort discards, and a late commit marker brings nothing back
  @ SJ model since=0.11
  @ GroupCoordinatorTest.scala testFetchTxnOffsetsWithAbort, testFetchTxnOffsetsIgnoreSpuriousCommit (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  marker ABORT pid=1000
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
  marker COMMIT pid=1000
  fetch t-0 v=7             | fetch t-0=-1 t-0.error=NONE
TXN-003 a marker is for one partition of the log
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
TXN-004 two producers, one group
  @ SJ must since=0.11 seen=3.9-4.4
  @ GroupCoordinatorTest.scala testFetchTxnOffsetsMultipleProducersOneGroup (trunk)
  txn - t-0=10 pid=1000     | - t-0=NONE
  txn - t-1=20 pid=1005     | - t-1=NONE
  marker COMMIT pid=1000
  marker ABORT pid=1005
  fetch t-0 t-1 v=7         | fetch t-0=10 t-1=-1
TXN-005 the later record wins, not the marker
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
TXN-006 an append that fails leaves nothing pending
  @ SJ model since=0.11
  @ GroupMetadataManagerTest.scala testTransactionalCommitOffsetAppendFailure (trunk)
  fail NOT_ENOUGH_REPLICAS
  txn - t-0=10 pid=1000     | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=7 stable=1    | fetch t-0=-1 t-0.error=NONE
TXN-007 member and generation count when they are given
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testTxnCommitOffsetWithIllegalGeneration (trunk)
  stable M
  txn M t-0=10 pid=1000 gen=6   | M t-0=ILLEGAL_GENERATION
  txn M t-0=10 pid=1000 id=zzz  | M t-0=UNKNOWN_MEMBER_ID
  txn M t-0=10 pid=1000         | M t-0=NONE
TXN-008 without ids any state accepts
  @ SJ must since=2.5 seen=2.8-4.4
  @ ClassicGroup.java (trunk) validateOffsetCommit
  completing M
  txn - t-0=10 pid=1000     | - t-0=NONE
  txn M t-0=10 pid=1000     | M t-0=NONE
  state AwaitingSync
TXN-009 an instance id with an empty member id is fenced
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinatorTest.scala testTxnCommitOffsetWithFencedInstanceId (trunk)
  stable M:i1
  txn - t-0=10 pid=1000 i=i1 | - t-0=FENCED_INSTANCE_ID
TXN-010 an unknown group with a generation, Scala coordinator
  @ S must since=3.0 seen=2.8-3.9
  @ GroupCoordinator.scala (trunk) handleTxnCommitOffsets
  txn - t-0=10 pid=1000 gen=5 id=m1 | - t-0=UNKNOWN_MEMBER_ID
  state Empty
TXN-011 an unknown group with a generation, Java coordinator
  @ J must seen=4.0-4.4
  @ OffsetMetadataManagerTest.java testGenericGroupTransactionalOffsetCommitWithUnknownGroupId (trunk)
  txn - t-0=10 pid=1000 gen=5 id=m1 | - t-0=ILLEGAL_GENERATION
  state none
TXN-012 the empty group id
  @ SJ must since=2.0 seen=2.8-4.4
  @ GroupCoordinator.scala (trunk)
  group -
  txn - t-0=10 pid=1000     | - t-0=INVALID_GROUP_ID
TXN-016 a commit in a transaction does not keep the session
  @ SJ must since=2.5 seen=2.8-4.4
  @ GroupCoordinator.scala (trunk) doTxnCommitOffsets
  stable M session=1000
  wait 899
  txn M t-0=10 pid=1000     | M t-0=NONE
  wait 200
  state Empty members=-
""",
)
