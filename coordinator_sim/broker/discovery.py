"""FindCoordinator: which broker coordinates a group or a transactional id.

Source: kafka trunk, KafkaApis.getCoordinator, handleFindCoordinatorRequestLessThanV4 and
handleFindCoordinatorRequestV4AndAbove.
"""

from typing import Final

from coordinator_sim.broker.authorizer import Operation, ResourceType
from coordinator_sim.broker.passage import Access
from coordinator_sim.broker.view import ClusterView
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.error_texts import error_message
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC, partition_for

TRANSACTIONS_TOPIC: Final = "__transaction_state"
_GROUP: Final = 0
_TRANSACTION: Final = 1
_TOPICS: Final = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}
_RIGHTS: Final = {
    _GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTION: (
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}


class Discovery:
    """Finds coordinators in the metadata that all brokers share.

    Args:
        view: The metadata; internal topics that are missing are created in it.
        access: Authorizes requests.
    """

    __slots__ = ("_access", "_view")

    def __init__(self, view: ClusterView, access: Access) -> None:
        self._view = view
        self._access = access

    def find(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        """One entry per key, in request order; keys are not validated, so an empty one is a group.

        There are no share coordinators, as on a broker without share groups.
        """
        found = tuple(
            self._find(key, request.key_type, context) for key in request.coordinator_keys
        )
        topic = _TOPICS.get(request.key_type)
        if topic is not None and any(
            entry.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE for entry in found
        ):
            # An early request creates the topic, and its client must retry.
            self._view.create_internal_topic(topic)
        return FindCoordinatorResponse(coordinators=found)

    def _find(self, key: str, key_type: int, context: RequestContext) -> Coordinator:
        topic = _TOPICS.get(key_type)
        if topic is None:
            # Kafka throws here, so every version gets the error's default message.
            refusal = ErrorCode.INVALID_REQUEST
            return Coordinator(
                key=key,
                error_code=refusal,
                error_message=error_message(refusal),
                node_id=-1,
                port=-1,
            )
        resource_type, refusal = _RIGHTS[key_type]
        if not self._access.allows(context, Operation.DESCRIBE, resource_type, key):
            return Coordinator(key=key, error_code=refusal, node_id=-1, port=-1, error_message=None)
        leaders = self._view.topics.get(topic)
        if not leaders:
            return Coordinator(
                key=key,
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
                node_id=-1,
                port=-1,
                error_message=None,
            )
        leader_id = leaders[partition_for(key, len(leaders))].leader_id
        node = self._view.nodes.get(leader_id)
        if node is None or self._view.fenced[leader_id]:
            return Coordinator(
                key=key,
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
                node_id=-1,
                port=-1,
                error_message=None,
            )
        return Coordinator(
            key=key, node_id=node.node_id, host=node.host, port=node.port, error_message=None
        )
