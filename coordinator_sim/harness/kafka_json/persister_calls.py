"""Calls of a share coordinator in JSON, as the reference prints them; topics by their ids."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Any

from coordinator_sim.coordinator.modern.share.persister import InitializeState, PersisterCall

Json = dict[str, Any]


def write_calls(calls: Iterable[PersisterCall]) -> list[Json]:
    """Return calls in order; the topics of each, and their partitions, ascend."""
    return [_written(call) for call in calls]


def _written(call: PersisterCall) -> Json:
    request = call.request
    topics: list[tuple[str, list[Json]]]
    if isinstance(request, InitializeState):
        what = "initialize"
        topics = [
            (
                _text(topic_id),
                [
                    {
                        "partition": start.partition,
                        "stateEpoch": start.state_epoch,
                        "startOffset": start.start_offset,
                    }
                    for start in starts
                ],
            )
            for topic_id, starts in request.topics
        ]
    else:
        what = "delete"
        topics = [
            (_text(topic_id), [{"partition": index} for index in partitions])
            for topic_id, partitions in request.topics
        ]
    return {
        "call": what,
        "group": request.group_id,
        "topics": [
            {
                "topicId": topic_id,
                "partitions": sorted(partitions, key=lambda each: int(each["partition"])),
            }
            for topic_id, partitions in sorted(topics, key=lambda topic: topic[0])
        ],
    }


def _text(topic_id: bytes) -> str:
    return urlsafe_b64encode(topic_id).decode().rstrip("=")
