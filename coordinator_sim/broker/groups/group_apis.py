"""The edge of a broker: handling of group API requests before and after the coordinator.

Authorization, topics and fields are checked before the coordinator is asked, and its answer is
completed afterwards. A driver passes requests to `GroupApis.handle`, and the results of all other
methods of the coordinator to `GroupApis.pass_on`.

Source: kafka trunk, KafkaApis.scala.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from msgspec.structs import replace

from coordinator_sim.broker.groups.group_checks import GroupChecks, Offers
from coordinator_sim.broker.groups.internal_topics import InternalTopics
from coordinator_sim.broker.groups.offset_apis import OffsetApis
from coordinator_sim.broker.groups.offset_fetch import FetchApi
from coordinator_sim.broker.metadata.image import Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.security.access import Access, Create, EdgeResult, Finish, answered
from coordinator_sim.broker.security.authorizer import (
    CLUSTER_NAME,
    GROUP_OPERATIONS,
    OLD_GROUP_OPERATIONS,
    Authorizer,
    Operation,
    ResourceType,
)
from coordinator_sim.coordinator.contract import CoordinatorResult, Reply
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import old_scala_set_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from coordinator_sim.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.requests import GroupRequest, Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_SYNC_NAMES_VERSION: Final = 5
_OPERATIONS_VERSION: Final = 3


class AsksCoordinator(Protocol):
    """The one method of a group coordinator that the edge calls."""

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Handle one request."""
        ...


Check = Callable[[Any, RequestContext], EdgeResult]
"""The edge's check of requests of one type."""


class GroupApis:
    """The edge around one group coordinator.

    Args:
        coordinator: Handles the requests that the edge passes on.
        profile: Kafka version of the broker.
        topics: The existing topics.
        old_offsets: Offsets of version 0 commits, shared by all brokers of the cluster.
        offers: The protocols of groups that are on now.
        authorizer: Authorizes requests; None allows everything.
        internal_topics: Creates what streams groups need; None leaves it to the driver.
    """

    __slots__ = (
        "_access",
        "_checks",
        "_coordinator",
        "_creations",
        "_finishes",
        "_offers",
        "_profile",
        "_unchecked",
    )

    def __init__(  # noqa: PLR0913 - what an edge needs, by keyword
        self,
        coordinator: AsksCoordinator,
        profile: Profile,
        *,
        topics: Topics,
        old_offsets: ZooKeeperOffsets,
        offers: Offers,
        authorizer: Authorizer | None = None,
        internal_topics: InternalTopics | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._profile = profile
        self._access = Access(authorizer)
        self._offers = offers
        self._finishes: dict[int, Finish] = {}
        self._creations: dict[int, Create] = {}
        self._unchecked = _UNCHECKED if profile.static_membership else {}
        offsets = OffsetApis(topics, self._access, profile, old_offsets)
        self._checks: dict[type[Request], Check] = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            DescribeGroupsRequest: self._describe,
            ListGroupsRequest: self._list,
            DeleteGroupsRequest: self._delete,
            **GroupChecks(self._access, offers, topics, internal_topics).checks(),
            OffsetCommitRequest: offsets.commit,
            TxnOffsetCommitRequest: offsets.txn_commit,
            OffsetDeleteRequest: offsets.delete,
            OffsetFetchRequest: FetchApi(topics, self._access, profile, old_offsets).fetch,
        }

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Handle a request; the result is complete and needs no `pass_on`."""
        protocol = self._unchecked.get(type(request))
        if protocol not in self._offers or self._access.authorizer is not None:
            passage = self._checks[type(request)](request, context)
            if passage.request is None:
                finish = cast("Finish", passage.finish)
                return CoordinatorResult(replies=(Reply(context.token, finish(None)),))
            request = passage.request
            if passage.finish is not None:
                self._finishes[context.token] = passage.finish
            if passage.create is not None:
                self._creations[context.token] = passage.create
        result = self._coordinator.handle(request, context, now_ms)
        return self.pass_on(result) if self._finishes or self._creations else result

    def pass_on(self, result: CoordinatorResult) -> CoordinatorResult:
        """Complete the answers in the result of a method of the coordinator."""
        if not result.replies or not (self._finishes or self._creations):
            return result
        replies = tuple(self._completed(reply) for reply in result.replies)
        return replace(result, replies=replies)

    def _completed(self, reply: Reply) -> Reply:
        finish = self._finishes.pop(reply.token, None)
        if finish is not None:
            return Reply(reply.token, finish(reply.response))
        create = self._creations.pop(reply.token, None)
        if create is None or not reply.internal_topics:
            return reply
        return Reply(reply.token, create(reply.internal_topics, reply.response))

    def use_authorizer(self, authorizer: Authorizer | None) -> None:
        """Ask another authorizer from now on; None allows everything."""
        self._access.authorizer = authorizer

    def may_describe(self, context: RequestContext, topic: str) -> bool:
        """Whether the sender of a request may know of a topic."""
        return self._access.allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    # -- membership ------------------------------------------------------------------------

    def _member_error(
        self, group_id: str, group_instance_id: str | None, context: RequestContext
    ) -> ErrorCode:
        """The error of a member: static members need a Kafka that knows them, all need READ."""
        if group_instance_id is not None and not self._profile.static_membership:
            return ErrorCode.UNSUPPORTED_VERSION
        if not self._access.allows(context, Operation.READ, ResourceType.GROUP, group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return ErrorCode.NONE

    def _join(self, request: JoinGroupRequest, context: RequestContext) -> EdgeResult:
        error = self._member_error(request.group_id, request.group_instance_id, context)
        if error is not ErrorCode.NONE:
            return answered(JoinGroupResponse(error_code=error, protocol_name=None))
        return EdgeResult(request)

    def _sync(self, request: SyncGroupRequest, context: RequestContext) -> EdgeResult:
        """Check SyncGroup; from version 5 on protocol type and name are mandatory."""
        error = ErrorCode.NONE
        if request.group_instance_id is not None and not self._profile.static_membership:
            error = ErrorCode.UNSUPPORTED_VERSION
        elif context.api_version >= _SYNC_NAMES_VERSION and (
            request.protocol_type is None or request.protocol_name is None
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        else:
            error = self._member_error(request.group_id, None, context)
        if error is not ErrorCode.NONE:
            return answered(SyncGroupResponse(error_code=error))
        return EdgeResult(request)

    def _heartbeat(self, request: HeartbeatRequest, context: RequestContext) -> EdgeResult:
        error = self._member_error(request.group_id, request.group_instance_id, context)
        if error is not ErrorCode.NONE:
            return answered(HeartbeatResponse(error_code=error))
        return EdgeResult(request)

    def _leave(self, request: LeaveGroupRequest, context: RequestContext) -> EdgeResult:
        error = self._member_error(request.group_id, None, context)
        if error is not ErrorCode.NONE:
            return answered(LeaveGroupResponse(error_code=error))
        return EdgeResult(request)

    # -- administration --------------------------------------------------------------------

    def _describe(self, request: DescribeGroupsRequest, context: RequestContext) -> EdgeResult:
        """Check DescribeGroups; groups without DESCRIBE come first in the answer."""
        if self._profile.describes_each_group_once:
            request = replace(request, groups=tuple(old_scala_set_order(request.groups)))
        refused: list[DescribedGroup] = []
        allowed: list[str] = []
        for name in request.groups:
            if self._access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, name):
                allowed.append(name)
            else:
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                refused.append(DescribedGroup(group_id=name, error_code=error))
        wants_operations = (
            request.include_authorized_operations and context.api_version >= _OPERATIONS_VERSION
        )
        if not refused and not wants_operations:
            return EdgeResult(request)
        finish = partial(
            self._finish_describe, request.groups, tuple(refused), context, wants_operations
        )
        return EdgeResult(replace(request, groups=tuple(allowed)), finish)

    def _finish_describe(
        self,
        names: tuple[str, ...],
        refused: tuple[DescribedGroup, ...],
        context: RequestContext,
        wants_operations: bool,
        response: Response | None,
    ) -> Response:
        described = cast("DescribeGroupsResponse", response).groups
        if self._profile.describes_each_group_once:
            together = {group.group_id: group for group in (*refused, *described)}
            refused = ()
            described = tuple(together[name] for name in old_scala_set_order(names))
        if wants_operations:
            described = tuple(self._with_operations(group, context) for group in described)
        return DescribeGroupsResponse(groups=refused + described)

    def _with_operations(self, group: DescribedGroup, context: RequestContext) -> DescribedGroup:
        if group.error_code is not ErrorCode.NONE:
            return group
        has_configs = self._profile.group_has_configs
        operations = GROUP_OPERATIONS if has_configs else OLD_GROUP_OPERATIONS
        bits = self._access.bits(context, operations, ResourceType.GROUP, group.group_id)
        return replace(group, authorized_operations=bits)

    def _list(self, request: ListGroupsRequest, context: RequestContext) -> EdgeResult:
        """Check ListGroups; DESCRIBE on the cluster shows all groups, else only authorized ones."""
        access = self._access
        if access.allows(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            return EdgeResult(request)
        if self._profile.list_needs_cluster:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return answered(ListGroupsResponse(error_code=error))
        return EdgeResult(request, partial(self._finish_list, context))

    def _finish_list(self, context: RequestContext, response: Response | None) -> Response:
        listing = cast("ListGroupsResponse", response)
        visible = tuple(
            group
            for group in listing.groups
            if self._access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        )
        return replace(listing, groups=visible)

    def _delete(self, request: DeleteGroupsRequest, context: RequestContext) -> EdgeResult:
        """Check DeleteGroups; repeated names count once, groups without DELETE come last."""
        names = tuple(dict.fromkeys(request.groups_names))
        allowed: list[str] = []
        refused: list[DeletableGroupResult] = []
        for name in names:
            if self._access.allows(context, Operation.DELETE, ResourceType.GROUP, name):
                allowed.append(name)
            else:
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                refused.append(DeletableGroupResult(group_id=name, error_code=error))
        passed = replace(request, groups_names=tuple(allowed))
        if not refused:
            return EdgeResult(passed)
        return EdgeResult(passed, partial(_finish_delete, tuple(refused)))


def _finish_delete(
    refused: tuple[DeletableGroupResult, ...], response: Response | None
) -> Response:
    results = cast("DeleteGroupsResponse", response).results
    return DeleteGroupsResponse(results=results + refused)


_UNCHECKED: Final[dict[type[Request], GroupProtocol]] = {
    **dict.fromkeys(
        (JoinGroupRequest, HeartbeatRequest, LeaveGroupRequest, ListGroupsRequest),
        GroupProtocol.CLASSIC,
    ),
    ConsumerGroupHeartbeatRequest: GroupProtocol.CONSUMER,
}
"""Requests that the edge only authorizes, if the Kafka version knows static members and the
protocol is on."""
