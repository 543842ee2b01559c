"""DeleteTopics, by name or by id.

Source: kafka trunk, ControllerApis.deleteTopics; ReplicationControlManager.findTopicNames,
findTopicIds, deleteTopic.
"""

from typing import Final

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    OVER_QUOTA,
    ApiError,
    duplicates,
    told,
)
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.quotas.client_quotas import ControllerMutationQuota
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest
from coordinator_sim.messages.schema import ZERO_UUID

_NAMED_DISABLED_SINCE: Final = 3
_A_DELETION: Final = 500
"""Cost of deleting a topic: 0.25 ms (measured); see `log.format.steps`."""
_REFUSED: Final = told(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def delete_topics(
    cluster: ClusterParts, call: Call[DeleteTopicsRequest], quota: ControllerMutationQuota
) -> Steps[list[DeletableTopicResult]]:
    """Delete the topics that a request names; return one result for each.

    UNSPECIFIED: Kafka shuffles the results; here refusals come before deletions.
    """
    if not cluster.configs.broker_value("delete.topic.enable"):
        return _all_disabled(call)
    results, names, ids = _asked(call)
    found: dict[bytes, str] = {}
    for topic_id in ids:
        name = cluster.image.topic_names.get(topic_id)
        if name is None:
            results.append(_result(None, topic_id, told(ErrorCode.UNKNOWN_TOPIC_ID)))
        elif not _may(cluster, call, Operation.DELETE, name):
            shown = name if _may(cluster, call, Operation.DESCRIBE, name) else None
            results.append(_result(shown, topic_id, _REFUSED))
        else:
            found[topic_id] = name
    for name in names:
        results += _found_by_name(cluster, call, name, found)
    for topic_id, name in found.items():
        state = cluster.image.topics.get(name)
        if state is not None and state.topic_id == topic_id:
            if not quota.accepts(len(state.partitions), call.now.wall_ms):
                results.append(_result(name, topic_id, OVER_QUOTA))
                continue
            cluster.topics.delete(name, call.now)
            results.append(_result(name, topic_id, NO_ERROR))
        else:
            # Another request has deleted it meanwhile. Only from version 6 may a name be null.
            results.append(_result(name, topic_id, told(ErrorCode.UNKNOWN_TOPIC_ID)))
        yield _A_DELETION
    return results


def _may(
    cluster: ClusterParts, call: Call[DeleteTopicsRequest], operation: Operation, name: str
) -> bool:
    cluster_wide = cluster.allows_cluster(call, Operation.DELETE)
    return cluster_wide or cluster.allows_topic(call, operation, name)


def _result(name: str | None, topic_id: bytes, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )


def _all_disabled(call: Call[DeleteTopicsRequest]) -> list[DeletableTopicResult]:
    """Results without texts, as deletion is off. Source: DeleteTopicsRequest.getErrorResponse."""
    is_named = call.context.api_version >= _NAMED_DISABLED_SINCE
    code = ErrorCode.TOPIC_DELETION_DISABLED if is_named else ErrorCode.INVALID_REQUEST
    request, error = call.request, ApiError(code)
    results = [_result(name, ZERO_UUID, error) for name in request.topic_names]
    results += [_result(topic.name, topic.topic_id, error) for topic in request.topics]
    return results


def _asked(
    call: Call[DeleteTopicsRequest],
) -> tuple[list[DeletableTopicResult], list[str], list[bytes]]:
    """Results of malformed or repeated entries; the names and the ids of the rest."""
    results: list[DeletableTopicResult] = []
    names = list(call.request.topic_names)
    ids: list[bytes] = []
    for topic in call.request.topics:
        name, topic_id = topic.name, topic.topic_id
        if name is None and topic_id == ZERO_UUID:
            results.append(
                _result(None, ZERO_UUID, _wrong("Neither topic name nor id were specified."))
            )
        elif name is None:
            ids.append(topic_id)
        elif topic_id == ZERO_UUID:
            names.append(name)
        else:
            text = "You may not specify both topic name and topic id."
            results.append(_result(name, topic_id, _wrong(text)))
    twice = duplicates(names)
    results += [_result(name, ZERO_UUID, _wrong("Duplicate topic name.")) for name in twice]
    ids_twice = duplicates(ids)
    results += [_result(None, each, _wrong("Duplicate topic id.")) for each in ids_twice]
    return (
        results,
        [name for name in names if name not in twice],
        [each for each in ids if each not in ids_twice],
    )


def _wrong(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _found_by_name(
    cluster: ClusterParts, call: Call[DeleteTopicsRequest], name: str, found: dict[bytes, str]
) -> list[DeletableTopicResult]:
    """Add a topic to those to delete, or return its error."""
    if not _may(cluster, call, Operation.DESCRIBE, name):
        return [_result(name, ZERO_UUID, _REFUSED)]
    state = cluster.image.topics.get(name)
    if state is None:
        return [_result(name, ZERO_UUID, told(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))]
    if not _may(cluster, call, Operation.DELETE, name):
        return [_result(name, ZERO_UUID, _REFUSED)]
    if state.topic_id in found:
        del found[state.topic_id]
        text = "The provided topic name maps to an ID that was already supplied."
        return [_result(name, state.topic_id, _wrong(text))]
    found[state.topic_id] = name
    return []
