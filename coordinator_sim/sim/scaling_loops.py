"""Autoscalers in virtual time: they look at a workload at their intervals, and set its replicas.

KEDA's operator polls every `pollingInterval` for 0 and 1; the HorizontalPodAutoscaler that it makes
asks KEDA for the lag every 15 s, at its own pace. What they decide is in `autoscaling`.

DEVIATION: what they ask brokers and pods for takes no time.
"""

from typing import Final

from msgspec import structs
from simpy.events import ProcessGenerator

from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from coordinator_sim.sim.autoscaling.hpa import HorizontalPodAutoscaler, tolerances_of
from coordinator_sim.sim.autoscaling.keda import (
    KafkaScaler,
    Observation,
    Poll,
    ScaledObject,
    ScalerError,
    request_scale,
)
from coordinator_sim.sim.autoscaling.replica_calculator import (
    MetricUnavailable,
    PodSample,
    highest_proposal,
    replicas_by_average_value,
    replicas_by_utilization,
    replicas_by_value,
)
from coordinator_sim.sim.kubernetes import Workload
from coordinator_sim.sim.scenario.kubernetes import CpuTarget
from coordinator_sim.sim.world import US_PER_MS, World

_SYNC_US: Final = 15_000_000
"""`--horizontal-pod-autoscaler-sync-period`, and the resolution of the metrics server."""
_US_PER_S: Final = 1_000_000
_MILLI: Final = 1_000
_KEDA: Final = RequestContext(token=-1, api_version=8, client_id="keda-operator")
"""Context of KEDA's request; no slot waits for its answer."""


class ScalingLoop:
    """An autoscaler of one workload: its decisions, as far as they are worth an event.

    Args:
        world: Shared parts of the run.
        workload: The workload.
    """

    def __init__(self, world: World, workload: Workload) -> None:
        self._world = world
        self._workload = workload
        self._reasons: dict[str, str] = {}

    def _decide(self, by: str, replicas: int, reason: str, **attrs: str) -> None:
        """Set the replicas; record a decision that changes them, or has another reason."""
        before = self._workload.replicas
        if replicas != before or self._reasons.get(by) != reason:
            self._reasons[by] = reason
            self._world.record_fault(
                "ScaleDecision",
                workload=self._workload.spec.name,
                by=by,
                replicas=str(replicas),
                before=str(before),
                reason=reason,
                **attrs,
            )
        if replicas != before:
            self._workload.scale(replicas)


class KedaLoops(ScalingLoop):
    """A ScaledObject: KEDA's operator, and the HorizontalPodAutoscaler that it makes."""

    def __init__(self, world: World, workload: Workload, scaled: ScaledObject) -> None:
        super().__init__(world, workload)
        self._scaled = scaled
        self._scalers = [KafkaScaler(trigger) for trigger in scaled.triggers]
        self._hpa = HorizontalPodAutoscaler(scaled.limits())
        self._last_active_ms: int | None = None
        self._lag = 0

    def start(self) -> None:
        """Begin both loops: KEDA at once, the controller of Kubernetes within its sync period."""
        environment, name = self._world.environment, self._workload.spec.name
        phase_us = self._world.choices.choose("hpa-phase", name, _SYNC_US)
        environment.process(self._operator())
        environment.process(self._autoscaler(phase_us))

    def _operator(self) -> ProcessGenerator:
        """Source: startScaleLoop, checkScalers."""
        environment = self._world.environment
        yield environment.timeout(US_PER_MS)  # the ScaledObject is older than its first check
        while True:
            is_active, is_error = False, False
            for scaler in self._scalers:
                try:
                    lag = scaler.total_lag(observe(self._world, scaler))
                except ScalerError:
                    is_error = True
                else:
                    is_active = is_active or scaler.is_active(lag)
            now_ms = environment.now_us // US_PER_MS
            current = self._workload.replicas
            poll = Poll(current, is_active, is_error, self._last_active_ms, now_ms)
            asked = request_scale(self._scaled, poll)
            self._last_active_ms = asked.last_active_ms
            self._decide(
                "keda", current if asked.replicas is None else asked.replicas, asked.reason
            )
            yield environment.timeout(self._scaled.polling_interval_s * _US_PER_S)

    def _autoscaler(self, phase_us: int) -> ProcessGenerator:
        environment = self._world.environment
        yield environment.timeout(phase_us)
        while True:
            now_ms = environment.now_us // US_PER_MS
            scaled = self._hpa.reconcile(self._workload.replicas, self._proposed, now_ms)
            self._decide("hpa", scaled.replicas, scaled.reason, lag=str(self._lag))
            yield environment.timeout(_SYNC_US)

    def _proposed(self) -> int | None:
        """Return the replicas by the lag that KEDA serves as an external metric."""
        workload, self._lag = self._workload, 0
        tolerances = tolerances_of(self._scaled.limits())
        proposals: list[int | None] = []
        for scaler, trigger in zip(self._scalers, self._scaled.triggers, strict=True):
            target = scaler.metadata.lag_threshold * _MILLI
            try:
                lag = scaler.total_lag(observe(self._world, scaler)).lag
            except ScalerError:
                proposals.append(None)
                continue
            self._lag += lag
            usage = max(lag, 0) * _MILLI
            if trigger.metric_type == "AverageValue":
                pods = len(workload.active)
                proposals.append(replicas_by_average_value(pods, usage, target, tolerances))
            else:
                ready = workload.ready_count
                proposals.append(
                    replicas_by_value(workload.replicas, usage, target, ready, tolerances)
                )
        return highest_proposal(proposals, workload.replicas)


class CpuLoop(ScalingLoop):
    """A HorizontalPodAutoscaler on CPU, with the metrics server that it asks."""

    def __init__(self, world: World, workload: Workload, target: CpuTarget) -> None:
        super().__init__(world, workload)
        self._target = target
        self._hpa = HorizontalPodAutoscaler(target.limits)
        self._busy_us: dict[int, int] = {}
        """Busy time of each pod at the last scrape, by uid."""
        self._samples: list[PodSample] = []

    def start(self) -> None:
        """Begin within one sync period."""
        name = self._workload.spec.name
        phase_us = self._world.choices.choose("hpa-phase", name, _SYNC_US)
        self._world.environment.process(self._autoscaler(phase_us))

    def _autoscaler(self, phase_us: int) -> ProcessGenerator:
        environment = self._world.environment
        yield environment.timeout(phase_us)
        while True:
            self._samples = self._scrape()
            now_ms = environment.now_us // US_PER_MS
            scaled = self._hpa.reconcile(self._workload.replicas, self._proposed, now_ms)
            self._decide("hpa", scaled.replicas, scaled.reason)
            yield environment.timeout(_SYNC_US)

    def _scrape(self) -> list[PodSample]:
        """Return all pods, with their usage since the last scrape where there was one."""
        before, self._busy_us = self._busy_us, {}
        samples: list[PodSample] = []
        for name, pod in self._workload.pods.items():
            busy_us = self._busy_us[pod.uid] = pod.member.busy_us
            usage = None
            if pod.uid in before and pod.started_us is not None:
                since_us = max(busy_us - before[pod.uid], 0)
                usage = since_us * self._target.busy_milli // _SYNC_US
            changed_us = pod.created_us if pod.ready_us is None else pod.ready_us
            sample = PodSample(
                name=name,
                usage=usage,
                request=self._target.request_milli,
                phase="Pending" if pod.started_us is None else "Running",
                is_deleted=pod.is_terminating,
                is_ready=pod.ready_us is not None,
                ready_changed_ms=changed_us // US_PER_MS,
                started_ms=pod.created_us // US_PER_MS,
                usage_at_ms=self._world.environment.now_us // US_PER_MS,
                window_ms=_SYNC_US // US_PER_MS,
            )
            samples.append(sample)
        return samples

    def _proposed(self) -> int | None:
        try:
            return replicas_by_utilization(
                self._workload.replicas,
                self._samples,
                self._target.utilization,
                tolerances_of(self._target.limits),
                now_ms=self._world.environment.now_us // US_PER_MS,
            )
        except MetricUnavailable:
            return None


def start_autoscaler(world: World, workload: Workload) -> None:
    """Begin the loops of a workload's autoscaler, if it has one."""
    scaler = workload.spec.autoscaler
    if isinstance(scaler, ScaledObject):
        KedaLoops(world, workload, scaler).start()
    elif scaler is not None:
        CpuLoop(world, workload, scaler).start()


def observe(world: World, scaler: KafkaScaler) -> Observation:
    """Return what KEDA's client sees of the cluster, and of the scaler's group.

    Raises:
        ScalerError: the coordinator or the leader of a partition does not answer.
    """
    group_id = scaler.metadata.consumer_group
    leader_id = world.leader_of(OFFSETS_TOPIC, world.offsets_partition_of(group_id))
    broker = None if leader_id is None else world.cluster.groups.living.get(leader_id)
    if broker is None or broker.is_frozen:
        raise ScalerError(f"the coordinator of group {group_id} does not answer")
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    result = broker.coordinator.handle(request, _KEDA, world.now.group_ms)
    answers = [reply.response for reply in result.replies]
    found = next((each for each in answers if isinstance(each, OffsetFetchResponse)), None)
    error = ErrorCode.REQUEST_TIMED_OUT if found is None else found.groups[0].error_code
    if found is None or error is not ErrorCode.NONE:
        raise ScalerError(f"error listing consumer group offsets: {error.name}")
    classic = broker.coordinator.group(group_id)
    seen = Observation(
        partitions={
            name: range(len(state.partitions)) for name, state in world.cluster.image.topics.items()
        },
        committed={
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in found.groups[0].topics
            for each in topic.partitions
        },
        end_offsets={},
        member_count=0 if classic is None else len(classic.members),
    )
    active = scaler.active_partitions(seen)
    for each in active:
        if world.leader_of(each.topic, each.partition) is None:
            raise ScalerError(f"{each.topic}-{each.partition} has no leader")
    now_us, end_offset = world.environment.now_us, world.topic_logs.end_offset
    return structs.replace(seen, end_offsets={each: end_offset(each, now_us) for each in active})
