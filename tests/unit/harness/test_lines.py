"""The line protocol, one story each."""

from typing import Any

import msgspec
import pytest

from coordinator_sim.harness.lines import Lines

Json = dict[str, Any]


def world(**fields: object) -> Lines:
    """A session with a world in it that has a topic: no initial delay unless told."""
    lines = empty_world(**fields)
    assert lines.answer({"op": "topics", "set": [{"name": "t"}]}) == {"now": 1_000_000}
    return lines


def empty_world(**fields: object) -> Lines:
    """A session with a world that has no topics."""
    lines = Lines()
    config = {"group.initial.rebalance.delay.ms": "0"}
    assert lines.answer({"op": "init", "config": config, **fields}) == {"now": 1_000_000}
    return lines


def join(**fields: object) -> Json:
    """A `call` of JoinGroup version 3."""
    data = {
        "groupId": "g",
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
        **fields,
    }
    return {"op": "call", "id": "j", "api": "JoinGroup", "v": 3, "data": data}


def commit(offset: int, **fields: object) -> Json:
    """A `call` of OffsetCommit version 2 by nobody in particular."""
    entry = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
    data = {
        "groupId": "g",
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "retentionTimeMs": -1,
        "topics": [{"name": "t", "partitions": [entry]}],
    }
    return {"op": "call", "api": "OffsetCommit", "v": 2, "data": data, **fields}


def error_of(answer: Json) -> int:
    """The error code of a commit's only partition."""
    code: int = answer["replies"][0]["data"]["topics"][0]["partitions"][0]["errorCode"]
    return code


def test_a_command_without_a_world_is_an_error() -> None:
    """Before `init` every other command is an error, without a time."""
    assert Lines().answer({"op": "advance", "ms": 1, "id": 7}) == {
        "id": 7,
        "error": "no world yet: begin with the op init",
    }


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({}, "unknown op None"),
        ({"op": "jump"}, "unknown op 'jump': use one of init"),
        ({"op": "advance"}, "ms: is missing"),
        ({"op": "advance", "ms": "5"}, "ms: must be a whole number, not '5'"),
        ({"op": "advance", "ms": True}, "ms: must be a whole number, not True"),
        ({"op": "advance", "ms": -1}, "ms: must not be negative"),
        ({"op": "call", "api": "Produce"}, "unknown API 'Produce': use one of OffsetCommit"),
        ({"op": "call", "api": "Heartbeat", "data": []}, "data: must be an object, not []"),
        ({"op": "elect", "partition": 50}, "partition 50: must be from 0 to 49"),
        ({"op": "fail", "append": "OOPS"}, "'OOPS' is no error of Kafka's protocol"),
        ({"op": "hold", "hw": 1}, "hw: must be true or false, not 1"),
        ({"op": "uuids", "next": ["x"]}, "next: 'x' is no UUID"),
        ({"op": "uuids", "next": "x"}, "next: must be a list, not 'x'"),
        ({"op": "topics", "set": ["t"]}, "set: holds objects, not 't'"),
        ({"op": "topics", "set": [{"name": "t", "id": "?"}]}, "id: '?' is no topic id"),
        ({"op": "init", "config": {"group.max.size": "x"}}, "must be a whole number"),
        ({"op": "init", "profile": "5.0"}, "unknown profile '5.0'"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(command: Json, words: str) -> None:
    """The answer names the field, and time stands where it stood."""
    answer = empty_world().answer(command)
    assert words in answer["error"]
    assert answer["now"] == 1_000_000


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b'"op"'])
def test_a_line_that_is_no_object_is_an_error(line: bytes) -> None:
    """The session goes on after it."""
    lines = world()
    assert "error" in msgspec.json.decode(lines.answer_line(line))
    assert lines.answer_line(b'{"op":"advance","ms":2}') == b'{"now":1000002}'


def test_replies_repeat_the_commands_id_and_records_follow() -> None:
    """A JoinGroup into an empty group is answered at once when there is no initial delay."""
    answer = world(seed=2).answer(join())
    assert [answer["id"], answer["now"]] == ["j", 1_000_000]
    (reply,) = answer["replies"]
    assert {name: reply[name] for name in ("id", "at", "api", "v")} == {
        "id": "j",
        "at": 1_000_000,
        "api": "JoinGroup",
        "v": 3,
    }
    assert reply["data"]["memberId"] == "client-40bdc511-e517-4dfc-ba76-82815f611519"
    assert [record["key"]["type"] for record in answer["records"]] == [2]


def test_a_reply_comes_with_the_command_that_caused_it() -> None:
    """What waited for the high watermark is answered by `commit`, with the id of its own line."""
    lines = world()
    lines.answer({"op": "hold", "hw": True})
    assert "replies" not in lines.answer(commit(1, id=1))
    lines.answer({"op": "advance", "ms": 5})
    answer = lines.answer({"op": "commit", "group": "g", "id": 2})
    assert [answer["id"], answer["replies"][0]["id"], answer["replies"][0]["at"]] == [
        2,
        1,
        1_000_005,
    ]


def test_a_refused_append_is_answered_with_its_error() -> None:
    """`fail` holds for the given number of appends."""
    lines = world()
    lines.answer({"op": "fail", "append": "NOT_LEADER_OR_FOLLOWER"})
    assert [error_of(lines.answer(commit(1))) for _ in range(2)] == [16, 0]


def test_topics_only_grow_and_keep_their_ids() -> None:
    """A topic set again gets more partitions, never fewer, and goes on under its id."""
    lines = empty_world()
    lines.answer({"op": "topics", "set": [{"name": "t", "id": "AAAAVE9QSUMAAAAAAAAAdQ"}]})
    lines.answer({"op": "topics", "set": [{"name": "t", "partitions": 3}]})
    lines.answer({"op": "topics", "set": [{"name": "t", "partitions": 2, "id": "x"}]})
    answer = lines.answer(commit(4))
    assert answer["records"][0]["value"]["data"]["topicId"] == "AAAAVE9QSUMAAAAAAAAAdQ"


def test_a_world_without_topics_refuses_every_commit() -> None:
    """What is not set does not exist."""
    assert error_of(empty_world().answer(commit(1))) == 3


def test_resigned_partitions_answer_not_coordinator_until_elected() -> None:
    """Leadership is the caller's."""
    lines = world()
    lines.answer({"op": "resign", "group": "g"})
    assert error_of(lines.answer(commit(1))) == 16
    lines.answer({"op": "elect", "group": "g", "epoch": 2})
    assert error_of(lines.answer(commit(1))) == 0


def test_profiles_are_the_callers() -> None:
    """`init` chooses another Kafka: 3.9 stores nothing for a group that is only being joined."""
    assert "records" in world().answer({**join(), "v": 5})
    assert "records" not in world(profile="3.9").answer({**join(), "v": 5})


def test_records_can_be_told_as_bytes_and_put_back() -> None:
    """`bytes` adds what `append` takes: another leader's log, loaded by the next `elect`."""
    lines = world(bytes=True)
    (record,) = lines.answer(commit(7))["records"]
    lines.answer({"op": "resign", "group": "g"})
    other = {"key": record["keyBytes"], "value": record["valueBytes"]}
    appended = lines.answer({"op": "append", "group": "g", "records": [other], "timestamp": 5})
    assert appended["records"] == [{**record, "offset": 1, "ts": 5}]
    gone = {"key": {"type": 1, "data": {"group": "g", "topic": "t", "partition": 0}}}
    (tombstone,) = lines.answer({"op": "append", "group": "g", "records": [gone]})["records"]
    assert [tombstone["value"], tombstone["valueBytes"]] == [None, None]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"records": []}, "name a partition or a group"),
        ({"group": "g", "records": [{}]}, "a record needs a key with type and data"),
        ({"group": "g", "records": [{"key": "?"}]}, "base64"),
    ],
)
def test_records_that_are_none_are_refused(fields: Json, words: str) -> None:
    """`append` says which part of a record it cannot read."""
    assert words in world().answer({"op": "append", **fields})["error"]


def test_given_uuids_make_the_member_ids() -> None:
    """`uuids` copies the ids of another broker."""
    lines = world()
    wanted = "00000000-0000-4000-8000-000000000001"
    lines.answer({"op": "uuids", "next": [wanted]})
    assert lines.answer(join())["replies"][0]["data"]["memberId"] == f"client-{wanted}"


def test_a_world_says_how_many_timers_it_has_and_where_groups_live() -> None:
    """`partitionFor` and `stats` look without touching."""
    lines = world()
    assert lines.answer({"op": "partitionFor", "group": "g"})["partition"] == 3
    before = lines.answer({"op": "stats"})["timers"]
    lines.answer(join())
    assert lines.answer({"op": "stats"})["timers"] == before + 2


def test_a_frame_is_answered_by_a_frame() -> None:
    """`wire` takes what a client's socket would send, and `decode` reads the answer."""
    lines = world()
    data = {"groupId": "g", "generationId": 1, "memberId": "m"}
    command = {"op": "encode", "api": "Heartbeat", "v": 4, "data": data, "correlation": 7}
    frame = lines.answer(command)["frame"]
    assert frame == "AAwABAAAAAcABmNsaWVudAACZwAAAAECbQAA"
    [reply] = lines.answer({"op": "wire", "id": "w", "frame": frame})["replies"]
    assert (reply["id"], reply["api"], reply["v"]) == ("w", "Heartbeat", 4)
    answer = {"op": "decode", "api": "Heartbeat", "v": 4, "frame": reply["frame"], "correlation": 7}
    assert lines.answer(answer)["data"] == {"throttleTimeMs": 0, "errorCode": 25}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"op": "wire", "frame": "?"}, "frame: is not base64"),
        ({"op": "wire", "frame": "AAw="}, "needs 8 bytes, 2 are left"),
        ({"op": "wire", "frame": "AAoAAAAAAAf//wABZw=="}, "not asked of a group coordinator"),
        ({"op": "encode", "api": "Produce"}, "unknown API 'Produce'"),
        ({"op": "encode", "api": "Heartbeat", "v": 5}, "Heartbeat has no version 5"),
        ({"op": "encode", "api": "Heartbeat", "data": {"groupId": 1}}, "1 is not a string"),
        ({"op": "decode", "api": "Heartbeat", "frame": "AAAA"}, "correlation id"),
    ],
)
def test_frames_that_cannot_be_read_are_errors(command: Json, words: str) -> None:
    """Frames that cannot be read change nothing, and the next command is answered."""
    assert words in world().answer(command)["error"]


@pytest.mark.parametrize(("profile", "version"), [("0.10.2", 0), ("2.8", 4), ("4.4", 4)])
def test_a_call_without_a_version_takes_the_newest_of_the_profile(
    profile: str, version: int
) -> None:
    """The reference takes the newest of its release, too."""
    data = {"groupId": "g", "generationId": 1, "memberId": "m"}
    command = {"op": "call", "api": "Heartbeat", "data": data}
    assert world(profile=profile).answer(command)["replies"][0]["v"] == version


def test_switches_make_a_kafka_that_has_no_profile() -> None:
    """A switch set by hand counts for this world alone; one that no profile has is an error."""
    lines = Lines()
    lines.answer({"op": "init", "profile": "2.8", "switches": {"member_id_required": False}})
    assert not lines.harness.profile.member_id_required

    lines.answer({"op": "init", "profile": "2.8"})
    assert lines.harness.profile.member_id_required

    answer = lines.answer({"op": "init", "switches": {"member_id_required": "no"}})
    assert answer["error"] == "switches: no profile has member_id_required='no'"
