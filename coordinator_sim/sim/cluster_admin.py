"""What an operator does: requests about topics, configs and ACLs, by the cluster's own APIs.

Also ports Strimzi's KafkaRoller: a rolling restart of all brokers.

DEVIATION: a broker that is not Ready in its last attempt is given up, and not restarted by force:
here it is down for as long as the scenario says. A roll that failed is not begun again.
"""

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Any, Final

from simpy import Resource
from simpy.events import Event

from coordinator_sim.broker.apis.config_changes import AlterOperation
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from coordinator_sim.broker.security.access import BROKER_PRINCIPAL
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, WILDCARD, Operation
from coordinator_sim.broker.security.image_authorizer import ALLOW, DENY, LITERAL, RESOURCE_TYPES
from coordinator_sim.clock import Action
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.create_acls import AclCreation, CreateAclsRequest
from coordinator_sim.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from coordinator_sim.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from coordinator_sim.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from coordinator_sim.sim.brokers import CONTROLLED_SHUTDOWN_US, ClusterDriver
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.scenario.happenings import ChangeConfig, DenyAccess, RollBrokers

AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""`authorizer.class.name` of a cluster in which access is denied."""
_EVERYBODY: Final = "User:*"
_CLUSTER: Final = "CLUSTER"
_NUMBERS: Final = {kind.name: number for number, kind in RESOURCE_TYPES.items()}
_OPERATOR: Final = RequestContext(token=0, api_version=0, principal=BROKER_PRINCIPAL)

_POLL_US: Final = 1_000_000
_POLLS: Final = 300
"""`STRIMZI_OPERATION_TIMEOUT_MS`, five minutes."""
_FIRST_DELAY_US: Final = 250_000
_ATTEMPTS: Final = 10

Refused = Callable[[ErrorCode, str], None]
"""Takes the error of a request that the cluster refuses, and its message."""


class ClusterAdmin:
    """Sends an operator's requests to a cluster, at its newest instant.

    Args:
        cluster: The cluster.
        refused: Told each refusal.
    """

    def __init__(self, cluster: Cluster, refused: Refused) -> None:
        self._cluster = cluster
        self._refused = refused

    def allow_all(self) -> None:
        """Allow everybody everything, by rules that a DENY outweighs."""
        names = {**dict.fromkeys(("TOPIC", "GROUP", "TRANSACTIONAL_ID"), WILDCARD)}
        for kind, name in {**names, _CLUSTER: CLUSTER_NAME}.items():
            acl = AclCreation(
                _NUMBERS[kind], name, LITERAL, _EVERYBODY, WILDCARD, Operation.ALL, ALLOW
            )
            self._send(CreateAclsRequest((acl,)), lambda answer: answer.results)

    def delete_topic(self, name: str, deleted: Action) -> None:
        """Delete a topic; `deleted` is called once it is. Source: ControllerApis.deleteTopics."""
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name),))
        self._send(request, lambda answer: answer.responses, done=deleted)

    def change_config(self, change: ChangeConfig) -> None:
        """Set or delete configs. Source: kafka 4.4, ControllerApis.handleIncrementalAlterConfigs.

        A broker takes requests about itself alone.
        """
        kind, name = (TOPIC_RESOURCE, change.topic)
        if change.group_id is not None:
            kind, name = (GROUP_RESOURCE, change.group_id)
        elif change.broker is not None:
            kind, name = (BROKER_RESOURCE, change.broker)
        configs = tuple(
            AlterableConfig(
                config, AlterOperation.DELETE if value is None else AlterOperation.SET, value
            )
            for config, value in change.configs.items()
        )
        resource = AlterConfigsResource(kind, name or "", configs)
        request = IncrementalAlterConfigsRequest((resource,))
        to = int(change.broker) if change.broker else None
        self._send(request, lambda answer: answer.responses, to)

    def deny(self, rule: DenyAccess, host: str) -> None:
        """Add a DENY rule. Source: kafka 4.4, AclApis.handleCreateAcls."""
        kind, name = _resource(rule)
        operation = Operation[rule.operation.upper()]
        acl = AclCreation(kind, name, LITERAL, _EVERYBODY, host, operation, DENY)
        self._send(CreateAclsRequest((acl,)), lambda answer: answer.results)

    def allow_again(self, rule: DenyAccess, host: str) -> None:
        """Delete a rule of `deny`. Source: kafka 4.4, AclApis.handleDeleteAcls."""
        kind, name = _resource(rule)
        operation = Operation[rule.operation.upper()]
        wanted = DeleteAclsFilter(kind, name, LITERAL, _EVERYBODY, host, operation, DENY)
        self._send(DeleteAclsRequest((wanted,)), lambda answer: answer.filter_results)

    def _send(
        self,
        request: Any,  # noqa: ANN401 - any request of an operator
        results: Callable[[Any], Any],
        to: int | None = None,
        done: Action | None = None,
    ) -> None:
        def answered(answer: Any) -> None:  # noqa: ANN401 - its response
            refused = [each for each in results(answer) if each.error_code is not ErrorCode.NONE]
            for each in refused:
                self._refused(each.error_code, each.error_message or "")
            if not refused and done is not None:
                done()

        living = sorted(self._cluster.groups.living)
        if not living:
            self._refused(ErrorCode.BROKER_NOT_AVAILABLE, "no broker lives")
            return
        self._cluster.send(living[0] if to is None else to, request, _OPERATOR, answered)


def _resource(rule: DenyAccess) -> tuple[int, str]:
    if rule.topic is not None:
        return _NUMBERS["TOPIC"], rule.topic
    return _NUMBERS["GROUP"], rule.group_id or ""


def roll_brokers(
    environment: Environment, brokers: ClusterDriver, roll: RollBrokers, lock: Resource
) -> Generator[Event, None, None]:
    """Restart each broker, unready ones first; end early if one does not become Ready again.

    Put off are the active controller while others are left, and a broker without which a partition
    would lack replicas in sync. The roll begins when it has the cluster's lock.

    Source: strimzi main of 2026, KafkaRoller.rollingRestart, schedule, restartIfNecessary; BackOff;
    KafkaReconciler.maybeRollKafka; AbstractOperator.withLock.
    """
    turn = lock.request()
    yield turn
    cluster, readiness_ms = brokers.cluster, roll.readiness_ms
    order: list[int] = []
    for broker_id in cluster.settings.broker_ids:
        order.insert(len(order) if brokers.is_ready(broker_id, readiness_ms) else 0, broker_id)
    attempts = dict.fromkeys(order, 0)
    queue = [(environment.now_us, number, each) for number, each in enumerate(order)]
    while queue:
        due_us, number, broker_id = heappop(queue)
        yield environment.timeout(max(due_us - environment.now_us, 0))
        attempts[broker_id] += 1
        attempt, reason = attempts[broker_id], ""
        if not (yield from _becomes_ready(environment, brokers, broker_id, readiness_ms)):
            reason = "NotReady"
        elif broker_id == roll.controller and len(attempts) > 1 and attempt < _ATTEMPTS:
            reason = "ActiveController"
        elif not _may_restart(cluster, broker_id):
            reason = "MinIsr"
        if reason and attempt < _ATTEMPTS:
            brokers.record("RollDeferred", broker_id, {"reason": reason})
            due_us = environment.now_us + (_FIRST_DELAY_US << attempt - 1)
            heappush(queue, (due_us, number + len(order), broker_id))
            continue
        del attempts[broker_id]
        if not reason:
            brokers.shut_down(broker_id, roll.down_ms)
            yield environment.timeout(CONTROLLED_SHUTDOWN_US + _POLL_US)
            if (yield from _becomes_ready(environment, brokers, broker_id, readiness_ms)):
                continue
            queue.clear()
        brokers.record("RollFailed", broker_id, {"reason": reason or "NotReady"})
    lock.release(turn)


def _becomes_ready(
    environment: Environment, brokers: ClusterDriver, broker_id: int, readiness_ms: int
) -> Generator[Event, None, bool]:
    """Wait up to five minutes until a broker is Ready; return whether it is."""
    for _ in range(_POLLS):
        if brokers.is_ready(broker_id, readiness_ms):
            return True
        yield environment.timeout(_POLL_US)
    return False


def _may_restart(cluster: Cluster, broker_id: int) -> bool:
    """Return whether no partition falls below min.insync.replicas if this broker stops.

    Source: KafkaAvailability.wouldAffectAvailability.
    """
    for topic in cluster.image.topics.values():
        min_isr = int(str(cluster.configs.topic_value(topic.name, "min.insync.replicas")))
        for state in topic.partitions:
            missed = state.replicas if len(state.isr) < min_isr else state.isr
            if len(state.isr) <= min_isr < len(state.replicas) and broker_id in missed:
                return False
    return True
