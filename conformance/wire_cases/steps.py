"""What each API does in a story: its request in any version, and what its answer has to hold."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.targets.target import Json
from coordinator_sim_conformance.wire_cases.story import (
    Story,
    Unanswered,
    errors_of,
    name_of_error,
)

_PROTOCOL: Final = "range"
_TYPE: Final = "consumer"
_WORK: Final = b"work"
_OFFSET: Final = 42
_TIMEOUTS_MS: Final = (10_000, 60_000)
_PRODUCER: Final = (1_000, 2)
_FIRST_WITH_IDS: Final = {"OffsetCommit": 10, "OffsetFetch": 10, "TxnOffsetCommit": 6}
"""The version from which on topics have ids in place of names."""
_FINE: Final = frozenset({ErrorCode.NONE})
_ANYTHING: Final = frozenset(ErrorCode) - {ErrorCode.UNSUPPORTED_VERSION}
_OF_ZOOKEEPER: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Version 0 of commits and fetches is about offsets in ZooKeeper, which newer Kafkas lack."""
_ID_FIRST: Final = ErrorCode.MEMBER_ID_REQUIRED
_LISTED_KEYS: Final = (ApiKey.JOIN_GROUP, ApiKey.API_VERSIONS)

Body = Callable[[Story, int], Json]
"""Makes the request of a version."""


class Step(Struct, frozen=True, kw_only=True):
    """One API in a story.

    Args:
        body: Makes its request.
        before: APIs whose requests go before the first of these.
        each: APIs whose requests go before every one of these.
        errors: Errors that its answer may hold.
        lacks: Says what an answer without an error lacks; empty for nothing.
    """

    body: Body
    before: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    errors: frozenset[ErrorCode] = _FINE
    lacks: Callable[[Story, Json], str] = lambda _story, _answer: ""


def prepare(story: Story, apis: tuple[str, ...]) -> None:
    """Play a step of each API, in the newest version that is answered.

    Raises:
        CaseBroken: no version is answered well.
    """
    for index, api in enumerate(apis):
        problems = []
        for version in reversed(story.known(api)):
            problem = played(story, api, version)
            if not problem:
                break
            problems.append(problem)
            story.start_over()
            prepare(story, apis[:index])
        else:
            story.break_off(f"no {api} to go on with: {'; '.join(problems)}")


def played(story: Story, api: str, version: int) -> str:
    """Play a step in one version; return what is wrong with its answer, empty for nothing."""
    step = STEPS[api]
    try:
        answer = story.ask(api, version, step.body(story, version))
        if api == "JoinGroup" and answer["errorCode"] == _ID_FIRST:
            story.member_id = answer["memberId"]
            answer = story.ask(api, version, step.body(story, version))
    except Unanswered as unanswered:
        return str(unanswered)
    errors = errors_of(answer)
    is_old = version == 0 and api in {"OffsetCommit", "OffsetFetch"}
    allowed = _OF_ZOOKEEPER if is_old else step.errors
    strange = [name_of_error(error) for error in errors if error not in allowed]
    if strange:
        return f"{api} of version {version} is answered {', '.join(strange)}"
    _learn(story, api, answer)
    lacks = "" if is_old else step.lacks(story, answer)
    return lacks and f"the answer to {api} of version {version} {lacks}"


def _learn(story: Story, api: str, answer: Json) -> None:
    if api == "JoinGroup":
        story.member_id, story.generation_id = answer["memberId"], answer["generationId"]
    elif api == "LeaveGroup":
        story.member_id = ""


# -- requests ------------------------------------------------------------------------------


def _who(story: Story) -> bodies.Identity:
    return bodies.Identity(
        group_id=story.group,
        member_id=story.member_id,
        generation_id=story.generation_id,
    )


def _nobody(story: Story) -> bodies.Identity:
    return bodies.Identity(group_id=story.group)


def _join(story: Story, version: int) -> Json:
    return bodies.join_group(
        version,
        _who(story),
        timeouts_ms=_TIMEOUTS_MS,
        protocol_type=_TYPE,
        protocols={_PROTOCOL: bodies.subscription(())},
    )


def _sync(story: Story, version: int) -> Json:
    return bodies.sync_group(
        version,
        _who(story),
        protocol=(_TYPE, _PROTOCOL),
        assignments={story.member_id: _WORK},
    )


def _offsets(story: Story) -> list[bodies.Offset]:
    return [bodies.Offset(topic=story.topic, partition=0, offset=_OFFSET)]


def _by_id(story: Story, api: str, version: int, topics: list[Json]) -> None:
    """Put ids in the place of names where the version has them."""
    if version >= _FIRST_WITH_IDS[api]:
        for each in topics:
            del each["name"]
            each["topicId"] = story.topic_id


def _commit(story: Story, version: int) -> Json:
    data = bodies.offset_commit(version, _nobody(story), _offsets(story))
    if version == 0:
        del data["generationIdOrMemberEpoch"], data["memberId"]
    _by_id(story, "OffsetCommit", version, data["topics"])
    return data


def _fetch(story: Story, version: int) -> Json:
    data = bodies.offset_fetch(version, [story.group], [(story.topic, 0)])
    for group in data.get("groups", ()):
        _by_id(story, "OffsetFetch", version, group["topics"])
    return data


def _txn_commit(story: Story, version: int) -> Json:
    data = bodies.txn_offset_commit(version, _nobody(story), _offsets(story), _PRODUCER)
    if version >= _FIRST_WITH_IDS["TxnOffsetCommit"]:
        data["generationIdOrMemberEpoch"] = data.pop("generationId")
    _by_id(story, "TxnOffsetCommit", version, data["topics"])
    return data


def _add_offsets(story: Story, _version: int) -> Json:
    return {
        "transactionalId": f"txn-{_PRODUCER[0]}",
        "producerId": _PRODUCER[0],
        "producerEpoch": _PRODUCER[1],
        "groupId": story.group,
    }


def _ask_versions(_story: Story, version: int) -> Json:
    if version < 3:  # noqa: PLR2004 - version 3 brings the client's software
        return {}
    return {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1"}


# -- answers -------------------------------------------------------------------------------


def _lacks_coordinator(_story: Story, answer: Json) -> str:
    (found,) = answer.get("coordinators", [answer])
    return "" if found["host"] and found["port"] > 0 else "names no coordinator"


def _lacks_member(story: Story, answer: Json) -> str:
    ids = [each["memberId"] for each in answer["members"]]
    return "" if ids == [story.member_id] else f"lists {ids} as members"


def _lacks_work(_story: Story, answer: Json) -> str:
    came = answer["assignment"]
    return "" if came == b64encode(_WORK).decode("ascii") else f"holds the assignment {came!r}"


def _lacks_offset(_story: Story, answer: Json) -> str:
    (group,) = answer.get("groups", [answer])
    found: list[Any] = [
        each["committedOffset"] for topic in group["topics"] for each in topic["partitions"]
    ]
    return "" if found == [_OFFSET] else f"holds offsets {found}, not {[_OFFSET]}"


def _lacks_description(story: Story, answer: Json) -> str:
    (group,) = answer["groups"]
    came = (group["groupId"], group["groupState"], _lacks_member(story, group))
    return "" if came == (story.group, "Stable", "") else f"says {came}"


def _lacks_group(story: Story, answer: Json) -> str:
    listed = [each["groupId"] for each in answer["groups"]]
    return "" if story.group in listed else "leaves the group out"


def _lacks_range(story: Story, answer: Json) -> str:
    ranges = {
        each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in answer["apiKeys"]
    }
    told = tuple(ranges.get(key) for key in _LISTED_KEYS)
    known = tuple(story.reach.versions[api] for api in ("JoinGroup", "ApiVersions"))
    return "" if told == known else f"tells the versions {told}, others told {known}"


STABLE: Final = ("JoinGroup", "SyncGroup")
"""What makes a group with one member Stable."""
STEPS: Final[dict[str, Step]] = {
    "ApiVersions": Step(body=_ask_versions, lacks=_lacks_range),
    "FindCoordinator": Step(
        body=lambda story, version: bodies.find_coordinator(version, [story.group], 0),
        lacks=_lacks_coordinator,
    ),
    "JoinGroup": Step(body=_join, lacks=_lacks_member),
    "SyncGroup": Step(body=_sync, before=("JoinGroup",), lacks=_lacks_work),
    "Heartbeat": Step(
        body=lambda story, version: bodies.heartbeat(version, _who(story)), before=STABLE
    ),
    "LeaveGroup": Step(
        body=lambda story, version: bodies.leave_group(
            version, story.group, [(story.member_id, None)]
        ),
        each=("JoinGroup",),
    ),
    "OffsetCommit": Step(body=_commit),
    "OffsetFetch": Step(body=_fetch, before=("OffsetCommit",), lacks=_lacks_offset),
    "DescribeGroups": Step(
        body=lambda story, version: bodies.describe_groups(version, [story.group]),
        before=STABLE,
        lacks=_lacks_description,
    ),
    "ListGroups": Step(
        body=lambda _story, version: bodies.list_groups(version, (), ()),
        before=("OffsetCommit",),
        lacks=_lacks_group,
    ),
    "DeleteGroups": Step(
        body=lambda story, _version: bodies.delete_groups([story.group]),
        each=("OffsetCommit",),
    ),
    "OffsetDelete": Step(
        body=lambda story, _version: bodies.offset_delete(story.group, [(story.topic, 0)]),
        each=("OffsetCommit",),
    ),
    "TxnOffsetCommit": Step(body=_txn_commit, errors=_ANYTHING),
    "AddOffsetsToTxn": Step(body=_add_offsets, errors=_ANYTHING),
}
"""API by Kafka's name -> its step. Producers of transactions are made up: errors are answers."""
