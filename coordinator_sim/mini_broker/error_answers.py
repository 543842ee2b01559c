"""Answers that say nothing but an error, to any request: made from the layouts of its version.

Kafka writes one such function for each API. They follow a rule, which is all there is here: the
error stands at the top where the answer has a place for it there, and otherwise once for each
thing that was asked about.

Source: kafka trunk, clients/.../common/requests/*Request.java, getErrorResponse.
"""

from typing import Any, Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data, Kind, Layout, Slot
from coordinator_sim.wire.schemas import layout_of

_ERROR_FIELDS: Final = ("errorCode", "partitionErrorCode")
_FETCH_ANSWERS_AT_TOP_SINCE: Final = 13
"""Source: FetchRequest.getErrorResponse."""
_SAME: Final[dict[str, tuple[str, ...]]] = {
    "coordinators": ("coordinatorKeys",),
    "groups": ("groupIds",),
    "partitionIndex": ("partition", "index"),
    "partitionResponses": ("partitionData",),
    "partitions": ("partitionIndexes",),
    "responses": ("topicData", "topics", "topicNames", "resources"),
    "results": ("topics", "groupsNames", "resources"),
    "resultsByPartition": ("partitions",),
    "resultsByTopicV3AndBelow": ("v3AndBelowTopics",),
}
"""What a field of an answer is called in the request, where that is another name."""
_UNKNOWN: Final[dict[str, int]] = {
    "baseOffset": -1,
    "committedOffset": -1,
    "coordinatorId": -1,
    "endOffset": -1,
    "generationId": -1,
    "highWatermark": -1,
    "lastStableOffset": -1,
    "leaderEpoch": -1,
    "logAppendTimeMs": -1,
    "logStartOffset": -1,
    "lowWatermark": -1,
    "nodeId": -1,
    "numPartitions": -1,
    "offset": -1,
    "port": -1,
    "producerEpoch": -1,
    "producerId": -1,
    "replicationFactor": -1,
    "timestamp": -1,
}
"""Numbers that an answer without contents gives."""


def error_answer(api: ApiKey, version: int, request: Data, error: ErrorCode) -> Data:
    """The answer of a request that was refused with that error.

    Raises:
        UnsupportedVersion: no such API or version.
    """
    layout = layout_of(api, version, response=True)
    is_listed = api is ApiKey.FETCH and version < _FETCH_ANSWERS_AT_TOP_SINCE
    return _refused(layout, request, error, descends=is_listed)


def with_error(answer: Data, error: ErrorCode) -> Data:
    """An answer whose every error code is that one; the rest is as it was."""
    return {name: _tainted(name, value, error) for name, value in answer.items()}


def _tainted(name: str, value: Any, error: ErrorCode) -> Any:  # noqa: ANN401 - any field
    if name in _ERROR_FIELDS:
        return int(error)
    if isinstance(value, list):
        return [with_error(each, error) if isinstance(each, dict) else each for each in value]
    return value


def _refused(layout: Layout, asked: Data, error: ErrorCode, *, descends: bool = False) -> Data:
    slots = {slot.name: slot for slot in layout.present}
    answer: Data = {
        name: asked[found]
        for name, slot in slots.items()
        if slot.layout is None and (found := _asked_as(name, asked)) is not None
        if not isinstance(asked[found], list) and (asked[found] is not None or slot.nullable)
    }
    answer |= {name: value for name, value in _UNKNOWN.items() if name in slots}
    own = [name for name in _ERROR_FIELDS if name in slots]
    answer |= dict.fromkeys(own, int(error))
    if own and not descends:
        return answer
    for name, slot in slots.items():
        found = _asked_as(name, asked)
        if slot.kind is Kind.STRUCTS and found is not None and isinstance(asked[found], list):
            answer[name] = [_refused_item(slot, each, error) for each in asked[found]]
    return answer


def _refused_item(slot: Slot, asked: Any, error: ErrorCode) -> Data:  # noqa: ANN401 - any item
    layout = slot.layout
    if layout is None:
        return {}
    if isinstance(asked, dict):
        return _refused(layout, asked, error)
    kind = Kind.STRING if isinstance(asked, str) else Kind.INT32
    named = next(each.name for each in layout.present if each.kind is kind and not each.nullable)
    return _refused(layout, {}, error) | {named: asked}


def _asked_as(name: str, asked: Data) -> str | None:
    """What a request calls a field of its answer."""
    return next((each for each in (name, *_SAME.get(name, ())) if each in asked), None)
