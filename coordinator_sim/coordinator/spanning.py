"""Requests of several groups: each group is refused alone, all are answered together."""

from typing import assert_never

from coordinator_sim.coordinator.deletion import delete_groups
from coordinator_sim.coordinator.inactive import inactive_answer
from coordinator_sim.coordinator.inspection import (
    describe_groups,
    describe_share_groups,
    list_groups,
)
from coordinator_sim.coordinator.modern.consumer.describe import describe_consumer_groups
from coordinator_sim.coordinator.offsets.fetch import FetchGroup, FetchUnderWay
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.describe import describe_streams_groups
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest
from coordinator_sim.messages.list_groups import ListGroupsRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.requests import SpanningRequest
from coordinator_sim.messages.share_group_describe import ShareGroupDescribeRequest
from coordinator_sim.messages.streams_group_describe import StreamsGroupDescribeRequest


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
    if not runtime.is_active:
        runtime.reply(context.token, inactive_answer(request, runtime.profile))
        return
    match request:
        case OffsetFetchRequest():
            FetchUnderWay(runtime, request, context, fetch_group).start()
        case DescribeGroupsRequest():
            describe_groups(runtime, request, context)
        case ListGroupsRequest():
            list_groups(runtime, request, context)
        case DeleteGroupsRequest():
            delete_groups(runtime, request, context)
        case ConsumerGroupDescribeRequest():
            describe_consumer_groups(runtime, request, context)
        case ShareGroupDescribeRequest():
            describe_share_groups(runtime, request, context)
        case StreamsGroupDescribeRequest():
            describe_streams_groups(runtime, request, context)
        case _:
            assert_never(request)
