"""CreateTopics, DeleteTopics, CreatePartitions.

Source: kafka trunk, ControllerApis.createTopics, deleteTopics, createPartitions (rights and
duplicates); ReplicationControlManager (the rest).
"""

from typing import Final

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    OVER_QUOTA,
    ApiError,
    duplicates,
)
from coordinator_sim.broker.apis.config_entries import creation_entries
from coordinator_sim.broker.apis.placement import Replicas, assignment_error, spread
from coordinator_sim.broker.apis.topic_creation import (
    PlannedTopic,
    brokers_in_order,
    fenced_error,
    plan_topic,
)
from coordinator_sim.broker.apis.topic_deletion import delete_topics
from coordinator_sim.broker.apis.zookeeper_topics import FOUND_TWICE, zookeeper_growth
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import NO_LEADER, topic_id_for
from coordinator_sim.broker.quotas.client_quotas import ControllerMutationQuota
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import CLUSTER_METADATA_TOPIC
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from coordinator_sim.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from coordinator_sim.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_DUPLICATE: Final = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
_MOST_PARTITIONS: Final = 10_000
"""Limit of one request. Source: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH."""
_A_TOPIC: Final = 250
"""Cost of planning or creating a topic: 0.1 ms (measured); see `log.format.steps`."""
_TOO_MANY: Final = ApiError(
    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
)
_TOO_MANY_MORE: Final = ApiError(
    ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request."
)


class TopicsApi:
    """Answers CreateTopics, DeleteTopics and CreatePartitions.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of the three APIs."""
        return {
            ApiKey.CREATE_TOPICS: self._cluster.jobs.handler(self._creations),
            ApiKey.DELETE_TOPICS: self._cluster.jobs.handler(self._deletions),
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
        }

    @property
    def _is_old(self) -> bool:
        return self._cluster.settings.profile.uses_zookeeper

    # -- CreateTopics ----------------------------------------------------------------------

    def _creations(self, call: Call[CreateTopicsRequest]) -> Steps[CreateTopicsResponse | None]:
        asked = call.request.topics
        names = [topic.name for topic in asked]
        twice = duplicates(names)
        refused = {
            name: error
            for name in dict.fromkeys(names)
            if name not in twice and (error := self._creation_refusal(call, name)) is not None
        }
        wanted = [each for each in asked if each.name not in twice and each.name not in refused]
        if self._partition_count(wanted) > _MOST_PARTITIONS:
            return CreateTopicsResponse(topics=tuple(_uncreated(name, _TOO_MANY) for name in names))
        # Plan all topics before creating the first: they are not compared with one another.
        quota = self._cluster.quotas.mutations_of(call)
        planned = []
        for topic in wanted:
            plan = plan_topic(self._cluster, topic)
            if not isinstance(plan, ApiError) and self._is_over(quota, len(plan.replicas), call):
                plan = OVER_QUOTA
            planned.append((topic, plan))
            yield _A_TOPIC
        topics = []
        turn = self._cluster.jobs.turn
        for topic, plan in planned:
            # Another request may have created it meanwhile.
            is_new = turn == self._cluster.jobs.turn or topic.name not in self._cluster.image.topics
            now_planned = plan if is_new or plan is OVER_QUOTA else plan_topic(self._cluster, topic)
            topics.append(self._created(call, topic.name, now_planned))
            yield _A_TOPIC
        twice_error = FOUND_TWICE if self._is_old else _DUPLICATE
        topics += [_uncreated(name, twice_error) for name in twice]
        topics += [_uncreated(name, error) for name, error in refused.items()]
        throttle_time_ms = quota.throttle_time_ms(self._cluster.jobs.now.wall_ms)
        return CreateTopicsResponse(topics=tuple(topics), throttle_time_ms=throttle_time_ms)

    def _is_over(
        self,
        quota: ControllerMutationQuota,
        partition_count: int,
        call: Call[CreateTopicsRequest] | Call[CreatePartitionsRequest],
    ) -> bool:
        """Record partitions to create; whether the client's quota refuses them.

        With ZooKeeper a request that only validates uses nothing.

        Source: ReplicationControlManager.createTopic, createPartitions; ZkAdminManager.
        """
        if self._is_old and call.request.validate_only:
            return False
        return not quota.accepts(partition_count, call.now.wall_ms)

    def _partition_count(self, topics: list[CreatableTopic]) -> int:
        """Number of partitions that a CreateTopics request asks for.

        DEVIATION: a Kafka with ZooKeeper limits the partitions of a request only by its memory;
        here all releases have KRaft's limit.

        Source: kafka 3.9, ReplicationControlManager.validateTotalNumberOfPartitions.
        """
        default = self._cluster.settings.num_partitions
        return sum(
            len(each.assignments)
            or (default if each.num_partitions == -1 else max(each.num_partitions, 0))
            for each in topics
        )

    def _creation_refusal(self, call: Call[CreateTopicsRequest], name: str) -> ApiError | None:
        if name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        create = Operation.CREATE
        if self._cluster.settings.profile.conceals_topics:
            allowed = self._cluster.allows_cluster(call, create)
            return None if allowed else ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if self._cluster.allows_cluster(call, create) or self._cluster.allows_topic(
            call, create, name
        ):
            return None
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")

    def _created(
        self, call: Call[CreateTopicsRequest], name: str, planned: PlannedTopic | ApiError
    ) -> CreatableTopicResult:
        if isinstance(planned, ApiError):
            return _uncreated(name, planned)
        if call.request.validate_only:
            topic_id = topic_id_for(planned.name, self._cluster.image.version)
        else:
            topics = self._cluster.topics
            topic_id = topics.create(planned.name, planned.replicas, call.now, planned.configs)
            self._lead_by_the_living(planned, call)
        return self._described(call, planned, topic_id)

    def _lead_by_the_living(self, planned: PlannedTopic, call: Call[CreateTopicsRequest]) -> None:
        """Elect another leader, or none, where the first replica chosen by the client is not alive.

        With ZooKeeper a client may choose brokers that do not exist.
        """
        for partition, replicas in enumerate(planned.replicas):
            living = (each for each in replicas if self._cluster.leadership.is_living(each))
            leader_id = next(living, NO_LEADER)
            if leader_id != next(iter(replicas), NO_LEADER):
                self._cluster.leadership.elect(planned.name, partition, leader_id, call.now)

    def _described(
        self, call: Call[CreateTopicsRequest], planned: PlannedTopic, topic_id: bytes
    ) -> CreatableTopicResult:
        """The result of a new topic; its configs are shown only with DESCRIBE_CONFIGS."""
        if not self._cluster.allows_topic(call, Operation.DESCRIBE_CONFIGS, planned.name):
            return CreatableTopicResult(
                name=planned.name,
                topic_id=topic_id,
                error_message=None,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
        return CreatableTopicResult(
            name=planned.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(planned.replicas),
            replication_factor=len(planned.replicas[0]),
            configs=creation_entries(self._cluster.configs, planned.configs),
        )

    # -- DeleteTopics ----------------------------------------------------------------------

    def _deletions(self, call: Call[DeleteTopicsRequest]) -> Steps[DeleteTopicsResponse | None]:
        quota = self._cluster.quotas.mutations_of(call)
        results = yield from delete_topics(self._cluster, call, quota)
        throttle_time_ms = quota.throttle_time_ms(self._cluster.jobs.now.wall_ms)
        return DeleteTopicsResponse(responses=tuple(results), throttle_time_ms=throttle_time_ms)

    # -- CreatePartitions ------------------------------------------------------------------

    def _create_partitions(self, call: Call[CreatePartitionsRequest]) -> CreatePartitionsResponse:
        asked = {topic.name: topic for topic in reversed(call.request.topics)}
        names = [topic.name for topic in call.request.topics]
        twice = duplicates(names)
        topics = self._cluster.image.topics
        more = (
            each.count - len(topics[name].partitions)
            for name, each in asked.items()
            if name in topics and name not in twice
        )
        if sum(max(count, 0) for count in more) > _MOST_PARTITIONS:
            return CreatePartitionsResponse(
                results=tuple(_growth_result(name, _TOO_MANY_MORE) for name in names)
            )
        quota = self._cluster.quotas.mutations_of(call)
        results = [_growth_result(name, _DUPLICATE) for name in twice]
        results += [
            _growth_result(name, self._more_partitions(call, asked[name], quota))
            for name in names
            if name not in twice
        ]
        return CreatePartitionsResponse(
            results=tuple(results), throttle_time_ms=quota.throttle_time_ms(call.now.wall_ms)
        )

    def _more_partitions(
        self,
        call: Call[CreatePartitionsRequest],
        asked: CreatePartitionsTopic,
        quota: ControllerMutationQuota,
    ) -> ApiError:
        name = asked.name
        if not self._cluster.allows_topic(call, Operation.ALTER, name):
            return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        state = self._cluster.image.topics.get(name)
        if state is None:
            text = f"The topic '{name}' does not exist." if self._is_old else None
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        present, factor = len(state.partitions), len(state.partitions[0].replicas)
        if self._is_old:
            replicas = zookeeper_growth(self._cluster, asked, present, factor)
        else:
            replicas = _growth_error(asked, present) or ()
        if isinstance(replicas, ApiError):
            return replicas
        if self._is_over(quota, asked.count - present, call):
            return OVER_QUOTA
        if not self._is_old:
            replicas = self._added(asked, present, factor)
            if isinstance(replicas, ApiError):
                return replicas
        if not call.request.validate_only:
            self._cluster.topics.add_partitions(name, replicas, call.now)
        return NO_ERROR

    def _added(
        self, asked: CreatePartitionsTopic, present: int, factor: int
    ) -> tuple[Replicas, ...] | ApiError:
        """The replicas of the partitions to add to the `present` ones, or the error."""
        if asked.assignments is None:
            return spread(brokers_in_order(self._cluster), present, asked.count - present, factor)
        found: list[Replicas] = []
        for index, assignment in enumerate(asked.assignments, present):
            broker_ids = assignment.broker_ids
            error = assignment_error(broker_ids, self._cluster.settings.broker_ids, factor)
            error = error or fenced_error(self._cluster, index, broker_ids)
            if error is not None:
                return error
            found.append(broker_ids)
        return tuple(found)


def _growth_error(asked: CreatePartitionsTopic, present: int) -> ApiError | None:
    """The error of a number of partitions, or of replicas for another number of them."""
    count = asked.count
    if count == present:
        text = f"Topic already has {present} partition(s)."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if count < present:
        text = (
            f"The topic {asked.name} currently has {present} partition(s); {count} would "
            "not be an increase."
        )
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if asked.assignments is not None and len(asked.assignments) != count - present:
        text = (
            f"Attempted to add {count - present} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return None


def _uncreated(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _growth_result(name: str, error: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name, error.code, error.message)
