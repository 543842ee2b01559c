import pytest

from coordinator_sim.logtext.reading.log_state import Fingerprint

SCALA = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"
JOIN = (
    "[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old "
    "generation 4 (__consumer_offsets-9) (reason: Adding new member c-1"
)

WORDINGS = [
    ("kafka.coordinator.GroupCoordinator", ("[GroupCoordinator 1]: Preparing to restabilize group "
     "g with old generation 4"), "0.9-0.10"),
    ("kafka.coordinator.group.GroupMetadataManager",
     "[Group Metadata Manager on Broker 1]: Removed 0 expired offsets in 0 milliseconds.", "0.11"),
    (SCALA, ("[GroupCoordinator 1]: Preparing to rebalance group g with old generation 4 "
     "(__consumer_offsets-9)"), "0.11-2.0"),
    (SCALA, JOIN + ")", "2.1-2.2"),
    (SCALA, JOIN + " with group instanceid None)", "2.3-2.4"),
    (SCALA, JOIN + " with group instance id None)", "2.5-3.9"),
    (SCALA, JOIN + " with group instance id None; client reason: x)", "3.2-3.9"),
    (SCALA, "[GroupCoordinator 1]: Stabilized group g generation 5 (__consumer_offsets-9)",
     "0.11-2.7"),
    (SCALA, ("[GroupCoordinator 1]: Stabilized group g generation 5 (__consumer_offsets-9) with 3 "
     "members"), "2.8-3.9"),
    (SCALA, ("[GroupCoordinator 1]: Assignment received from leader for group g for generation "
     "5. The group has 3 members, 0 of which are static."), "2.8"),
    (SCALA, ("[GroupCoordinator 1]: Member[group.instance.id None, member.id c] in group g has "
     "left, removing it"), "2.4-2.8"),
    (SCALA, "[GroupCoordinator 1]: Member c in group g has left, removing it", "0.11-2.3"),
    (SCALA, ("[GroupCoordinator 1]: Member MemberMetadata(memberId=c) has left group g through "
     "explicit `LeaveGroup` request"), "3.0-3.1"),
    (JAVA, ("[GroupCoordinator id=1 topic=__consumer_offsets partition=9] Stabilized group g "
     "generation 5 with 3 members."), "3.7-4.x"),
    (JAVA, ("[GroupCoordinator id=1 topic=__consumer_offsets partition=9] Pending dynamic member "
     "with id c joins group g in Stable state."), "4.x"),
]  # fmt: skip


@pytest.mark.parametrize(("logger", "message", "versions"), WORDINGS)
def test_wording_tells_the_versions(logger: str, message: str, versions: str) -> None:
    """Each wording was written by a range of versions."""
    fingerprint = Fingerprint()
    assert fingerprint.observe(message, logger, whole=True)
    assert (fingerprint.current, fingerprint.ranges) == (versions, (versions,))


def test_wordings_narrow_each_other() -> None:
    """Two ranges leave what they have in common; seeing one again tells nothing new."""
    fingerprint = Fingerprint()
    fingerprint.observe(JOIN + " with group instance id None)", SCALA, whole=True)
    stabilized = "[GroupCoordinator 1]: Stabilized group g generation 5 (__consumer_offsets-9)"
    assert fingerprint.observe(stabilized, SCALA, whole=True)
    assert fingerprint.current == "2.5-2.7"
    assert not fingerprint.observe(stabilized, SCALA, whole=True)


def test_missing_end_of_a_cut_line_is_no_evidence() -> None:
    """What a cut line lacks, its version may have written."""
    fingerprint = Fingerprint()
    fingerprint.observe(
        "[GroupCoordinator 1]: Stabilized group g generation 5 (__consumer_offsets-9)",
        SCALA,
        whole=False,
    )
    assert fingerprint.current == "0.11-3.9"


def test_upgrade_in_the_middle_gives_two_ranges() -> None:
    """Wordings that no version has both are an upgrade, or two brokers in one file."""
    fingerprint = Fingerprint()
    fingerprint.observe(WORDINGS[0][1], WORDINGS[0][0], whole=True)
    fingerprint.observe(WORDINGS[-1][1], WORDINGS[-1][0], whole=True)
    assert fingerprint.ranges == ("0.9-0.10", "4.x")


def test_without_evidence_nothing_is_said() -> None:
    """A client's log has no broker version."""
    fingerprint = Fingerprint()
    assert not fingerprint.observe("hello", "x", whole=True)
    assert (fingerprint.current, fingerprint.ranges) == (None, ())
