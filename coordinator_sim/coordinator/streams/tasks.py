"""Tasks of a streams group in their three roles, as values.

A task is a subtopology and a number. A subtopology without tasks has no entry, so that equal tasks
are equal values.

Source: kafka 4.4, group-coordinator/.../streams/TasksTuple.java and TasksTupleWithEpochs.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.messages.streams_group_heartbeat import TaskIds as ReportedTasks
from coordinator_sim.messages.streams_group_records import TaskIds

TaskSet = Mapping[str, frozenset[int]]
"""Numbers of tasks by subtopology."""
TaskEpochs = Mapping[str, Mapping[int, int]]
"""The same, each with the epoch at which the member got it."""

NO_TASKS: Final[frozenset[int]] = frozenset()


class Tasks(Struct, frozen=True):
    """What a member shall have, or reports to have."""

    active: TaskSet = {}
    standby: TaskSet = {}
    warmup: TaskSet = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task in any role."""
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, held: "HeldTasks") -> bool:
        """Whether one of those tasks is here in the same role. Source: TasksTuple.containsAny."""
        return (
            _meet(self.active, held.active)
            or _meet(self.standby, held.standby)
            or _meet(self.warmup, held.warmup)
        )

    def is_same_as(self, held: "HeldTasks") -> bool:
        """Whether these are those tasks in the same roles. Source: TasksTuple.sameTasks."""
        return (
            self.standby == held.standby
            and self.warmup == held.warmup
            and self.active == numbers_of(held.active)
        )


class HeldTasks(Struct, frozen=True):
    """What a member has, or must give up."""

    active: TaskEpochs = {}
    standby: TaskSet = {}
    warmup: TaskSet = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task in any role."""
        return not (self.active or self.standby or self.warmup)


NOTHING_WANTED: Final = Tasks()
NOTHING_HELD: Final = HeldTasks()


def _meet(one: TaskSet, other: Mapping[str, Iterable[int]]) -> bool:
    return any(not numbers.isdisjoint(other.get(name, ())) for name, numbers in one.items())


def numbers_of(held: TaskEpochs) -> dict[str, frozenset[int]]:
    """Active tasks without their epochs."""
    return {name: frozenset(epochs) for name, epochs in held.items()}


def united(one: TaskSet, other: TaskSet) -> dict[str, frozenset[int]]:
    """The tasks of both. Source: TasksTupleWithEpochs.mergeTasks."""
    return {
        name: one.get(name, NO_TASKS) | other.get(name, NO_TASKS)
        for name in dict.fromkeys((*one, *other))
    }


def merged(one: HeldTasks, other: HeldTasks) -> HeldTasks:
    """The tasks of both, by role. Source: TasksTupleWithEpochs.merge."""
    return HeldTasks(
        active={
            name: {**one.active.get(name, {}), **other.active.get(name, {})}
            for name in dict.fromkeys((*one.active, *other.active))
        },
        standby=united(one.standby, other.standby),
        warmup=united(one.warmup, other.warmup),
    )


def sorted_tasks(tasks: TaskSet) -> tuple[TaskIds, ...]:
    """Tasks as a record or an answer lists them: by subtopology and number."""
    return tuple(
        TaskIds(name, tuple(sorted(tasks[name]))) for name in sorted(tasks, key=java_string_key)
    )


def sorted_epochs(tasks: TaskEpochs, *, with_epochs: bool) -> tuple[TaskIds, ...]:
    """Active tasks as a record lists them.

    Args:
        tasks: The tasks.
        with_epochs: Whether the epochs are stored.
    """
    listed = []
    for name in sorted(tasks, key=java_string_key):
        numbers = tuple(sorted(tasks[name]))
        epochs = tuple(tasks[name][number] for number in numbers)
        listed.append(TaskIds(name, numbers, epochs if with_epochs else None))
    return tuple(listed)


def tasks_from(listed: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    """Tasks as a record lists them. Source: TasksTuple.fromTargetAssignmentRecord."""
    return {each.subtopology_id: frozenset(each.partitions) for each in listed}


def epochs_from(listed: Iterable[TaskIds], member_epoch: int) -> dict[str, dict[int, int]]:
    """Active tasks as a record lists them; where it has no epochs, they are the member's own.

    Source: TasksTupleWithEpochs.parseActiveTasksWithEpochs.
    """
    found: dict[str, dict[int, int]] = {}
    for each in listed:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            found[each.subtopology_id] = dict.fromkeys(each.partitions, member_epoch)
        else:
            found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def reported(listed: tuple[ReportedTasks, ...]) -> dict[str, frozenset[int]]:
    """Tasks as a heartbeat reports them.

    Raises:
        OperationAborted: a subtopology is named twice.

    Source: TasksTuple.fromHeartbeatRequest.
    """
    found = {each.subtopology_id: frozenset(each.partitions) for each in listed}
    if len(found) < len(listed):
        raise OperationAborted("a subtopology is named twice among the tasks of a heartbeat")
    return found


def is_contained(
    listed: tuple[ReportedTasks, ...] | None, held: Mapping[str, Iterable[int]]
) -> bool:
    """Whether a member reports no more than these tasks; who reports nothing does not say so.

    Source: GroupMetadataManager.areOwnedTasksContainedInAssignedTasks.
    """
    return listed is not None and all(
        each.subtopology_id in held and set(each.partitions) <= set(held[each.subtopology_id])
        for each in listed
    )
