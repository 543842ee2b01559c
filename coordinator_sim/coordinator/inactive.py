"""A coordinator that was not started yet, or was stopped: what it answers and what it hears.

Requests of one group are refused with the other checks, in `coordinator`; those of several groups
here.

Source: GroupCoordinatorService, `isActive` in each of its methods; in Scala GroupCoordinator
.validateGroupStatus, up to 1.1 `isActive` in each handler.
"""

from coordinator_sim.clock.timer_queue import TimerQueue
from coordinator_sim.coordinator.loading import Takeover, unload
from coordinator_sim.coordinator.runtime import PartitionState, Runtime
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import scala_map_order, scala_set_order
from coordinator_sim.kafka.profiles import Profile
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
from coordinator_sim.messages.list_groups import ListGroupsResponse
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from coordinator_sim.messages.requests import GroupRequest, Response

UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
"""The error of every group that such a coordinator is asked for."""


def start_up(runtime: Runtime) -> bool:
    """Take requests from now on, unless it does already or is over; whether it has begun to."""
    if runtime.is_active or runtime.is_over:
        return False
    runtime.is_active = True
    runtime.timers.start(runtime.now_ms)
    return True


def shut_down(runtime: Runtime, takeover: Takeover) -> None:
    """Take no requests any more; Java unloads what it leads, and no timer is left."""
    if runtime.profile.has_coordinator_runtime and runtime.is_active:
        for partition in runtime.shards():
            if partition.state is not PartitionState.CLOSED:
                unload(runtime, takeover, partition, None)
    runtime.is_active, runtime.is_over = False, True
    runtime.timers = TimerQueue()


def hears_metadata(runtime: Runtime) -> bool:
    """Whether elections and deletions of topics reach it.

    Source: GroupCoordinatorService.throwIfNotActive; Scala does not ask.
    """
    if runtime.profile.has_coordinator_runtime:
        return runtime.is_active
    return not runtime.is_over


def inactive_answer(request: GroupRequest, profile: Profile) -> Response:
    """The answer to a request of several groups: each is refused, in the order asked for.

    Groups with epochs are refused by their `Description`.
    """
    match request:
        case OffsetFetchRequest():
            fetched = (
                OffsetFetchResponseGroup(group_id=g.group_id, error_code=UNAVAILABLE)
                for g in request.groups
            )
            return OffsetFetchResponse(groups=tuple(fetched))
        case DescribeGroupsRequest():
            described = (
                DescribedGroup(group_id=name, error_code=UNAVAILABLE) for name in request.groups
            )
            return DescribeGroupsResponse(groups=tuple(described))
        case DeleteGroupsRequest():
            names = list(dict.fromkeys(request.groups_names))
            if not profile.has_coordinator_runtime:
                names = scala_map_order(scala_set_order(names))
            deleted = (
                DeletableGroupResult(group_id=name, error_code=UNAVAILABLE) for name in names
            )
            return DeleteGroupsResponse(results=tuple(deleted))
        case _:
            return ListGroupsResponse(error_code=UNAVAILABLE)
