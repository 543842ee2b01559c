"""Specs of tasks: what all have, and the two that neither harm nor load a cluster.

The others are in `fault_specs` and `workload_specs`; `messages.SPEC_CLASSES` lists all. A spec is
what Java's constructor makes of its JSON: a field that is absent or null has its default, and
bounds are kept.

Source: kafka trunk, trogdor/.../trogdor/task/TaskSpec.java and its subclasses.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import force_setattr

MAX_DURATION_MS: Final = 1_000_000_000_000_000
"""Longest duration of a task. Source: TaskSpec.MAX_TASK_DURATION_MS."""


class TaskSpec(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="class", forbid_unknown_fields=True
):
    """What every task has.

    Args:
        start_ms: When it starts, by the coordinator's clock.
        duration_ms: How long it runs; taken as 0 to MAX_DURATION_MS.
    """

    start_ms: int = 0
    duration_ms: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "duration_ms", max(0, min(self.duration_ms, MAX_DURATION_MS)))

    @property
    def end_ms(self) -> int:
        """When the task ends at the latest."""
        return self.start_ms + self.duration_ms


def class_of(spec: TaskSpec) -> str:
    """The name that JSON has for a spec's class: Java's, or ours of what Kafka does not have."""
    return str(spec.__struct_config__.tag)


class NoOpTaskSpec(
    TaskSpec, frozen=True, kw_only=True, tag="org.apache.kafka.trogdor.task.NoOpTaskSpec"
):
    """Does nothing on every node with an agent."""


class SampleTaskSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.task.SampleTaskSpec",
):
    """Does on every node with an agent what a test asks of it.

    Kafka's class, in its tests, has the first two fields. The others are written only where they
    are set, so that Kafka's own class can read what does without them.

    Args:
        node_to_exit_ms: Node -> how long after its start the worker halts by itself.
        error: What a worker says that halts by itself; empty for success.
        stop_takes_ms: How long `stop` takes.
        stop_throws: Node -> message of the exception that `stop` ends with; None for no message.
        halt_in_start: What a worker says that halts while it starts; empty for none that does.
        status_script: Milliseconds after the start, as text -> the status from then on.
        start_takes_ms: How long `start` takes.
        start_throws: Message of the exception that `start` ends with; empty for none.

    Source: kafka trunk, trogdor/src/test/java/.../trogdor/task/SampleTaskSpec.java.
    """

    unwritten_at_default: ClassVar[frozenset[str]] = frozenset({"stopTakesMs", "startTakesMs"})

    node_to_exit_ms: Mapping[str, int] = {}
    error: str = ""
    stop_takes_ms: int = 0
    stop_throws: Mapping[str, str | None] = {}
    halt_in_start: str = ""
    status_script: Mapping[str, Any] = {}
    start_takes_ms: int = 0
    start_throws: str = ""
