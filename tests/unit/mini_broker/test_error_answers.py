"""Answers that say nothing but an error."""

import pytest

from coordinator_sim.mini_broker.error_answers import error_answer, with_error
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.frames import response_frame
from coordinator_sim.wire.schema import Data
from coordinator_sim.wire.schemas import SCHEMAS

ERROR = ErrorCode.NOT_COORDINATOR


def test_error_stands_at_the_top_where_there_is_a_place() -> None:
    """A JoinGroup is refused as a whole, and told who it was."""
    answer = error_answer(ApiKey.JOIN_GROUP, 5, {"groupId": "g", "memberId": "m"}, ERROR)
    assert answer == {"memberId": "m", "generationId": -1, "errorCode": 16}


def test_commit_is_refused_partition_by_partition() -> None:
    """An answer without an error of its own repeats it for everything asked about."""
    request = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 3}]}]}
    answer = error_answer(ApiKey.OFFSET_COMMIT, 8, request, ERROR)
    partitions = [{"partitionIndex": 3, "errorCode": 16}]
    assert answer == {"topics": [{"name": "t", "partitions": partitions}]}


def test_offset_fetch_is_refused_where_its_version_wants_it() -> None:
    """By partition at first, at the top since version 2, by group since 8."""
    topics = [{"name": "t", "partitionIndexes": [0, 2]}]
    oldest = error_answer(ApiKey.OFFSET_FETCH, 1, {"groupId": "g", "topics": topics}, ERROR)
    assert [p["partitionIndex"] for p in oldest["topics"][0]["partitions"]] == [0, 2]
    assert {p["errorCode"] for p in oldest["topics"][0]["partitions"]} == {16}
    middle = error_answer(ApiKey.OFFSET_FETCH, 5, {"groupId": "g", "topics": topics}, ERROR)
    assert middle == {"errorCode": 16}
    newest = error_answer(ApiKey.OFFSET_FETCH, 9, {"groups": [{"groupId": "g"}]}, ERROR)
    assert newest == {"groups": [{"groupId": "g", "errorCode": 16}]}


def test_names_alone_are_answered_too() -> None:
    """Lists of strings become structs that have the string in them."""
    answer = error_answer(ApiKey.DELETE_GROUPS, 2, {"groupsNames": ["a", "b"]}, ERROR)
    assert answer == {
        "results": [{"groupId": "a", "errorCode": 16}, {"groupId": "b", "errorCode": 16}]
    }


def test_finished_answer_keeps_all_but_its_errors() -> None:
    """What was done is still said, with an error at every place for one."""
    answer: Data = {"throttleTimeMs": 0, "topics": [{"name": "t", "ids": [1]}], "errorCode": 0}
    answer["topics"][0]["partitions"] = [{"partitionIndex": 1, "errorCode": 0}]
    assert with_error(answer, ERROR) == {
        "throttleTimeMs": 0,
        "topics": [
            {"name": "t", "ids": [1], "partitions": [{"partitionIndex": 1, "errorCode": 16}]}
        ],
        "errorCode": 16,
    }


@pytest.mark.parametrize("api", SCHEMAS)
def test_refusal_can_be_written_in_every_version(api: ApiKey) -> None:
    """Whatever the API, an empty request has an answer that fits its version's layout."""
    for version in range(SCHEMAS[api].newest + 1):
        answer = error_answer(api, version, {}, ERROR)
        assert response_frame(api, version, 1, answer)
