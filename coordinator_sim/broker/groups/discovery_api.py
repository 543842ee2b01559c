"""FindCoordinator: which broker coordinates a group, a transactional id or a share partition.

Source: kafka trunk, KafkaApis.getCoordinator, handleFindCoordinatorRequestLessThanV4 and
handleFindCoordinatorRequestV4AndAbove.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.settings import Endpoint
from coordinator_sim.broker.shares.share_values import coordinator_key, key_from
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    partition_for,
)
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_MANY_KEYS_SINCE: Final = 4
_SHARES_SINCE: Final = 6
_SHARE: Final = 2
_RIGHTS: Final = {
    0: (OFFSETS_TOPIC, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (
        TRANSACTIONS_TOPIC,
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}
"""For each key type: the topic of its state, the resource type to DESCRIBE, and the refusal."""


class DiscoveryApi:
    """Answers FindCoordinator.

    Args:
        image: The metadata; tells who leads the internal topics.
        access: Authorizes requests.
        endpoint: The address of a living broker on a listener; None without one.
        create_internal: Creates a missing internal topic.
    """

    __slots__ = ("_access", "_create_internal", "_endpoint", "_image")

    def __init__(
        self,
        image: MetadataImage,
        access: Access,
        *,
        endpoint: Callable[[int, str], Endpoint | None],
        create_internal: Callable[[str, Instants], None],
    ) -> None:
        self._image = image
        self._access = access
        self._endpoint = endpoint
        self._create_internal = create_internal

    def handlers(self) -> Handlers:
        """The handler of FindCoordinator."""
        return {ApiKey.FIND_COORDINATOR: self._handle}

    def _handle(self, call: Call[FindCoordinatorRequest]) -> FindCoordinatorResponse:
        """Answer each key in order; one without coordinator gets COORDINATOR_NOT_AVAILABLE."""
        keys = call.request.coordinator_keys
        return FindCoordinatorResponse(coordinators=tuple(self._find(key, call) for key in keys))

    def _find(self, key: str, call: Call[FindCoordinatorRequest]) -> Coordinator:
        if call.request.key_type == _SHARE:
            return self._find_share(key, call)
        rights = _RIGHTS.get(call.request.key_type)
        if rights is None:
            # Kafka throws here, so every version gets the error's default message.
            invalid = ErrorCode.INVALID_REQUEST
            return _refused(key, invalid, error_message(invalid))
        version = call.context.api_version
        topic, resource_type, refusal = rights
        if not self._access.allows(call.context, Operation.DESCRIBE, resource_type, key):
            return _refused(key, refusal, _text(refusal, version))
        return self._leader(topic, key, key, call)

    def _find_share(self, key: str, call: Call[FindCoordinatorRequest]) -> Coordinator:
        """The coordinator of a share partition, for brokers; its key says group, topic, number."""
        version, invalid = call.context.api_version, ErrorCode.INVALID_REQUEST
        if version < _SHARES_SINCE:
            return _refused(key, invalid, _text(invalid, version))
        operation, kind = Operation.CLUSTER_ACTION, ResourceType.CLUSTER
        if not self._access.allows(call.context, operation, kind, CLUSTER_NAME):
            # As with an unknown key type.
            refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return _refused(key, refusal, error_message(refusal))
        share_partition = key_from(key)
        if share_partition is None:
            return _refused(key, invalid, _text(invalid, version))
        return self._leader(SHARE_STATE_TOPIC, key, coordinator_key(share_partition), call)

    def _leader(
        self, topic: str, key: str, hashed: str, call: Call[FindCoordinatorRequest]
    ) -> Coordinator:
        """The leader of the partition that a text belongs to."""
        version, absent = call.context.api_version, ErrorCode.COORDINATOR_NOT_AVAILABLE
        state = self._image.topics.get(topic)
        if state is None:
            self._create_internal(topic, call.now)
            return _refused(key, absent, _text(absent, version))
        leader_id = state.partitions[partition_for(hashed, len(state.partitions))].leader_id
        endpoint = None
        if leader_id != NO_LEADER:
            endpoint = self._endpoint(leader_id, call.context.listener)
        if endpoint is None:
            return _refused(key, absent, _text(absent, version))
        return _entry(key, leader_id, endpoint, version)


def _entry(key: str, node_id: int, endpoint: Endpoint, version: int) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=node_id,
        host=endpoint.host,
        port=endpoint.port,
        error_message=_text(ErrorCode.NONE, version),
    )


def _refused(key: str, error: ErrorCode, text: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=text)


def _text(error: ErrorCode, version: int) -> str:
    """The message of an error: Kafka's default one; empty from version 4 on (many keys)."""
    return "" if version >= _MANY_KEYS_SINCE else error_message(error)
