"""Requests to a herder: statuses of failures, and which of two restarts counts."""

import pytest

from coordinator_sim.connect.herding.requests import (
    ErrorKind,
    RequestFailed,
    RestartConnectorAndTasks,
)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (ErrorKind.NOT_LEADER, 409),
        (ErrorKind.REBALANCE_NEEDED, 409),
        (ErrorKind.ALREADY_EXISTS, 409),
        (ErrorKind.NOT_FOUND, 404),
        (ErrorKind.BAD_REQUEST, 400),
        (ErrorKind.CONNECT, 500),
        (ErrorKind.TIMEOUT, 500),
    ],
)
def test_a_failure_has_the_status_of_connects_mapper(kind: ErrorKind, status: int) -> None:
    """What the mapper does not know is an internal server error."""
    assert RequestFailed(kind=kind, message="").status == status


def test_a_rest_failure_carries_its_own_status() -> None:
    """Signature checks answer 403 and 503 through one exception."""
    failed = RequestFailed(kind=ErrorKind.CONNECT_REST, message="no key yet", rest_status=503)
    assert failed.status == 503


def test_the_restart_that_reaches_more_has_the_higher_impact() -> None:
    """Any state before only failed, tasks before the connector alone."""
    requests = [
        RestartConnectorAndTasks(connector="c", only_failed=only_failed, include_tasks=tasks)
        for only_failed, tasks in ((True, False), (True, True), (False, False), (False, True))
    ]
    assert sorted(requests, key=lambda each: each.impact) == requests
