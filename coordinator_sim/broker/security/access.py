"""The edge's result for a request: what the coordinator gets, and how to finish its answer."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.security.authorizer import (
    Authorizer,
    KnowsItsRules,
    Operation,
    ResourceType,
    operation_bits,
)
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.messages.requests import GroupRequest, Response

BROKER_PRINCIPAL: Final = "Broker"
"""Principal of requests that brokers send each other: everything is allowed to them.

DEVIATION: Kafka authorizes such a request as the principal of the sending broker, usually a super
user.
"""

Finish = Callable[[Response | None], Response]
"""Makes a request's answer from the coordinator's, which is None if it was not asked."""


Create = Callable[[tuple[InternalTopic, ...], Response], Response]
"""Has topics created that a group needs, and says in the answer where that fails."""


class EdgeResult(Struct, frozen=True):
    """The way of one request through the edge.

    Args:
        request: The request for the coordinator; None to not ask it.
        finish: Finishes the answer; None to use the coordinator's unchanged.
        create: Takes the topics that the answer comes with; None to leave them to the driver.
    """

    request: GroupRequest | None
    finish: Finish | None = None
    create: Create | None = None


def answered(response: Response) -> EdgeResult:
    """An `EdgeResult` that answers without the coordinator."""
    return EdgeResult(None, lambda _: response)


class Access:
    """Asks an authorizer about the sender of a request; without one all is allowed."""

    def __init__(self, authorizer: Authorizer | None) -> None:
        self.authorizer = authorizer

    @property
    def is_open(self) -> bool:
        """Whether there is no authorizer, so that everything is allowed."""
        return self.authorizer is None

    def allows(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the sender of a request may do an operation on a resource."""
        if self.authorizer is None or context.principal == BROKER_PRINCIPAL:
            return True
        host = context.client_host.removeprefix("/")
        return self.authorizer.is_allowed(
            operation, resource_type, name, principal=context.principal, host=host
        )

    def allows_somewhere(
        self,
        context: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        names: Iterable[str],
    ) -> bool:
        """Whether the sender may do an operation on any resource of a type.

        Args:
            context: Context of the request.
            operation: The operation.
            resource_type: Type of the resource.
            names: Existing names, for an authorizer that only decides on single names.

        Source: AuthHelper.authorizeByResourceType.
        """
        if isinstance(self.authorizer, KnowsItsRules):
            host = context.client_host.removeprefix("/")
            principal = context.principal
            return self.authorizer.is_allowed_somewhere(
                operation, resource_type, principal=principal, host=host
            )
        return any(self.allows(context, operation, resource_type, name) for name in names)

    def bits(
        self,
        context: RequestContext,
        operations: tuple[Operation, ...],
        resource_type: ResourceType,
        name: str,
    ) -> int:
        """Bits of the allowed operations. Source: AuthHelper.authorizedOperations."""
        return operation_bits(
            operation
            for operation in operations
            if self.allows(context, operation, resource_type, name)
        )
