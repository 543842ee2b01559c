"""Requests of several groups: each group is refused alone, all are answered together."""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.coordinator.deletion import delete_groups
from coordinator_sim.coordinator.inactive import UNAVAILABLE, inactive_answer
from coordinator_sim.coordinator.inspection import Description, describe_groups, list_groups
from coordinator_sim.coordinator.modern.consumer.describe import CONSUMER_GROUPS
from coordinator_sim.coordinator.modern.share.describe import SHARE_GROUPS
from coordinator_sim.coordinator.offsets.fetch import FetchGroup, FetchUnderWay
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.describe import STREAMS_GROUPS
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest
from coordinator_sim.messages.list_groups import ListGroupsRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.requests import SpanningRequest
from coordinator_sim.messages.share_group_describe import ShareGroupDescribeRequest
from coordinator_sim.messages.streams_group_describe import StreamsGroupDescribeRequest

DESCRIPTIONS: Final[Mapping[type, Description]] = {
    ConsumerGroupDescribeRequest: CONSUMER_GROUPS,
    ShareGroupDescribeRequest: SHARE_GROUPS,
    StreamsGroupDescribeRequest: STREAMS_GROUPS,
}


def answer_spanning(
    runtime: Runtime, request: SpanningRequest, context: RequestContext, fetch_group: FetchGroup
) -> None:
    """Take a request of several groups.

    Args:
        runtime: The coordinator.
        request: The request.
        context: Its token names the answer.
        fetch_group: Reads the offsets of one group of an OffsetFetch.
    """
    description = DESCRIPTIONS.get(type(request))
    if description is not None:
        if runtime.is_active:
            description.answer(runtime, request, context)
        else:
            runtime.reply(context.token, description.refusal(request, UNAVAILABLE))
    elif not runtime.is_active:
        runtime.reply(context.token, inactive_answer(request, runtime.profile))
    elif isinstance(request, OffsetFetchRequest):
        FetchUnderWay(runtime, request, context, fetch_group).start()
    elif isinstance(request, DescribeGroupsRequest):
        describe_groups(runtime, request, context)
    elif isinstance(request, ListGroupsRequest):
        list_groups(runtime, request, context)
    elif isinstance(request, DeleteGroupsRequest):
        delete_groups(runtime, request, context)
    else:
        raise InvariantViolation(f"no handler of {type(request).__name__}")
