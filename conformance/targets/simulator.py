"""The simulator as a target: the line protocol without a process, and access to its state."""

from collections.abc import Callable
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call as ClusterCall
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.errors import IllegalTransition, InvariantViolation
from coordinator_sim.harness.kafka_json import write_records
from coordinator_sim.harness.lines import Lines
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.log.format.log_batches import decode_batches
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.catalogue import api_named, layout_of, structs_module
from coordinator_sim.messages.codec.answers import fitted
from coordinator_sim.messages.codec.json_form import JsonReader, to_json, uuid_text
from coordinator_sim.messages.records import LogBatch
from coordinator_sim_conformance.targets import target
from coordinator_sim_conformance.targets.failing_assignor import register_failing_assignor
from coordinator_sim_conformance.targets.lines import LinesTarget


class _Place:
    """Takes the answer of a request that the cluster is asked."""

    def __init__(self, take: Callable[[Struct | None], None]) -> None:
        self.answered = take

    def throttled(self, throttle_time_ms: int) -> None:
        """Nothing else is asked on the connection of a request."""

    def closed(self) -> None:
        """Fail: nothing that is asked here closes a connection."""
        raise InvariantViolation("a request closed its connection")


def next_deadline_ms(cluster: Cluster) -> int | None:
    """Return when a cluster whose clocks agree has something to do; None for never."""
    due = (cluster.next_group_deadline_ms(), cluster.next_wall_deadline_ms())
    return min((each for each in due if each is not None), default=None)


class SimulatorTarget(LinesTarget):
    """One broker of the simulator, as any Kafka that has a profile."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._compacted: PartitionLog | None = None
        self._cluster: Cluster | None = None
        self._answers: list[target.Answer] = []
        super().__init__(
            "simulator", self._lines, profile=None, capabilities=frozenset(target.Capability)
        )

    def start(self, world: target.World) -> None:
        """Create a new broker, whose log was never cleaned."""
        self._compacted = None
        self._cluster = None
        self._answers = []
        register_failing_assignor(world)
        super().start(world)

    def view(self, group_id: str) -> target.GroupView | None:
        """Return the group with all its fields."""
        group = self._lines.harness.coordinator.group(group_id)
        if group is None:
            return None
        return target.GroupView(
            state=group.state.value,
            protocol_type=group.protocol_type or "",
            member_ids=tuple(group.members),
            generation_id=group.generation_id,
            leader=group.leader_id or "",
            pending_ids=tuple(group.pending_members),
        )

    def operate(self, operation: target.Json) -> target.Outcome:
        """Run an op of the line protocol, or one of our own, which change what no request can."""
        inside = _INSIDE.get(operation["op"])
        return super().operate(operation) if inside is None else inside(self, operation)

    # -- the cluster around it -------------------------------------------------------------

    def call(self, call: target.Call) -> target.Outcome:
        """Send a request: to the group coordinator, or to the broker around it."""
        if not self.world.records and call.api != "FindCoordinator":
            return super().call(call)
        api = api_named(call.api)
        reader = JsonReader(structs_module(call.api))
        request = reader.read(
            layout_of(api, call.version, response=False), call.data, defaulted=True
        )

        def take(response: Struct | None) -> None:
            layout = layout_of(api, call.version, response=True)
            said = cast("Struct", fitted(response, call.version, request))
            now_ms = self._now().group_ms
            self._answers.append(target.Answer(call.call_id, now_ms, to_json(layout, said)))

        context = RequestContext(
            token=self.cluster.new_token(), api_version=call.version, client_id=call.client_id
        )
        asked = ClusterCall(
            broker_id=1,
            api=api,
            request=request,
            context=context,
            now=self._now(),
            connection=call.call_id,
        )
        self.cluster.handle(asked, _Place(take))
        return self._in_cluster(0)

    def advance(self, ms: int, *, early: bool = False) -> target.Outcome:
        """Let virtual time pass."""
        if not self.world.records:
            return super().advance(ms, early=early)
        return self._in_cluster(ms)

    def _in_cluster(self, ms: int) -> target.Outcome:
        """Let time pass in the cluster, each deadline at its own instant; return the answers."""
        end_ms = self._now().group_ms + ms
        cluster = self.cluster
        while True:
            cluster.go_on(self._now())
            if cluster.has_work:
                cluster.work(self._now())
                continue
            due_ms = next_deadline_ms(cluster)
            if due_ms is None or due_ms > end_ms:
                break
            super().advance(max(due_ms - self._now().group_ms, 0))
            cluster.expire(self._now())
        super().advance(end_ms - self._now().group_ms)
        answers, self._answers = self._answers, []
        return target.Outcome(tuple(answers))

    def topic_ids(self) -> dict[str, str]:
        """Return the id of every topic that was created."""
        if not self.world.records:
            return super().topic_ids()
        topics = self.cluster.image.topics
        return {name: uuid_text(topic.topic_id) for name, topic in topics.items()}

    @property
    def cluster(self) -> Cluster:
        """The cluster, created on first use: one broker with records, or two without."""
        if self._cluster is None:
            settings = ClusterSettings(
                profile=profile_named(self.world.profile),
                broker_ids=(1,) if self.world.records else (1, 2),
                coordinator=self._lines.harness.config,
            )
            self._cluster = Cluster(settings, endpoint=lambda *_: Endpoint("localhost", 9092))
            self._cluster.topics.create_asked_for(OFFSETS_TOPIC, self._now())
            if self.world.records:
                self._cluster.topics.create_asked_for(SHARE_STATE_TOPIC, self._now())
                for name, partitions in (self.world.topics or {}).items():
                    self._cluster.topics.create_spread(name, partitions, self._now())
        return self._cluster

    def _now(self) -> Instants:
        now_ms = self._lines.harness.now_ms
        return Instants(now_ms, now_ms)

    def remove_offsets_topic(self, _operation: target.Json) -> target.Outcome:
        """Make a cluster in which no group was looked up yet."""
        self.cluster.topics.delete(OFFSETS_TOPIC, self._now())
        return target.Outcome()

    def remove_leader(self, operation: target.Json) -> target.Outcome:
        """Remove the leader of the group's partition."""
        partition = self._partition(operation)
        self.cluster.leadership.elect(OFFSETS_TOPIC, partition, NO_LEADER, self._now())
        return target.Outcome()

    # -- inside ----------------------------------------------------------------------------

    def _partition(self, operation: target.Json) -> int:
        return self._lines.harness.partition_of(operation["group"])

    def begin_load(self, operation: target.Json) -> target.Outcome:
        """Begin a load of the group's partition."""
        harness = self._lines.harness
        harness.coordinator.begin_load(self._partition(operation), 9, harness.now_ms)
        return target.Outcome()

    def fail_load(self, operation: target.Json) -> target.Outcome:
        """End the load in progress with an error."""
        harness = self._lines.harness
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        harness.coordinator.finish_load(self._partition(operation), error, harness.now_ms)
        return target.Outcome()

    def force(self, operation: target.Json) -> target.Outcome:
        """Force a state that no request leads to."""
        self._group(operation).state = GroupState(operation["state"])
        return target.Outcome()

    def _group(self, operation: target.Json) -> Group:
        group = self._lines.harness.coordinator.group(operation["group"])
        if group is None:
            raise target.Unsupported(f"there is no group {operation['group']!r} to change")
        return group

    def transition(self, operation: target.Json) -> target.Outcome:
        """Try one step between two states: an answer means that it was made."""
        group = self._group(operation)
        group.state = GroupState(operation["before"])
        try:
            group._transition(GroupState(operation["after"]))  # noqa: SLF001 - the one door
        except IllegalTransition:
            return target.Outcome()
        return target.Outcome((target.Answer(0, self._lines.harness.now_ms, {}),))

    def short_load(self, operation: target.Json) -> target.Outcome:
        """Load so that no bytes are read after so many batches, though the log goes on."""
        harness, partition = self._lines.harness, self._partition(operation)
        harness.coordinator.begin_load(partition, 9, harness.now_ms)
        for batch in harness.log(partition)[: operation["batches"]]:
            harness.coordinator.replay(partition, batch)
        harness.coordinator.finish_load(partition, ErrorCode.NONE, harness.now_ms)
        return target.Outcome()

    def compact(self, operation: target.Json) -> target.Outcome:
        """Run a pass of the log cleaner over the log of the group's partition."""
        harness, partition = self._lines.harness, self._partition(operation)
        log = self._compacted
        if log is None:
            config = LogConfig(cleanup_policy="compact")
            log = self._compacted = PartitionLog(OFFSETS_TOPIC, partition, MemoryStore(), config)
        for batch in harness.log(partition):
            if batch.base_offset >= log.end_offset:
                log.append_batch(batch, now_ms=harness.now_ms)
        log.compact(harness.now_ms)
        left = [batch for data in log.chunks() for batch in decode_batches(data, partition)]
        harness.replace_log(partition, left)
        return target.Outcome()

    def append_empty(self, operation: target.Json) -> target.Outcome:
        """Append a control batch without records, as the log cleaner leaves one."""
        harness, partition = self._lines.harness, self._partition(operation)
        log = harness.log(partition)
        empty = LogBatch(
            partition=partition,
            base_offset=log[-1].next_offset if log else 0,
            timestamp_ms=harness.now_ms,
            records=(),
            control=True,
        )
        harness.replace_log(partition, [*log, empty])
        return target.Outcome()

    def stored(self, operation: target.Json) -> target.Outcome:
        """Return the records of the log of the group's partition."""
        log = self._lines.harness.log(self._partition(operation))
        return target.Outcome((), tuple(record for batch in log for record in write_records(batch)))


_INSIDE: Final[dict[str, Callable[[SimulatorTarget, target.Json], target.Outcome]]] = {
    "beginLoad": SimulatorTarget.begin_load,
    "failLoad": SimulatorTarget.fail_load,
    "force": SimulatorTarget.force,
    "transition": SimulatorTarget.transition,
    "shortLoad": SimulatorTarget.short_load,
    "compact": SimulatorTarget.compact,
    "appendEmpty": SimulatorTarget.append_empty,
    "stored": SimulatorTarget.stored,
    "removeOffsetsTopic": SimulatorTarget.remove_offsets_topic,
    "removeLeader": SimulatorTarget.remove_leader,
}
