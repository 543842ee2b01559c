"""Kubernetes in virtual time: workloads whose pods are the members of groups.

Controllers of Deployments, StatefulSets and Strimzi's pod sets, and the kubelet, as far as members
notice: pods start late, get SIGTERM and, after their grace period, SIGKILL, and are restarted with
a growing delay. What an autoscaler does is in `scaling_loops`.

DEVIATION: controllers act at the instant of what they react to; theirs take milliseconds. Strimzi
waits for a pod without end, where its operator gives up after five minutes and begins again.
A node has room for every pod, and of equal nodes the first gets it, where the scheduler draws one.
A pod counts as Pending until its consumer starts, and budgets do not protect it until then.

Source: kubernetes 1.35, pkg/controller/deployment/rolling.go and recreate.go,
pkg/controller/replicaset, pkg/controller/statefulset/stateful_set_control.go,
pkg/kubelet/kuberuntime; strimzi main of 2026, StrimziPodSetController, KafkaConnectRoller. Nodes:
kubectl 1.35, pkg/drain/drain.go; kubernetes 1.35, pkg/registry/core/pod/storage/eviction.go,
pkg/controller/disruption/disruption.go, pkg/scheduler/framework/plugins/podtopologyspread.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Final

from simpy.events import Event, ProcessGenerator

from coordinator_sim.sim.members import Member
from coordinator_sim.sim.scenario.kubernetes import WorkloadSpec, fenceposts, is_static, pods_of
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.world import GroupSpec
from coordinator_sim.sim.world import US_PER_MS, World

_US_PER_S: Final = 1_000_000
_NS_PER_US: Final = 1_000
_FIRST_BACK_OFF_S: Final = 10
_LONGEST_BACK_OFF_S: Final = 300
_UID_COUNT: Final = 1 << 60
_EVICTION_RETRY_US: Final = 5_000_000
"""`EvictErrorRetryDelay` of `kubectl drain`."""


class Pod:
    """One pod, from its creation until its member is gone.

    Args:
        member: The member that it runs.
        revision: Revision of the pod template.
        settings: Client settings of that revision.
        created_us: When it was created.
        uid: Decides between pods that are equal otherwise.
    """

    __slots__ = (
        "back_off_s",
        "created_us",
        "ended",
        "is_available",
        "is_terminating",
        "member",
        "node",
        "ready_us",
        "restarted_us",
        "revision",
        "settings",
        "started_us",
        "uid",
    )

    def __init__(
        self,
        member: Member,
        *,
        revision: int,
        settings: Mapping[str, str],
        created_us: int,
        uid: int,
    ) -> None:
        self.member = member
        self.revision = revision
        self.settings = settings
        self.created_us = created_us
        self.uid = uid
        self.started_us: int | None = None
        self.ready_us: int | None = None
        self.node: int | None = None
        self.is_available = False
        self.is_terminating = False
        self.ended: Event | None = None
        self.back_off_s = 0
        self.restarted_us = 0


class Nodes:
    """The nodes of a cluster, 1 to `count`, and the workloads whose pods run on them."""

    def __init__(self, world: World, count: int) -> None:
        self._world = world
        self._cordoned_until_us = dict.fromkeys(range(1, count + 1), 0)
        self.workloads: dict[str, Workload] = {}
        self.total: Counter[int | None] = Counter()
        """Pods by node, those that end included."""

    def bind(self, pod: Pod, workload: "Workload") -> ProcessGenerator:
        """Bind a pod to a node, once there is one that is not cordoned.

        Chooses the node with the fewest pods of the workload (for a Deployment: of the same
        revision), but for those that end; then with the fewest pods in all.

        Source: PodTopologySpread, systemDefaultConstraints, countPodsMatchSelector; DefaultSelector
        (a ReplicaSet's); NodeResourcesFit, LeastAllocated.
        """
        environment, until_us = self._world.environment, self._cordoned_until_us
        while (next_us := min(until_us.values())) > environment.now_us:
            yield environment.timeout(next_us - environment.now_us)
        if not pod.is_terminating:
            free = [node for node in until_us if until_us[node] <= environment.now_us]
            peers = workload.peers(pod)
            pod.node = min(free, key=lambda node: (peers[node], self.total[node]))
            peers[pod.node] += 1
            self.total[pod.node] += 1

    def drain(self, node: int, for_ms: int, notice_ms: int | None) -> None:
        """Cordon a node for a time, and end its pods: by `kubectl drain`, or with notice."""
        environment = self._world.environment
        until_us = environment.now_us + for_ms * US_PER_MS
        if until_us > self._cordoned_until_us[node]:
            self._cordoned_until_us[node] = until_us
            environment.call_at(until_us, partial(self._uncordon, node))
        if notice_ms is None:
            environment.process(self._evict_all(node, until_us))
            return
        for name, (workload, _) in self._pods_on(node).items():
            workload.evict(name)
        gone_us = environment.now_us + notice_ms * US_PER_MS
        environment.call_at(gone_us, partial(self._lose, node))

    def _uncordon(self, node: int) -> None:
        if self._cordoned_until_us[node] == self._world.environment.now_us:
            self._record("NodeUncordoned", node)

    def _pods_on(self, node: int) -> "dict[str, tuple[Workload, Pod]]":
        every = self.workloads.values()
        pods = [(name, (own, pod)) for own in every for name, pod in own.pods.items()]
        return {name: found for name, found in pods if found[1].node == node}

    def _evict_all(self, node: int, until_us: int) -> ProcessGenerator:
        """Evict the pods that are there now, oldest first, each as soon as a budget lets it go.

        It asks by name again, which may be the next pod's of a StatefulSet. Source: evictPods.
        """
        environment, left = self._world.environment, self._pods_on(node)
        while left and environment.now_us < until_us:
            for name, (workload, pod) in list(left.items()):
                now = workload.pods.get(name)
                if now is None or (now is not pod and workload.spec.kind == "Deployment"):
                    del left[name]
                    continue
                what = "EvictionRefused"
                if workload.evict(name, within_budget=True):
                    what = "PodEvicted"
                    del left[name]
                self._record(what, node, member=name, workload=workload.spec.name)
            yield environment.timeout(_EVICTION_RETRY_US)

    def _lose(self, node: int) -> None:
        """Kill the processes of a node that is gone."""
        for name, (workload, pod) in self._pods_on(node).items():
            if pod.member.is_running:
                self._record("PodKilled", node, member=name, workload=workload.spec.name)
                pod.member.crash()

    def _record(self, what: str, node: int, **attrs: str) -> None:
        self._world.record_fault(what, node=str(node), **attrs)


class Workload:
    """A Deployment, StatefulSet or StrimziPodSet: its controller and its pods.

    Args:
        world: Shared parts of the run.
        spec: The workload.
        group: Its group.
        members: All members, by name.
        nodes: Where its pods run.
    """

    def __init__(
        self,
        world: World,
        spec: WorkloadSpec,
        group: GroupSpec,
        members: Mapping[str, Member],
        nodes: Nodes,
    ) -> None:
        self._nodes = nodes
        self._world = world
        self._environment = world.environment
        self.spec = spec
        self.replicas = spec.replicas
        """`spec.replicas` now."""
        self._members = {name: members[name] for name in pods_of(spec, group)}
        self._has_new_names = is_static(group) and spec.kind == "Deployment"
        self._revision = 1
        self._settings: dict[str, str] = {}
        self._pods: dict[str, Pod] = {}
        """Pods by the name of their member, those that end included."""
        self._peers: defaultdict[int, Counter[int | None]] = defaultdict(Counter)

    @property
    def pods(self) -> Mapping[str, Pod]:
        """All pods by the names of their members, in order of creation."""
        return self._pods

    @property
    def active(self) -> dict[str, Pod]:
        """Pods that do not end: `status.replicas`."""
        return {name: pod for name, pod in self._pods.items() if not pod.is_terminating}

    def peers(self, pod: Pod) -> Counter[int | None]:
        """Count by node the pods that a pod is spread among, without those that end."""
        return self._peers[pod.revision if self.spec.kind == "Deployment" else 0]

    @property
    def ready_count(self) -> int:
        """Pods that are Ready and do not end."""
        return sum(pod.ready_us is not None for pod in self.active.values())

    # Changes from outside.

    def scale(self, replicas: int) -> None:
        """Set `spec.replicas`."""
        self.replicas = replicas
        self.reconcile()

    def roll_out(self, settings: Mapping[str, str]) -> None:
        """Replace all pods by ones of a new revision, with client settings over the old ones."""
        self._revision += 1
        self._settings = {**self._settings, **settings}
        self.reconcile()

    def evict(self, name: str, *, within_budget: bool = False) -> bool:
        """End a pod, as a node does that is drained; return whether it ends, or is gone.

        Source: EvictionREST.Create, canIgnorePDB, checkAndDecrement; countHealthyPods.
        """
        pod, budget = self._pods.get(name), self.spec.pod_disruption_budget
        if pod is None or pod.is_terminating:
            return True
        if within_budget and budget is not None and pod.started_us is not None:
            desired = budget.desired_healthy(self.replicas)
            are_expected = self.replicas > 0 or (budget.min_available or "").isdecimal()
            spare = self.ready_count - desired if are_expected else 0
            if spare < 0 or (spare == 0 and (pod.ready_us is not None or desired == 0)):
                return False
        self._delete(name)
        self.reconcile()
        return True

    def reconcile(self) -> None:
        """Create and end pods until nothing is left to do at this instant.

        Terminates: a step that may be followed by another creates a pod up to `replicas`, or ends
        one for good.
        """
        is_deployment = self.spec.kind == "Deployment"
        step = self._reconcile_deployment if is_deployment else self._reconcile_by_ordinal
        while step():
            pass

    # Source: rolloutRolling: reconcileNewReplicaSet, reconcileOldReplicaSets.

    def _reconcile_deployment(self) -> bool:
        """Create and end pods; return whether some were ended, so that more may be created."""
        active = self.active
        new = [name for name, pod in active.items() if pod.revision == self._revision]
        old = [name for name, pod in active.items() if pod.revision != self._revision]
        if self.spec.strategy == "Recreate" and any(
            pod.revision != self._revision for pod in self._pods.values()
        ):  # Source: rolloutRecreate: no new pod while an old one runs, or ends.
            for name in old:
                self._delete(name)
            return bool(old)
        surge, unavailable = fenceposts(self.spec, self.replicas)
        ended = self._victims(new)[: max(len(new) - self.replicas, 0)]
        room = self.replicas + surge - len(active) if old else self.replicas
        free = [name for name in self._members if name not in self._pods]
        created = free[: max(min(self.replicas - len(new), room), 0)]
        for name in created:
            self._create(name)
        if old:
            lowest = self.replicas - unavailable
            available = [name for name, pod in active.items() if pod.is_available]
            missing = sum(name not in available for name in new) + len(created)
            may_end = len(active) + len(created) - lowest - missing
            unavailable_old = [name for name in old if name not in available]
            ended += self._victims(unavailable_old)[: max(may_end, 0)]
            spare = min(len(available) - lowest, may_end - len(ended))
            ended += self._victims([name for name in old if name in available])[: max(spare, 0)]
        for name in ended:
            self._delete(name)
        return bool(ended)

    def _victims(self, names: list[str]) -> list[str]:
        """Return pods in the order in which a ReplicaSet ends them.

        Source: ActivePodsWithRanks, with LogarithmicScaleDown.
        """
        now_us = self._environment.now_us

        def age(since_us: int) -> int:
            return ((now_us - since_us) * _NS_PER_US).bit_length()

        def rank(name: str) -> tuple[int, int, int, int, int]:
            pod = self._pods[name]
            stage = (pod.started_us is not None) + (pod.ready_us is not None)
            ready = 0 if pod.ready_us is None else age(pod.ready_us)
            return stage, ready, -pod.back_off_s, age(pod.created_us), pod.uid

        return sorted(names, key=rank)

    # Source: updateStatefulSet: replicas by ordinal, then condemned pods, then the update.

    def _reconcile_by_ordinal(self) -> bool:
        """Take one step; return whether another may follow at this instant."""
        is_pod_set = self.spec.kind == "StrimziPodSet"
        is_ordered = self.spec.pod_management == "OrderedReady" and not is_pod_set
        names = list(self._members)
        for name in names[: self.replicas]:
            pod = self._pods.get(name)
            if pod is None:
                self._create(name)
                return not is_ordered
            if is_ordered and (pod.is_terminating or not pod.is_available):
                return False
        for name in reversed(names[self.replicas :]):
            pod = self._pods.get(name)
            if pod is not None and not pod.is_terminating:
                self._delete(name)
                return not is_ordered or name not in self._pods
            if pod is not None and is_ordered:
                return False
        rolled = names[: self.replicas]
        for name in self._strimzi_order(rolled) if is_pod_set else reversed(rolled):
            pod = self._pods[name]
            if pod.revision != self._revision and not pod.is_terminating:
                self._delete(name)
                return name not in self._pods
            if pod.is_terminating or not pod.is_available:
                return False
        return False

    def _strimzi_order(self, names: list[str]) -> list[str]:
        """Return pods as Strimzi rolls them: one that ends is waited for, unready ones are first.

        Source: KafkaConnectRoller.prepareRollingOrder, which puts each unready pod in front.
        """
        ready = [name for name in names if self._pods[name].is_available]
        unready = [name for name in reversed(names) if not self._pods[name].is_available]
        return sorted(unready, key=lambda name: not self._pods[name].is_terminating) + ready

    # The life of a pod.

    def _create(self, name: str) -> None:
        uid = self._world.choices.choose("pod-uid", name, _UID_COUNT)
        pod = self._pods[name] = Pod(
            self._members[name],
            revision=self._revision,
            settings=self._settings,
            created_us=self._environment.now_us,
            uid=uid,
        )
        self._environment.process(self._start(name, pod))

    def _start(self, name: str, pod: Pod) -> ProcessGenerator:
        yield from self._nodes.bind(pod, self)
        startup_ms = drawn(self.spec.startup_ms, self._world.choices, "pod-startup", name)
        yield self._environment.timeout(startup_ms * US_PER_MS)
        if self._pods.get(name) is pod:
            yield from self._run(name, pod)

    def _run(self, name: str, pod: Pod) -> ProcessGenerator:
        """Start the container, and report it Ready after a while."""
        pod.started_us = started_us = self._environment.now_us
        pod.member.on_exit = partial(self._on_process_ended, name, pod)
        pod.member.start(pod.settings)
        yield self._environment.timeout(self.spec.readiness_ms * US_PER_MS)
        if self._is_up(name, pod, started_us):
            pod.ready_us = self._environment.now_us
        if self.spec.min_ready_s:
            yield self._environment.timeout(self.spec.min_ready_s * _US_PER_S)
        if self._is_up(name, pod, started_us):
            pod.is_available = True
            self.reconcile()

    def _is_up(self, name: str, pod: Pod, started_us: int) -> bool:
        is_same = pod.started_us == started_us and self._pods.get(name) is pod
        return is_same and not pod.is_terminating

    def _delete(self, name: str) -> None:
        pod = self._pods[name]
        pod.is_terminating, pod.is_available = True, False
        self.peers(pod)[pod.node] -= 1
        if pod.started_us is None:
            self._forget(name)
        else:
            self._environment.process(self._terminate(name, pod))

    def _forget(self, name: str) -> None:
        """Remove a pod; a Deployment's next pod takes the name that is unused for longest."""
        self._nodes.total[self._pods.pop(name).node] -= 1
        if self._has_new_names:
            self._members[name] = self._members.pop(name)

    def _terminate(self, name: str, pod: Pod) -> ProcessGenerator:
        """Send SIGTERM, and SIGKILL to a process that lives after the grace period."""
        environment = self._environment
        grace = environment.timeout(self.spec.termination_grace_period_s * _US_PER_S)
        pod.ended = environment.event()
        if not pod.member.is_running:
            pod.ended.succeed()
        shutdown_ms = drawn(self.spec.shutdown_ms, self._world.choices, "pod-shutdown", name)
        yield environment.timeout(shutdown_ms * US_PER_MS) | grace | pod.ended
        pod.member.stop()
        yield grace | pod.ended
        if not pod.ended.triggered:
            self._world.record_fault("PodKilled", member=name, workload=self.spec.name)
            pod.member.crash()
        pod.member.on_exit = None
        self._forget(name)
        self.reconcile()

    def _on_process_ended(self, name: str, pod: Pod) -> None:
        """React to the end of a pod's process."""
        if pod.ended is not None:
            if not pod.ended.triggered:
                pod.ended.succeed()
            return
        pod.ready_us, pod.is_available = None, False
        pod.started_us = self._environment.now_us
        self._environment.process(self._restart(name, pod))
        self.reconcile()

    def _restart(self, name: str, pod: Pod) -> ProcessGenerator:
        """Restart a container that ended by itself: first at once, then ever later.

        Source: kubelet, doBackOff; client-go, flowcontrol.Backoff.
        """
        now_us = self._environment.now_us
        if now_us - pod.restarted_us > 2 * _LONGEST_BACK_OFF_S * _US_PER_S:
            pod.back_off_s = 0
        delay_s = pod.back_off_s
        yield self._environment.timeout(delay_s * _US_PER_S)
        pod.back_off_s = min(max(2 * delay_s, _FIRST_BACK_OFF_S), _LONGEST_BACK_OFF_S)
        pod.restarted_us = self._environment.now_us
        if self._pods.get(name) is pod and not pod.is_terminating:
            yield from self._run(name, pod)
