"""What the edge of a broker makes of a request: what to pass on, and what to do with the answer."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from coordinator_sim.broker.authorizer import (
    Authorizer,
    KnowsItsRules,
    Operation,
    ResourceType,
    operation_bits,
)
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.protocol.context import RequestContext

Finish = Callable[[Response | None], Response]
"""Makes the answer of a request out of the coordinator's, None if the coordinator was not asked."""


class Passage(Struct, frozen=True):
    """The way of one request through the edge.

    Args:
        request: For the coordinator; None when there is nothing to ask it.
        finish: None when the coordinator's answer is the answer.
    """

    request: GroupRequest | None
    finish: Finish | None = None


def answered(response: Response) -> Passage:
    """A request that the coordinator does not see."""
    return Passage(None, lambda _: response)


class Access:
    """Asks an authorizer on behalf of whoever sent a request; without one all is allowed."""

    __slots__ = ("authorizer",)

    def __init__(self, authorizer: Authorizer | None) -> None:
        self.authorizer = authorizer

    @property
    def is_open(self) -> bool:
        """Whether there is nobody to ask."""
        return self.authorizer is None

    def allows(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the sender of a request may do that."""
        if self.authorizer is None:
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
        """Whether the sender may do that to any resource of that type.

        Args:
            context: Of the request.
            operation: What.
            resource_type: To what.
            names: Those that there are, for an authorizer that knows single names alone.

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
        """Those that the sender may do. Source: AuthHelper.authorizedOperations."""
        return operation_bits(
            operation
            for operation in operations
            if self.allows(context, operation, resource_type, name)
        )
