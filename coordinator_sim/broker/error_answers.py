"""Error responses to any request, made from the message layouts of its version.

Kafka has one such function for each API. All follow one rule, which is implemented here: the
error stands at the top level if the response has an error field there, otherwise once for each
item of the request.

Source: kafka trunk, clients/.../common/requests/*Request.java, getErrorResponse.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.catalogue import layout_of, name_of, structs_module
from coordinator_sim.messages.schema import Kind, Layout, VersionField

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
"""Names of a response's field in the request, where they differ."""
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
"""Values of the number fields of an error response, by Kafka's name."""


_WORDLESS: Final = frozenset({ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE})
_STATE_APIS: Final = _WORDLESS | {
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
}
"""The APIs of share coordinators, whose error responses have the error's words, but for two, and
other fields at their defaults."""


class _Said(Struct, frozen=True):
    """A field of a message with its value."""

    field: VersionField
    value: Any


_Fields = Mapping[str, _Said]
"""The fields of a message in its version, by Kafka's names."""


def error_answer(api: ApiKey, version: int, request: Struct, error: ErrorCode) -> Struct:
    """The response to a request that is refused with an error.

    Raises:
        UnsupportedVersion: no such API or version.
    """
    asked = _said(layout_of(api, version, response=False), request)
    layout = layout_of(api, version, response=True)
    is_listed = api is ApiKey.FETCH and version < _FETCH_ANSWERS_AT_TOP_SINCE
    answers = _Answers(
        _structs_of(api),
        error,
        unknown={} if api in _STATE_APIS else _UNKNOWN,
        words=error_message(error) if api in _STATE_APIS - _WORDLESS else None,
    )
    return answers.refused(layout, asked, descends=is_listed)


def with_error(api: ApiKey, version: int, answer: Struct, error: ErrorCode) -> Struct:
    """A copy of an answer with every error code replaced; the rest is unchanged.

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
    """The request's field that corresponds to a field of the response; None if there is none."""
    return next((asked[each] for each in (name, *_SAME.get(name, ())) if each in asked), None)


class _Answers:
    """Builds responses with one error.

    Args:
        structs: The module of the API's structs.
        error: The error in the responses.
        unknown: Values of fields that a response cannot know, by Kafka's name.
        words: The message beside the error; None for none.
    """

    __slots__ = ("_error", "_structs", "_unknown", "_words")

    def __init__(
        self,
        structs: ModuleType,
        error: ErrorCode,
        *,
        unknown: Mapping[str, int] = _UNKNOWN,
        words: str | None = None,
    ) -> None:
        self._structs = structs
        self._error = error
        self._unknown = unknown
        self._words = words

    def refused(self, layout: Layout, asked: _Fields, *, descends: bool = False) -> Struct:
        """Build a response without contents.

        Args:
            layout: Layout of the response, or of a part of it.
            asked: Fields of the corresponding part of the request.
            descends: Whether each item gets the error, even if there is a top-level error field.
        """
        return self._made(layout, self._refusal(layout, asked, descends=descends))

    def tainted(self, layout: Layout, answer: Struct) -> Struct:
        """A copy of an answer in which only the error codes are replaced."""
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
        answer |= {name: value for name, value in self._unknown.items() if name in present}
        own = [name for name in _ERROR_FIELDS if name in present]
        answer |= dict.fromkeys(own, self._error)
        if own and self._words is not None:
            answer["errorMessage"] = self._words
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
        """Build a struct from values by Kafka's names; other fields keep their defaults."""
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
