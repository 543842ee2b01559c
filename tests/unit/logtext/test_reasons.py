import pytest

from coordinator_sim.logtext.wordings.reasons import classify
from coordinator_sim.logtext.wordings.values import instance_id
from coordinator_sim.trace.events import RebalanceReason as Reason

WORDINGS = [
    ("Adding new member c-1", Reason.MEMBER_JOINED, "c-1", None, None),
    ("Adding new member c-1 with group instanceid None", Reason.MEMBER_JOINED, "c-1", None, None),
    ("Adding new member c-1 with group instanceid Some(i)", Reason.MEMBER_JOINED, "c-1", "i", None),
    (
        "Adding new member c-1 with group instance id None; client reason: not provided",
        Reason.MEMBER_JOINED,
        "c-1",
        None,
        "not provided",
    ),
    (
        "Adding new member c-1 with group instance id i-1; client reason: a; b",
        Reason.MEMBER_JOINED,
        "c-1",
        "i-1",
        "a; b",
    ),
    ("Updating metadata for member c-1", Reason.METADATA_CHANGED, "c-1", None, None),
    ("Updating metadata for member c-1 during Stable", Reason.METADATA_CHANGED, "c-1", None, None),
    (
        "Updating metadata for static member c-1 with instance id i-1; client reason: x",
        Reason.METADATA_CHANGED,
        "c-1",
        "i-1",
        "x",
    ),
    ("leader c-1 re-joining group during Stable", Reason.LEADER_REJOIN, "c-1", None, None),
    (
        "Leader c-1 re-joining group during Stable; client reason: cached metadata has changed",
        Reason.LEADER_REJOIN,
        "c-1",
        None,
        "cached metadata has changed",
    ),
    ("Member c-1 joining group during Stable", Reason.MEMBER_REJOIN, "c-1", None, None),
    ("Member c-1 is joining group during Stable", Reason.MEMBER_REJOIN, "c-1", None, None),
    ("removing member c-1 on LeaveGroup", Reason.MEMBER_LEFT, "c-1", None, None),
    ("Removing member c-1 on LeaveGroup", Reason.MEMBER_LEFT, "c-1", None, None),
    ("explicit `LeaveGroup` request for (c-1) members.", Reason.MEMBER_LEFT, "c-1", None, None),
    ("explicit `LeaveGroup` request for (c-1, c-2) members.", Reason.MEMBER_LEFT, None, None, None),
    ("removing member c-1 on heartbeat expiration", Reason.MEMBER_FAILED, "c-1", None, None),
    ("removing member c-1 on heartbeat expiration.", Reason.MEMBER_FAILED, "c-1", None, None),
    ("Removing Set(c-1) on pending sync request expiration", Reason.SYNC_TIMEOUT, None, None, None),
    (
        (
            "Group's selectedProtocol will change because static member c-1 with instance id i-1 "
            "joined with change of protocol; client reason: x"
        ),
        Reason.STATIC_PROTOCOL_CHANGE,
        "c-1",
        "i-1",
        "x",
    ),
    (
        "error when storing group assignment during SyncGroup (member: c-1)",
        Reason.STORE_ERROR,
        "c-1",
        None,
        None,
    ),
    (
        "Error NOT_ENOUGH_REPLICAS when storing group assignmentduring SyncGroup (member: c-1).",
        Reason.STORE_ERROR,
        "c-1",
        None,
        None,
    ),
    (
        "Freshly-loaded group is over capacity (GroupConfig(1,2).groupMaxSize). Rebalacing",
        Reason.OVER_CAPACITY,
        None,
        None,
        None,
    ),
    (
        "Freshly-loaded group g (size 9) is over capacity 5. Rebalancing in order",
        Reason.OVER_CAPACITY,
        None,
        None,
        None,
    ),
    ("Downgrade group g from consumer to classic.", Reason.DOWNGRADE, None, None, None),
    ("the moon is full", Reason.UNKNOWN, None, None, None),
]


@pytest.mark.parametrize(("text", "reason", "member", "instance", "client_reason"), WORDINGS)
def test_every_wording_has_its_reason(
    text: str, reason: Reason, member: str | None, instance: str | None, client_reason: str | None
) -> None:
    """Capitals and particles changed between versions; the reason and its parts did not."""
    cause = classify(text)
    assert (cause.reason, cause.client_reason) == (reason, client_reason)
    if member is not None or "(c-1, c-2)" in text:
        assert cause.member_id == member
    assert cause.group_instance_id == instance


@pytest.mark.parametrize("text", [None, "", "None", "null", "Some(null)", "Optional.empty"])
def test_absent_instance_id_in_any_spelling(text: str | None) -> None:
    """Scala, Java and old versions each write the absence of an instance id their way."""
    assert instance_id(text) is None


@pytest.mark.parametrize("text", ["i-1", "Some(i-1)", "Optional[i-1]"])
def test_present_instance_id_in_any_spelling(text: str) -> None:
    """An instance id is unwrapped."""
    assert instance_id(text) == "i-1"
