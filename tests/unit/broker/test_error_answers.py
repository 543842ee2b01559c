"""Answers that say nothing but an error."""

import pytest

from coordinator_sim.broker.error_answers import error_answer, with_error
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.catalogue import API_NAMES, layout_of, newest_version, oldest_version
from coordinator_sim.messages.codec.compiler import response_writer
from coordinator_sim_conformance.field_frames import Fields, fields_of, message_from

ERROR = ErrorCode.NOT_COORDINATOR


def refused(api: ApiKey, version: int, request: Fields) -> Fields:
    """The answer to a request, field by field."""
    answer = error_answer(api, version, message_from(api, version, request, response=False), ERROR)
    return fields_of(layout_of(api, version, response=True), answer)


def whole(api: ApiKey, version: int, answer: Fields) -> Fields:
    """An answer with all its fields; those not named are at their defaults."""
    message = message_from(api, version, answer, response=True)
    return fields_of(layout_of(api, version, response=True), message)


def test_error_stands_at_the_top_where_there_is_a_place() -> None:
    """A JoinGroup is refused as a whole, and told who it was."""
    answer = refused(ApiKey.JOIN_GROUP, 5, {"groupId": "g", "memberId": "m"})
    expected = {"memberId": "m", "generationId": -1, "errorCode": 16}
    assert answer == whole(ApiKey.JOIN_GROUP, 5, expected)


def test_commit_is_refused_partition_by_partition() -> None:
    """An answer without an error of its own repeats it for everything asked about."""
    request = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 3}]}]}
    answer = refused(ApiKey.OFFSET_COMMIT, 8, request)
    partitions = [{"partitionIndex": 3, "errorCode": 16}]
    expected = {"topics": [{"name": "t", "partitions": partitions}]}
    assert answer == whole(ApiKey.OFFSET_COMMIT, 8, expected)


def test_offset_fetch_is_refused_where_its_version_wants_it() -> None:
    """By partition at first, at the top since version 2, by group since 8."""
    topics = [{"name": "t", "partitionIndexes": [0, 2]}]
    oldest = refused(ApiKey.OFFSET_FETCH, 1, {"groupId": "g", "topics": topics})
    assert [p["partitionIndex"] for p in oldest["topics"][0]["partitions"]] == [0, 2]
    assert {p["errorCode"] for p in oldest["topics"][0]["partitions"]} == {16}
    middle = refused(ApiKey.OFFSET_FETCH, 5, {"groupId": "g", "topics": topics})
    assert middle == whole(ApiKey.OFFSET_FETCH, 5, {"errorCode": 16})
    newest = refused(ApiKey.OFFSET_FETCH, 9, {"groups": [{"groupId": "g"}]})
    expected = {"groups": [{"groupId": "g", "errorCode": 16}]}
    assert newest == whole(ApiKey.OFFSET_FETCH, 9, expected)


def test_names_alone_are_answered_too() -> None:
    """Lists of strings become structs that have the string in them."""
    answer = refused(ApiKey.DELETE_GROUPS, 2, {"groupsNames": ["a", "b"]})
    expected = {"results": [{"groupId": "a", "errorCode": 16}, {"groupId": "b", "errorCode": 16}]}
    assert answer == whole(ApiKey.DELETE_GROUPS, 2, expected)


def test_finished_answer_keeps_all_but_its_errors() -> None:
    """What was done is still said, with an error at every place for one."""
    api, version = ApiKey.METADATA, 13
    partition = {"partitionIndex": 1, "replicaNodes": [1], "errorCode": 0}
    topic = {"name": "t", "errorCode": 0, "partitions": [partition]}
    answer: Fields = {"throttleTimeMs": 0, "topics": [topic], "errorCode": 0}
    finished = message_from(api, version, answer, response=True)
    tainted = with_error(api, version, finished, ERROR)
    expected = {
        "throttleTimeMs": 0,
        "topics": [
            {
                "name": "t",
                "errorCode": 16,
                "partitions": [{"partitionIndex": 1, "replicaNodes": [1], "errorCode": 16}],
            }
        ],
        "errorCode": 16,
    }
    assert tainted == message_from(api, version, expected, response=True)


@pytest.mark.parametrize("api", [ApiKey.OFFSET_FETCH, ApiKey.ELECT_LEADERS, ApiKey.FETCH])
def test_errors_stand_only_where_a_version_has_them(api: ApiKey) -> None:
    """An old version without an error at the top can still be written."""
    for version in range(oldest_version(api), newest_version(api) + 1):
        answer = message_from(api, version, {}, response=True)
        assert response_writer(api, version)(1, with_error(api, version, answer, ERROR))


@pytest.mark.parametrize("api", API_NAMES)
def test_refusal_can_be_written_in_every_version(api: ApiKey) -> None:
    """Whatever the API, an empty request has an answer that fits its version's layout."""
    for version in range(oldest_version(api), newest_version(api) + 1):
        request = message_from(api, version, {}, response=False)
        assert response_writer(api, version)(1, error_answer(api, version, request, ERROR))


def test_share_coordinators_explain_some_refusals() -> None:
    """A read has the error's words, a deletion has none; what is not known is at its default."""
    topics = [{"topicId": bytes(15) + b"1", "partitions": [{"partition": 2}]}]
    summary = refused(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, {"groupId": "g", "topics": topics})
    told = {"partition": 2, "errorCode": 16, "errorMessage": error_message(ERROR)}
    results = [{"topicId": bytes(15) + b"1", "partitions": [told]}]
    api = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    assert summary == whole(api, 1, {"results": results})
    deleted = refused(ApiKey.DELETE_SHARE_GROUP_STATE, 0, {"groupId": "g", "topics": topics})
    assert deleted["results"][0]["partitions"][0]["errorMessage"] is None
