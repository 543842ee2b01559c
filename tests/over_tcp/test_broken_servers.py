"""Servers with one line broken fail what that line breaks, over the wire, and nothing else.

Beside each fault stands which requirements are right, and why.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.over_tcp.test_endpoint import FRIENDLY, by_verdict, graded, serving

COORDINATOR_FAULTS: Final = {
    # DeleteGroups has one answer to a group that has members; no other request asks for it.
    "delete-of-a-living-group": {"DEL-001"},
    # Three cases commit with a generation that is not the group's: -1, one of the sync phase, and
    # one beside an unknown topic.
    "any-generation-commits": {"COMMIT-007", "COMMIT-009", "COMMIT-025"},
    # Only there a static member comes back, with another subscription, while the group syncs.
    "KAFKA-9801": {"STAT-004"},
}
WIRE_FAULTS: Final = {
    "byte-behind-an-answer": {"VERSION-HEARTBEAT": "Heartbeat 2"},
    "answer-of-another-version": {"VERSION-SYNC": "SyncGroup 3"},
    # ApiVersions has a rule of its own for such versions.
    "any-version-is-taken": {
        "VERSION-ABOVE": "FindCoordinator 7, JoinGroup 10, SyncGroup 6, Heartbeat 5, LeaveGroup 6, "
        "OffsetCommit 11, OffsetFetch 11, DescribeGroups 7, ListGroups 6, DeleteGroups 4, "
        "OffsetDelete 1, TxnOffsetCommit 7, AddOffsetsToTxn 5",
        "VERSION-APIS-ABOVE": "ApiVersions 6",
    },
}
QUICK: Final = ("ADMIN", "COMMIT", "PROTOCOL", "OFFSETDELETE", "FETCH", "VERSION", "FRAME")
"""Areas whose cases hardly wait."""
NO_BROKER: Final = ("--area", "VERSION", "--area", "FRAME")


def failures_of(fault: str, directory: Path, *options: str) -> dict[str, dict[str, Any]]:
    """The endings that did not pass, by case, of a server with that fault."""
    program = ("-m", "tests.over_tcp.broken_server", fault)
    with serving(directory, *FRIENDLY, program=program) as bootstrap:
        _, result = graded(bootstrap, *options)
    assert len(by_verdict(result, "passed")) > 3 * len(by_verdict(result, "failed"))
    return {
        each["case_id"]: each
        for each in result["endings"]
        if each["verdict"] in {"failed", "unknown"}
    }


@pytest.mark.parametrize("fault", WIRE_FAULTS)
def test_a_fault_of_the_wire_is_named_with_its_versions(fault: str, tmp_path: Path) -> None:
    """The requirement fails that is about it, and says in which versions."""
    failures = failures_of(fault, tmp_path, *NO_BROKER)

    assert {name: each["expectation"] for name, each in failures.items()} == WIRE_FAULTS[fault]
    assert all(each["frames"] for each in failures.values())


def test_a_fault_of_the_coordinator_fails_its_requirement_alone(tmp_path: Path) -> None:
    """In areas that take no time."""
    areas = [word for area in QUICK for word in ("--area", area)]

    failures = failures_of("any-generation-commits", tmp_path, *areas)

    assert {name: each["verdict"] for name, each in failures.items()} == dict.fromkeys(
        COORDINATOR_FAULTS["any-generation-commits"], "failed"
    )


@pytest.mark.nightly
@pytest.mark.parametrize("fault", COORDINATOR_FAULTS)
def test_a_fault_of_the_coordinator_fails_nothing_else(fault: str, tmp_path: Path) -> None:
    """In everything that real time shows, a minute each."""
    failures = failures_of(fault, tmp_path)

    assert {name: each["verdict"] for name, each in failures.items()} == dict.fromkeys(
        COORDINATOR_FAULTS[fault], "failed"
    )
