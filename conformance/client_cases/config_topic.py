"""The config topic: when records read take effect, and what is written for older workers."""

from typing import Final

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.stores.config_records import commit_value, properties_value
from coordinator_sim.connect.stores.config_store import ConfigStore
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.client_cases.case import client_case
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench

_TOPIC: Final = "configs"
_C0, _C1 = ConnectorTaskId("c", 0), ConnectorTaskId("c", 1)


class _Config:
    """A worker's config store, on a topic that another worker writes to."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.topics = TopicBench()
        topic = InternalTopic(
            name=_TOPIC, setting="config.storage.topic", purpose="connector configurations"
        )
        self.store = ConfigStore(self.topics.outbox, self.topics.spawn, topic=topic)
        self.topics.serve(self.store.log)
        self.topics.call(self.store.start())
        self.write("connector-c", properties_value({"connector.class": "Source"}))

    def write(self, key: str, value: bytes) -> None:
        """Write a record as another worker does; it is read at once."""
        self.topics.write(_TOPIC, key, value)
        self.topics.settle()
        self._bench.transcript.append(f"read {key} {value.decode()}")

    def write_task(self, number: int, version: str) -> None:
        """Write a task's configuration."""
        self.write(f"task-c-{number}", properties_value({"version": version}))

    def commit(self, tasks: int) -> None:
        """Write the commit that puts the task configurations into effect."""
        self.write("commit-c", commit_value(tasks))

    def versions(self) -> list[str | None]:
        """Return the configurations of the tasks to be run."""
        state = self.store.snapshot()
        configs = [state.task_config(task) for task in state.tasks("c")]
        return [None if config is None else config["version"] for config in configs]


@client_case("C-CFG-01", "KafkaConfigBackingStore.processTasksCommitRecord")
def tasks_apply_only_on_commit(bench: Bench) -> None:
    """Until the commit is read the snapshot shows the old tasks."""
    config = _Config(bench)
    config.write_task(0, "old")
    config.commit(1)
    bench.expect("tasks at first", config.versions(), ["old"])
    config.write_task(0, "new")
    config.write_task(1, "new")
    bench.expect("tasks without a commit", config.versions(), ["old"])
    config.commit(2)
    bench.expect("tasks with it", config.versions(), ["new", "new"])


@client_case("C-CFG-02", "KafkaConfigBackingStore.processTasksCommitRecord, completeTaskIdSet")
def a_hole_of_compaction_hides_all_tasks(bench: Bench) -> None:
    """A commit of more tasks than were read leaves a connector without tasks until a whole one."""
    config = _Config(bench)
    config.write_task(1, "left")
    config.commit(2)
    state = config.store.snapshot()
    bench.expect("inconsistent", state.inconsistent_connectors, ("c",))
    bench.expect("tasks to run", state.tasks("c"), ())
    bench.expect("tasks for the leader", state.assignable().connectors, {"c": 0})
    for number in range(2):
        config.write_task(number, "whole")
    config.commit(2)
    bench.expect("inconsistent", config.store.snapshot().inconsistent_connectors, ())
    bench.expect("tasks to run", config.store.snapshot().tasks("c"), (_C0, _C1))
    bench.expect("their configurations", config.versions(), ["whole", "whole"])


@client_case("C-CFG-03", "KafkaConfigBackingStore.serializeTargetState")
def stopped_is_paused_for_old_workers(bench: Bench) -> None:
    """STOPPED is written as PAUSED in `state`, and as itself in `state.v2`."""
    config = _Config(bench)
    config.topics.call(config.store.put_target_state("c", TargetState.STOPPED))
    bench.expect(
        "record",
        config.topics.records(_TOPIC)[-1],
        ("target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    )
    bench.expect("state", config.store.snapshot().target_state("c"), TargetState.STOPPED)
    config.write("target-state-c", b'{"state":"PAUSED"}')
    bench.expect("as read", config.store.snapshot().target_state("c"), TargetState.PAUSED)
