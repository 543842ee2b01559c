"""Connect's embedded blobs: order on the wire, versions, and what does not parse."""

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded import connect_protocol, contents

ASSIGNMENT = contents.ConnectAssignment(
    version=2,
    leader="w",
    leader_url="u",
    config_offset=3,
    connectors=("c",),
    tasks=(ConnectorTaskId("d", 0), ConnectorTaskId("c", 1)),
    revoked_connectors=("d",),
    revoked_tasks=(ConnectorTaskId("d", 2),),
    delay_ms=40,
)
HEAD = "0000 0001 77 0001 75 0000000000000003"
ASSIGNED = "00000002 0001 63 00000002 ffffffff 00000001 0001 64 00000001 00000000"
REVOKED = "00000001 0001 64 00000002 ffffffff 00000002"


def test_assignment_lists_connectors_then_tasks() -> None:
    """A connector is task -1 of its entry; tasks join it or start an entry of their own."""
    data = connect_protocol.encode_connect_assignment(ASSIGNMENT)
    assert data == bytes.fromhex(f"0002 {HEAD} {ASSIGNED} {REVOKED} 00000028")
    decoded = connect_protocol.decode_connect_assignment(data)
    assert decoded.tasks == (ConnectorTaskId("c", 1), ConnectorTaskId("d", 0))
    assert connect_protocol.encode_connect_assignment(decoded) == data


def test_eager_assignment_has_no_revocations() -> None:
    """Version 0 ends after the assigned list."""
    eager = contents.ConnectAssignment(
        version=0, error=contents.ConnectError.CONFIG_MISMATCH, leader="w"
    )
    data = connect_protocol.encode_connect_assignment(eager)
    assert data == bytes.fromhex("0000 0001 0001 77 0000 ffffffffffffffff 00000000")
    assert connect_protocol.decode_connect_assignment(data) == eager


def test_assigned_connectors_travel_in_hash_order() -> None:
    """Connector names come back in the order of a Java HashSet, revoked ones as given."""
    names = ("consumer1", "consumer2", "consumer3")
    tasks = (ConnectorTaskId("consumer2", 0), ConnectorTaskId("consumer1", 0))
    connectors, ordered = connect_protocol.wire_order(names, tasks)
    assert connectors == ("consumer3", "consumer2", "consumer1")
    assert ordered == (ConnectorTaskId("consumer2", 0), ConnectorTaskId("consumer1", 0))
    assignment = contents.ConnectAssignment(version=1, connectors=names, revoked_connectors=names)
    decoded = connect_protocol.decode_connect_assignment(
        connect_protocol.encode_connect_assignment(assignment)
    )
    assert decoded.connectors == connectors
    assert decoded.revoked_connectors == names


def test_null_lists_read_as_empty() -> None:
    """A version 1 assignment may have neither list."""
    data = bytes.fromhex(f"0001 {HEAD} ffffffff ffffffff 00000000")
    decoded = connect_protocol.decode_connect_assignment(data)
    assert (decoded.connectors, decoded.revoked_connectors, decoded.version) == ((), (), 1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_allocation_takes_the_version_of_its_metadata(version: int) -> None:
    """One last assignment serves the metadata of every protocol offered; eager leaves it out."""
    metadata = contents.WorkerMetadata(
        version=version, url="u", config_offset=7, allocation=ASSIGNMENT
    )
    decoded = connect_protocol.decode_worker_metadata(
        connect_protocol.encode_worker_metadata(metadata)
    )
    assert (decoded.version, decoded.url, decoded.config_offset) == (version, "u", 7)
    if version == 0:
        assert decoded.allocation is None
    else:
        assert decoded.allocation is not None
        assert decoded.allocation.version == version


def test_no_allocation_is_null_on_the_wire() -> None:
    """A worker without an assignment sends a null allocation."""
    metadata = contents.WorkerMetadata(version=2, url="u", config_offset=-1)
    data = connect_protocol.encode_worker_metadata(metadata)
    assert data == bytes.fromhex("0002 0001 75 ffffffffffffffff ffffffff")
    assert connect_protocol.decode_worker_metadata(data) == metadata


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("ffff", "worker metadata: version -1 is negative (at byte 2)"),
        ("0001 0000 0000000000000000 00000001 00", "allocation: version needs 2 bytes"),
        ("0001 0000 0000000000000000 00000004 0001 0009", "allocation: error 9 is unknown"),
    ],
)
def test_metadata_that_does_not_parse(data: str, message: str) -> None:
    """Errors inside the allocation are located in the whole blob."""
    with pytest.raises(WireFormatError) as caught:
        connect_protocol.decode_worker_metadata(bytes.fromhex(data))
    assert message in str(caught.value)
    assert caught.value.offset == len(bytes.fromhex(data)) - ("needs" in message)
