"""The APIs of share coordinators of a whole served cluster: state, rights, leaders, restarts."""

from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.share_coordinator.share_world import States, batches_of, served


def test_state_is_kept() -> None:
    """What a leader writes is what the next one reads, and what administration is told."""
    states = States(served())
    assert states.initialize(state_epoch=1, start_offset=10)["errorCode"] == ErrorCode.NONE
    assert states.write((10, 19, 2, 1), (20, 24, 0, 1), deliveryCompleteCount=10) == {
        "partition": 0,
        "errorCode": 0,
        "errorMessage": None,
    }
    read = states.read(leader_epoch=3)
    assert batches_of(read) == [(10, 19, 2, 1), (20, 24, 0, 1)]
    assert (read["startOffset"], read["stateEpoch"]) == (10, 1)
    summary = states.summary()
    told = ("startOffset", "stateEpoch", "leaderEpoch", "deliveryCompleteCount")
    assert [summary[name] for name in told] == [10, 1, 3, 10]


def test_state_is_deleted() -> None:
    """A deleted share partition is as one that never was, and may be deleted again."""
    states = States(served())
    states.initialize(state_epoch=5, start_offset=3)
    assert states.delete()["errorCode"] == ErrorCode.NONE
    assert states.delete()["errorCode"] == ErrorCode.NONE
    refused = states.read()
    assert refused["errorCode"] == ErrorCode.INVALID_REQUEST
    assert refused["errorMessage"] == (
        "Read operation on uninitialized share partition not allowed."
    )
    assert states.summary()["startOffset"] == -1
