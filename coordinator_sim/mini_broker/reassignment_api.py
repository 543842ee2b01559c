"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments.

Replicas are labels, so a reassignment is over as soon as it is asked for, and none is ever under
way.

Source: kafka trunk, ControllerApis (rights); ReplicationControlManager.electLeaders, electLeader,
alterPartitionReassignments; PartitionChangeBuilder.electLeader.
"""

from typing import Final

from coordinator_sim.broker.authorizer import Operation
from coordinator_sim.mini_broker.administration import (
    NO_ERROR,
    Administration,
    ApiError,
    told,
)
from coordinator_sim.mini_broker.changes import ReplicasAssigned
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.image import NO_LEADER, PartitionState
from coordinator_sim.mini_broker.placement import assignment_error
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data

_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_REFUSED: Final = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class ReassignmentApi:
    """Moves leaders and replicas.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin",)

    def __init__(self, admin: Administration) -> None:
        self._admin = admin

    def handlers(self) -> Handlers:
        """Of the three APIs."""
        return {
            ApiKey.ELECT_LEADERS: self._elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._alter,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list,
        }

    # -- ElectLeaders ----------------------------------------------------------------------

    def _elect_leaders(self, call: Call) -> Data:
        kind = call.request.get("electionType", _PREFERRED)
        asked: list[Data] | None = call.request["topicPartitions"]
        error: ApiError | None = None
        if not self._admin.allows_cluster(call, Operation.ALTER):
            error = _REFUSED
        elif kind not in {_PREFERRED, _UNCLEAN}:
            error = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        if error is not None:
            return self._elections_refused(asked or [], error)
        every = asked is None
        named = [
            {"topic": state.name, "partitions": list(range(len(state.partitions)))}
            for state in self._admin.image.topics.values()
        ]
        results = [self._elected(call, topic, every=every) for topic in named if every]
        results += [self._elected(call, topic, every=every) for topic in asked or []]
        return {"errorCode": 0, "replicaElectionResults": results}

    def _elected(self, call: Call, topic: Data, *, every: bool) -> Data:
        """Results of a topic; when all are asked for, those alone that changed or could not."""
        results: list[Data] = []
        for partition in topic["partitions"]:
            error = self._elect(call, topic["topic"], partition)
            if not every or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append({"partitionId": partition, **error.fields()})
        return {"topic": topic["topic"], "partitionResult": results}

    def _elections_refused(self, asked: list[Data], error: ApiError) -> Data:
        results = [
            {
                "topic": topic["topic"],
                "partitionResult": [
                    {"partitionId": each, **error.fields()} for each in topic["partitions"]
                ],
            }
            for topic in asked
        ]
        return {"errorCode": int(error.code), "replicaElectionResults": results}

    def _elect(self, call: Call, topic: str, partition: int) -> ApiError:
        if topic not in self._admin.image.topics:
            return _unknown(f"No such topic as {topic}")
        state = self._admin.image.partition(topic, partition)
        if state is None:
            return _unknown(f"No such partition as {topic}-{partition}")
        if call.request.get("electionType", _PREFERRED) == _PREFERRED:
            return self._elect_preferred(call, topic, partition, state)
        if state.leader_id != NO_LEADER:
            return told(ErrorCode.ELECTION_NOT_NEEDED)
        living = [each for each in state.replicas if self._admin.is_alive(each)]
        if not living:
            return told(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        self._admin.leadership.elect(topic, partition, living[0], call.now)
        return NO_ERROR

    def _elect_preferred(
        self, call: Call, topic: str, partition: int, state: PartitionState
    ) -> ApiError:
        preferred = state.replicas[0]
        if state.leader_id == preferred:
            return told(ErrorCode.ELECTION_NOT_NEEDED)
        if not self._admin.is_alive(preferred):
            return told(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        self._admin.leadership.elect(topic, partition, preferred, call.now)
        return NO_ERROR

    # -- reassignments ---------------------------------------------------------------------

    def _alter(self, call: Call) -> Data:
        allowed = self._admin.allows_cluster(call, Operation.ALTER)
        overall = NO_ERROR if allowed else _REFUSED
        responses = [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partitionIndex": each["partitionIndex"],
                        **(self._move(call, topic["name"], each) if allowed else _REFUSED).fields(),
                    }
                    for each in topic["partitions"]
                ],
            }
            for topic in call.request["topics"]
        ]
        changes_factor = call.request.get("allowReplicationFactorChange", True)
        return {
            **overall.fields(),
            "allowReplicationFactorChange": changes_factor,
            "responses": responses,
        }

    def _move(self, call: Call, topic: str, asked: Data) -> ApiError:
        index, replicas = asked["partitionIndex"], asked["replicas"]
        if topic not in self._admin.image.topics:
            return _unknown(f"Unable to find a topic named {topic}.")
        state = self._admin.image.partition(topic, index)
        if state is None:
            return _unknown(f"Unable to find partition {topic}:{index}.")
        if replicas is None:
            return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        error = assignment_error(replicas, self._admin.settings.broker_ids, None)
        if error is not None:
            return error
        if not call.request.get("allowReplicationFactorChange", True) and len(replicas) != len(
            state.replicas
        ):
            return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
        self._assign(call, topic, index, tuple(replicas))
        return NO_ERROR

    def _assign(self, call: Call, topic: str, index: int, replicas: tuple[int, ...]) -> None:
        """Replicas are where they should be at once; a leader that is none of them goes."""
        self._admin.change(ReplicasAssigned(topic, index, replicas))
        state = self._admin.image.topics[topic].partitions[index]
        if state.leader_id not in replicas:
            living = [each for each in replicas if self._admin.is_alive(each)]
            leader_id = living[0] if living else NO_LEADER
            self._admin.leadership.elect(topic, index, leader_id, call.now)

    def _list(self, call: Call) -> Data:
        if self._admin.allows_cluster(call, Operation.DESCRIBE):
            return {**NO_ERROR.fields(), "topics": []}
        topics = [
            {
                "name": topic["name"],
                "partitions": [{"partitionIndex": each} for each in topic["partitionIndexes"]],
            }
            for topic in call.request["topics"] or []
        ]
        return {**_REFUSED.fields(), "topics": topics}


def _unknown(text: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
