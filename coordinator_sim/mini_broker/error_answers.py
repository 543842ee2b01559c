"""Answers that say nothing but an error, to any request: made from the layouts of its version.

Kafka writes one such function for each API. They follow a rule, which is all there is here: the
error stands at the top where the answer has a place for it there, and otherwise once for each
thing that was asked about.

Source: kafka trunk, clients/.../common/requests/*Request.java, getErrorResponse.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.messages.catalogue import layout_of, name_of, structs_module
from coordinator_sim.messages.schema import Kind, Layout, VersionField
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode

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


class _Said(Struct, frozen=True):
    """A field of a message, and what the message says there."""

    field: VersionField
    value: Any


_Fields = Mapping[str, _Said]
"""The fields that a version has, by Kafka's names."""


def error_answer(api: ApiKey, version: int, request: Struct, error: ErrorCode) -> Struct:
    """The answer of a request that was refused with that error.

    Raises:
        UnsupportedVersion: no such API or version.
    """
    asked = _said(layout_of(api, version, response=False), request)
    layout = layout_of(api, version, response=True)
    is_listed = api is ApiKey.FETCH and version < _FETCH_ANSWERS_AT_TOP_SINCE
    return _Answers(_structs_of(api), error).refused(layout, asked, descends=is_listed)


def with_error(api: ApiKey, version: int, answer: Struct, error: ErrorCode) -> Struct:
    """An answer whose every error code is that one; the rest is as it was.

    Raises:
        UnsupportedVersion: no such API or version.
    """
    layout = layout_of(api, version, response=True)
    return _Answers(_structs_of(api), error).tainted(layout, answer)


def _structs_of(api: ApiKey) -> ModuleType:
    return import_module(structs_module(name_of(api)))


def _said(layout: Layout, message: Struct) -> dict[str, _Said]:
    entry: Any = None
    if layout.entries is not None:
        (entry,) = getattr(message, layout.entries.attribute)
    said = {}
    for each in layout.present:
        is_whole = each.is_inlined and not isinstance(entry, Struct)
        owner = entry if each.is_inlined else message
        value = entry if is_whole else getattr(owner, each.field.attribute)
        said[each.field.name] = _Said(each, value)
    return said


def _asked_as(name: str, asked: _Fields) -> _Said | None:
    """What a request says where its answer has that field."""
    return next((asked[each] for each in (name, *_SAME.get(name, ())) if each in asked), None)


class _Answers:
    """Makes answers with one error.

    Args:
        structs: The module of the API's structs.
        error: What they say.
    """

    __slots__ = ("_error", "_structs")

    def __init__(self, structs: ModuleType, error: ErrorCode) -> None:
        self._structs = structs
        self._error = error

    def refused(self, layout: Layout, asked: _Fields, *, descends: bool = False) -> Struct:
        """An answer without contents.

        Args:
            layout: Of the answer, or of a part of it.
            asked: What the request says of the same.
            descends: Whether the error is said of each part, also where it has a place above.
        """
        return self._made(layout, self._refusal(layout, asked, descends=descends))

    def tainted(self, layout: Layout, answer: Struct) -> Struct:
        """An answer as it was but for its errors."""
        values = {name: self._tainted(each) for name, each in _said(layout, answer).items()}
        return self._made(layout, values)

    def _tainted(self, said: _Said) -> object:
        layout, value = said.field.layout, said.value
        if said.field.field.name in _ERROR_FIELDS:
            return self._error
        if layout is not None and isinstance(value, tuple):
            return tuple(self.tainted(layout, each) for each in value)
        return value

    def _refusal(self, layout: Layout, asked: _Fields, *, descends: bool) -> dict[str, object]:
        present = {each.field.name: each for each in layout.present}
        answer: dict[str, object] = {
            name: found.value
            for name, field in present.items()
            if field.layout is None and (found := _asked_as(name, asked)) is not None
            if not isinstance(found.value, tuple) and (found.value is not None or field.is_nullable)
        }
        answer |= {name: value for name, value in _UNKNOWN.items() if name in present}
        own = [name for name in _ERROR_FIELDS if name in present]
        answer |= dict.fromkeys(own, self._error)
        if own and not descends:
            return answer
        for name, field in present.items():
            found = _asked_as(name, asked)
            inner = field.layout if field.field.kind is Kind.ARRAY else None
            if inner is not None and found is not None and isinstance(found.value, tuple):
                answer[name] = tuple(
                    self._refused_item(inner, found.field.layout, each) for each in found.value
                )
        return answer

    def _refused_item(self, layout: Layout, asked_layout: Layout | None, asked: object) -> Struct:
        if asked_layout is not None and isinstance(asked, Struct):
            return self.refused(layout, _said(asked_layout, asked))
        kind = Kind.STRING if isinstance(asked, str) else Kind.INT32
        named = next(
            each.field.name
            for each in layout.present
            if each.field.kind is kind and not each.is_nullable
        )
        return self._made(layout, {**self._refusal(layout, {}, descends=False), named: asked})

    def _made(self, layout: Layout, values: Mapping[str, object]) -> Struct:
        """A struct with these values, by Kafka's names; the rest is at its defaults."""
        own: dict[str, object] = {}
        inlined: dict[str, object] = {}
        for each in layout.present:
            if each.field.name in values:
                into = inlined if each.is_inlined else own
                into[each.field.attribute] = values[each.field.name]
        if layout.entries is not None:
            entry = getattr(self._structs, layout.entries.struct_name)
            own[layout.entries.attribute] = (entry(**inlined),)
        made: Struct = getattr(self._structs, layout.struct_name)(**own)
        return made
