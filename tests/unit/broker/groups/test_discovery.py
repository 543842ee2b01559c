"""FindCoordinator: who is told where, and what is created on the way."""

from typing import TYPE_CHECKING

import pytest

from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.messages import find_coordinator

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client

GROUP, TRANSACTION, SHARE = 0, 1, 2


def find(
    client: "Client", *keys: str, key_type: int = GROUP, version: int = 6
) -> tuple[find_coordinator.Coordinator, ...]:
    """The entries of the answer of broker 1."""
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)
    response = client.ask(1, request, version)
    assert isinstance(response, find_coordinator.FindCoordinatorResponse)
    return response.coordinators


def test_batch_in_order(client: "Client") -> None:
    """Every key has its entry, in the order asked for, the empty group too."""
    found = find(client, "b", "", "a")
    assert [entry.key for entry in found] == ["b", "", "a"]
    assert {entry.error_code for entry in found} == {ErrorCode.NONE}


@pytest.mark.parametrize("key_type", [SHARE, 9])
def test_other_key_types(client: "Client", key_type: int) -> None:
    """What is neither a group nor a transactional id is INVALID_REQUEST."""
    assert find(client, "x", key_type=key_type)[0].error_code is ErrorCode.INVALID_REQUEST


def test_errors_speak_for_themselves_up_to_version_3(make_client: "Callable[..., Client]") -> None:
    """An old client reads the error's text, a newer one nothing: unless its key type is unknown."""
    client = make_client(authorizer=AclAuthorizer(()))
    texts = [find(client, "g", version=version)[0].error_message for version in (3, 4)]
    assert texts == ["Group authorization failed.", ""]
    invalid = find(client, "g", key_type=9, version=4)[0].error_message
    assert (invalid or "").startswith("This most likely occurs because of a request")


def test_missing_topics_are_created(client: "Client") -> None:
    """The first question for a key finds nobody, and has the internal topic made."""
    client.cluster.topics.delete(OFFSETS_TOPIC, client.now)
    for key_type in (GROUP, TRANSACTION):
        assert find(client, "x", key_type=key_type)[0] == find_coordinator.Coordinator(
            key="x",
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            node_id=-1,
            port=-1,
            error_message="",
        )
        assert find(client, "x", key_type=key_type)[0].error_code is ErrorCode.NONE


def test_rights(make_client: "Callable[..., Client]") -> None:
    """DESCRIBE on the group or the transactional id; each key is refused alone."""
    acl = Acl(
        operation=Operation.DESCRIBE,
        resource_type=ResourceType.GROUP,
        name="mine",
        principal="User:ANONYMOUS",
    )
    client = make_client(authorizer=AclAuthorizer((acl,)))
    mine, other = find(client, "mine", "other")
    assert mine.error_code is ErrorCode.NONE
    assert other.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    (refused,) = find(client, "x", key_type=TRANSACTION)
    assert refused.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_broker_epochs_grow(client: "Client") -> None:
    """A broker that starts again is registered with an epoch above all before."""
    epochs = client.cluster.image.broker_epochs
    for broker_id in (1, 2, 1):
        before = max(epochs.values(), default=0)
        client.cluster.operations.stop(broker_id, client.now)
        client.cluster.operations.resume(broker_id, client.now)
        assert epochs[broker_id] > before
