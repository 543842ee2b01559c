"""Compares what an endpoint answered in wall time with the simulator, which draws the same ids.

The simulator plays the program again with the member ids that the endpoint drew, so that whatever
follows from the order of ids is the same on both sides. Permitted are: answers a little later or
earlier, in any order among those of one command; lists of members, groups and topics in any order;
groups as they are seen when nobody else writes to their partition, or when somebody does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Struct

from coordinator_sim_conformance.differ.comparison import Difference, differences
from coordinator_sim_conformance.differ.endpoint_play import Heard, Played, with_ids
from coordinator_sim_conformance.differ.loop import Exchange
from coordinator_sim_conformance.differ.timed_programs import Clearance, TimedWorld, joined

Json = dict[str, Any]

_UUID: Final = re.compile(r"(.*)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.DOTALL)
_NOTHING: Final = "(nothing)"
_JITTER_MS: Final = 80
"""How much later than a request its answer may come, beside the clearance's slack."""
_EARLY_MS: Final = 25
"""How much earlier than by the program's clock an answer may come: clocks are rounded."""
_SEEN_MS: Final = 10
"""Time in which what was written is committed and seen."""
_OTHERS: Final = "(others) "
"""How the names of groups begin that stand for others at the endpoint."""
_COMMIT: Final[Json] = {
    "op": "call",
    "api": "OffsetCommit",
    "v": 2,
    "data": {
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "retentionTimeMs": -1,
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": ""}
                ],
            }
        ],
    },
}
_COMMITTED_VIEWS: Final = frozenset({"DescribeGroups", "ListGroups"})
"""Requests that see groups as of the last record written to their partition, whoever wrote it.

Source: kafka 4.4, GroupMetadataManager.describeGroups and listGroups (committed offset).
"""
_UNORDERED: Final = {
    "members": "memberId",
    "groups": "groupId",
    "results": "groupId",
    "topics": "name",
    "partitions": "partitionIndex",
}
"""Lists of answers whose order says nothing, and what they are sorted by."""


class TimedScript(Struct, frozen=True):
    """A program for real time.

    Args:
        commands: Everything but `uuids`.
        uuids: Id of a JoinGroup -> the random part of the member id that it draws.
    """

    commands: tuple[Json, ...]
    uuids: dict[int, str] = {}

    @classmethod
    def of(cls, commands: Sequence[Json]) -> "TimedScript":
        """Return the script of a program in which `uuids` stands before a JoinGroup."""
        bare: list[Json] = []
        uuids: dict[int, str] = {}
        waiting: list[str] = []
        for command in commands:
            if command["op"] == "uuids":
                waiting += command["next"]
                continue
            if waiting and command.get("api") == "JoinGroup":
                uuids[command["id"]] = waiting.pop(0)
            bare.append(command)
        return cls(tuple(bare), uuids)

    def lines(self) -> list[Json]:
        """Return the program as both sides of the line protocol run it."""
        result: list[Json] = []
        for command in self.commands:
            uuid = self.uuids.get(command.get("id", -1))
            if uuid is not None:
                result.append({"op": "uuids", "next": [uuid]})
            result.append(command)
        return result


class Expectation(Struct, frozen=True):
    """What the simulator answers.

    Args:
        answers: Its answers, command by command.
        drawn: Id of a JoinGroup -> the member id that it drew, as its answer tells.
        clear: Number of commands before the first request that a timer may race.
    """

    answers: tuple[Json, ...]
    drawn: dict[int, str]
    clear: int

    def answered(self, commands: Sequence[Json]) -> dict[int, frozenset[int]]:
        """Return index of an `advance` -> ids of the requests that are answered by its end."""
        so_far: set[int] = set()
        answered = {}
        for index, answer in enumerate(self.answers):
            so_far.update(reply["id"] for reply in answer.get("replies", ()))
            if commands[index]["op"] == "advance":
                answered[index] = frozenset(so_far)
        return answered


def expected(
    script: TimedScript, profile: str, clearance: Clearance, *, is_busy: bool = False
) -> Expectation:
    """Play a script on the simulator alone.

    Args:
        script: The program.
        profile: Kafka that the simulator is.
        clearance: Distances that requests keep to timers.
        is_busy: Whether others write to the partitions of the program's groups all the time.
    """
    world = TimedWorld(profile, clearance)
    answers: list[Json] = []
    drawn: dict[int, str] = {}
    clear = len(script.commands)
    for index, command in enumerate(script.commands):
        if command["op"] == "advance":
            rest_ms = min(_SEEN_MS, command["ms"]) if is_busy else 0
            is_clear, answer = world.is_clear_after(command["ms"] - rest_ms)
            if rest_ms:
                _write_beside(world)
                answer = joined(answer, world.advance(rest_ms))
            clear = clear if is_clear else min(clear, index + 1)
        else:
            uuid = script.uuids.get(command.get("id", -1))
            if uuid is not None:
                world.side.answer({"op": "uuids", "next": [uuid]})
            answer = world.side.answer(command)
        if is_busy:
            answer = _without_others(answer)
        answers.append(answer)
        for reply in answer.get("replies", ()):
            member_id = reply["data"].get("memberId", "") if reply["api"] == "JoinGroup" else ""
            if _UUID.fullmatch(member_id) and member_id not in drawn.values():
                drawn[reply["id"]] = member_id
    return Expectation(tuple(answers), drawn, clear)


def _write_beside(world: TimedWorld) -> None:
    """Commit an offset of a group that is not the program's, in each offsets partition."""
    harness = world.side.world
    missing = set(range(harness.config.offsets_topic_num_partitions))
    for number in count():
        if not missing:
            return
        group = f"{_OTHERS}{number}"
        if (partition := harness.partition_of(group)) in missing:
            missing.remove(partition)
            world.side.answer({**_COMMIT, "data": {**_COMMIT["data"], "groupId": group}})


def _without_others(answer: Json) -> Json:
    """Return an answer without what others at the endpoint asked for, and without their groups."""
    replies = [each for each in answer.get("replies", ()) if "id" in each]
    for each in replies:
        if each["api"] == "ListGroups":
            groups = each["data"]["groups"]
            kept = [group for group in groups if not group["groupId"].startswith(_OTHERS)]
            each["data"]["groups"] = kept
    return {**answer, "replies": replies}


class Compared(Struct, frozen=True):
    """Both sides of a program.

    Args:
        script: The program with the endpoint's ids.
        exchanges: Both answers to each command, as far as no timer may have raced a request.
    """

    script: TimedScript
    exchanges: tuple[Exchange, ...]

    @property
    def requests(self) -> int:
        """Number of requests that were compared."""
        return sum(each.command["op"] == "call" for each in self.exchanges)

    def differences(self) -> Iterator[tuple[int, Difference]]:
        """Yield every difference with the index of its command."""
        for index, each in enumerate(self.exchanges):
            for difference in differences(each.command, each.ours, each.theirs):
                yield index, difference


def compared(
    script: TimedScript,
    played: Played,
    drawn: Mapping[int, str],
    profile: str,
    clearance: Clearance,
) -> Compared:
    """Play a script on the simulator with the endpoint's ids, and put both sides together.

    Args:
        script: The script, as it was played.
        played: What came of it at the endpoint.
        drawn: Id of a JoinGroup -> the script's member id that it drew.
        profile: Kafka that the simulator is.
        clearance: Distances of the play.
    """
    common = {ours: _common_id(ours, theirs) for ours, theirs in played.ids.items()}
    renamed = TimedScript(
        tuple(_with_ids(command, common) for command in script.commands),
        {
            call_id: _UUID.sub(r"\2", common.get(member_id, member_id))
            for call_id, member_id in drawn.items()
        },
    )
    mine = expected(renamed, profile, clearance)
    here = {theirs: common[ours] for ours, theirs in played.ids.items()}
    told = frozenset(common.values())
    ours = _replies(mine.answers, told)
    theirs = {call_id: _heard(each, here, told) for call_id, each in played.heard.items()}
    late_ms = clearance.slack_ms + _JITTER_MS * clearance.factor
    if any(_differs_in_view(command, ours, theirs) for command in renamed.commands):
        busy = expected(renamed, profile, clearance, is_busy=True)
        ours |= _seen_with_others(renamed.commands, _replies(busy.answers, told), theirs)
    both: dict[int, list[tuple[Json, Json]]] = {}
    for command in renamed.commands:
        if command["op"] == "call":
            place, left, right = _paired(command, ours, theirs, late_ms)
            both.setdefault(place, []).append((left, right))
    exchanges = []
    for index, command in enumerate(renamed.commands[: mine.clear]):
        pairs = both.get(index, [])
        answer = mine.answers[index]
        shared: Json = {name: answer[name] for name in ("id", "now") if name in answer}
        broken = {"error": answer["error"]} if "error" in answer else {}
        left = {**shared, **broken, "replies": [one for one, _ in pairs]}
        right = {**shared, "replies": [other for _, other in pairs]}
        exchanges.append(Exchange(command, left, right))
    return Compared(renamed, tuple(exchanges))


def _differs_in_view(
    command: Json,
    ours: Mapping[int, tuple[int, int, Any]],
    theirs: Mapping[int, tuple[int, int, Any]],
) -> bool:
    """Whether both sides show groups otherwise in the answer to a request."""
    if command.get("api") not in _COMMITTED_VIEWS:
        return False
    left, right = ours.get(command["id"]), theirs.get(command["id"])
    return left is not None and right is not None and left[2] != right[2]


def _seen_with_others(
    commands: Sequence[Json],
    busy: Mapping[int, tuple[int, int, Any]],
    theirs: Mapping[int, tuple[int, int, Any]],
) -> dict[int, tuple[int, int, Any]]:
    """Return our answers that show groups as the endpoint does, once others have written."""
    return {
        command["id"]: busy[command["id"]]
        for command in commands
        if command.get("api") in _COMMITTED_VIEWS
        and command["id"] in busy
        and command["id"] in theirs
        and busy[command["id"]][2] == theirs[command["id"]][2]
    }


def _common_id(ours: str, theirs: str) -> str:
    """Return the id of a member on both sides: with the endpoint's UUID, if it draws one."""
    mine, other = _UUID.fullmatch(ours), _UUID.fullmatch(theirs)
    if mine is None or other is None:
        return ours
    return f"{mine[1]}-{other[2]}"


def _with_ids(command: Json, ids: Mapping[str, str]) -> Json:
    return {**command, "data": with_ids(command["data"], ids)} if "data" in command else command


def _replies(answers: Sequence[Json], told: frozenset[str]) -> dict[int, tuple[int, int, Any]]:
    """Return request -> index of the command that it was answered with, instant, body."""
    return {
        reply["id"]: (index, reply["at"], _ordered(_untold(reply["data"], told)))
        for index, answer in enumerate(answers)
        for reply in answer.get("replies", ())
    }


def _heard(each: Heard, ids: Mapping[str, str], told: frozenset[str]) -> tuple[int, int, Any]:
    if each.data is None:
        return each.command, each.at_ms, each.problem
    return each.command, each.at_ms, _ordered(_untold(with_ids(each.data, ids), told))


def _untold(data: Json, told: frozenset[str]) -> Json:
    """Return a body in which ids that no JoinGroup was answered with are alike on both sides.

    DescribeGroups shows the members whose JoinGroup still waits.
    """
    found = {
        member_id: f"{match[1]}-(untold)"
        for member_id in _member_ids(data)
        if member_id not in told and (match := _UUID.fullmatch(member_id))
    }
    return with_ids(data, found) if found else data


def _member_ids(data: object) -> Iterator[str]:
    match data:
        case dict():
            for name, value in data.items():
                if name in {"memberId", "leader"} and isinstance(value, str):
                    yield value
                else:
                    yield from _member_ids(value)
        case list():
            for each in data:
                yield from _member_ids(each)


def _paired(
    command: Json,
    ours: Mapping[int, tuple[int, int, Any]],
    theirs: Mapping[int, tuple[int, int, Any]],
    late_ms: int,
) -> tuple[int, Json, Json]:
    """Return where the answers to a request stand, and both; -1 if neither side has one.

    An answer that comes about when it should counts as on time.
    """
    call_id = command["id"]
    left, right = ours.get(call_id), theirs.get(call_id)
    if left is not None and right is not None:
        early_ms = left[1] - right[1]
        if -late_ms <= early_ms <= _EARLY_MS:
            right = (left[0], left[1], right[2])
    place = min((each[0] for each in (left, right) if each is not None), default=-1)
    return place, _reply(command, left), _reply(command, right)


def _reply(command: Json, answer: tuple[int, int, Any] | None) -> Json:
    reply: Json = {"id": command["id"], "api": command["api"]}
    if answer is None:
        return {**reply, "at": _NOTHING}
    return {**reply, "at": answer[1], "data": answer[2]}


def _ordered(value: Any, field: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return a body whose lists without an order are sorted."""
    match value:
        case dict():
            return {name: _ordered(each, name) for name, each in value.items()}
        case list():
            entries = [_ordered(each) for each in value]
            name = _UNORDERED.get(field)
            return entries if name is None else sorted(entries, key=lambda each: _key(each, name))
    return value


def _key(entry: object, name: str) -> tuple[str, bytes]:
    named = str(entry.get(name, "")) if isinstance(entry, dict) else ""
    return named, msgspec.json.encode(entry)
