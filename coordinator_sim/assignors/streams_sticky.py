"""The task assignor `sticky` of the group coordinator's streams groups.

Active tasks stay where they are while their member is below its share, then go to members that
keep a copy, then to the least loaded process. Copies are put as evenly, never twice into a process.
Which of two equal processes or members is taken follows from the orders of Kafka's hash maps and
queues.

Source: kafka 4.4, group-coordinator/.../streams/assignor/StickyTaskAssignor.java and
ProcessState.java.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key

Task = tuple[str, int]
"""A subtopology and the number of a task."""
TaskNumbers = Mapping[str, frozenset[int]]
T = TypeVar("T")

_FULL_TABLE: Final = 3 / 4


class AskingMember(Struct, frozen=True):
    """A member as the assignor sees it.

    Args:
        process_id: Of its process.
        active: Tasks that it runs.
        standby: Tasks of which it keeps a copy.
        offsets: How far its copies are, by subtopology and number, where it reports that.
    """

    process_id: str
    active: TaskNumbers
    standby: TaskNumbers
    offsets: Mapping[str, Mapping[int, int]] = {}


class AskedSubtopology(Struct, frozen=True):
    """A subtopology: how many tasks it has, and whether they have state."""

    task_count: int
    is_stateful: bool


class AssignedTasks(Struct, frozen=True):
    """What a member shall have."""

    active: dict[str, frozenset[int]]
    standby: dict[str, frozenset[int]]
    warmup: dict[str, frozenset[int]] = {}


class JavaPriorityQueue(Generic[T]):
    """A queue that hands out a least element, among equal ones the one that Java's does.

    Source: java.util.PriorityQueue, siftUpUsingComparator and siftDownUsingComparator.
    """

    __slots__ = ("_heap", "_key")

    def __init__(self, elements: Sequence[T], key: Callable[[T], float]) -> None:
        self._heap: list[T] = []
        self._key = key
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        """The number of elements."""
        return len(self._heap)

    def add(self, element: T) -> None:
        """Insert an element."""
        heap, key = self._heap, self._key
        heap.append(element)
        place, weight = len(heap) - 1, key(element)
        while place > 0:
            parent = (place - 1) // 2
            if weight >= key(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = element

    def poll(self) -> T:
        """Remove a least element, and return it."""
        heap, key = self._heap, self._key
        first, last = heap[0], heap.pop()
        if not heap:
            return first
        place, weight, half = 0, key(last), len(heap) // 2
        while place < half:
            child = 2 * place + 1
            if child + 1 < len(heap) and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if weight <= key(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first


class _Counted:
    """A member of a process and its number of tasks, as a queue of them has it."""

    __slots__ = ("count", "member_id")

    def __init__(self, member_id: str, count: int) -> None:
        self.member_id = member_id
        self.count = count


class _Process:
    """A process with its members and what they are given. Source: ProcessState.java."""

    __slots__ = ("_queue", "active", "counts", "load", "standby", "task_count", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.active: dict[str, list[Task]] = {}
        self.standby: dict[str, list[Task]] = {}
        self.task_count = 0
        self.load = 0.0
        self._queue: JavaPriorityQueue[_Counted] | None = None

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Give a member a task; how many it has then."""
        count = self._add(member_id, task, is_active=is_active)
        self._queue = None
        return count

    def _add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        self.task_count += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        self.load = self.task_count / len(self.counts)
        return self.counts[member_id]

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Give the least loaded member a task; how many it has then."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        if self._queue is None:
            order = java_hash_order(self.counts)
            counted = [_Counted(member_id, self.counts[member_id]) for member_id in order]
            self._queue = JavaPriorityQueue(counted, lambda each: each.count)
        least = self._queue.poll()
        least.count = self._add(least.member_id, task, is_active=is_active)
        self._queue.add(least)
        return least.count


class _Quota:
    """The most tasks a member may have while others have fewer; shrinks as members fill up."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.share = _shared(tasks, members)

    def has_grown(self, count: int) -> None:
        """A member has so many tasks now. Source: maybeUpdateTotalTasksPerMember."""
        if count == self.share:
            self._members -= 1
            self._tasks -= count
            self.share = _shared(self._tasks, self._members)


def _shared(tasks: int, members: int) -> int:
    """Tasks of each member, rounded up. Source: computeTasksPerMember."""
    return 0 if members == 0 else -(-tasks // members)


class _Assigning:
    """One assignment under way."""

    def __init__(
        self,
        members: Mapping[str, AskingMember],
        subtopologies: Mapping[str, AskedSubtopology],
        standby_count: int,
        *,
        is_early: bool,
    ) -> None:
        self._members = members
        self._is_early = is_early
        self._subtopologies = subtopologies
        self._standby_count = standby_count
        active = sum(each.task_count for each in subtopologies.values())
        copies = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + copies * standby_count, len(members))
        self._processes: dict[str, _Process] = {}
        self._ran: dict[Task, str] = {}
        for member_id, member in members.items():
            process = self._processes.setdefault(member.process_id, _Process())
            process.add_member(member_id)
            for task in _tasks_of(member.active):
                self._ran[task] = member_id
        self._kept = _candidates(members)

    def run(self) -> dict[str, AssignedTasks]:
        self._assign_active(_all_tasks(self._subtopologies))
        if self._standby_count > 0:
            stateful = {n: each for n, each in self._subtopologies.items() if each.is_stateful}
            self._assign_standby(_all_tasks(stateful))
        return {
            member_id: AssignedTasks(
                _by_subtopology(self._process_of(member_id).active.get(member_id, ())),
                _by_subtopology(self._process_of(member_id).standby.get(member_id, ())),
            )
            for member_id in self._members
        }

    def _process_of(self, member_id: str) -> _Process:
        return self._processes[self._members[member_id].process_id]

    def _queue(self) -> JavaPriorityQueue[_Process]:
        names = list(self._processes)
        order = _process_order(names, len(self._members), puts_last=self._is_early)
        return JavaPriorityQueue([self._processes[name] for name in order], lambda each: each.load)

    def _is_below(self, member_id: str, quota: _Quota) -> bool:
        return self._process_of(member_id).counts[member_id] < quota.share

    def _give(self, member_id: str, task: Task, *, is_active: bool) -> None:
        count = self._process_of(member_id).add(member_id, task, is_active=is_active)
        if is_active:
            self._active_quota.has_grown(count)
        self._quota.has_grown(count)

    def _assign_active(self, tasks: list[Task]) -> None:
        tasks = sorted(tasks, key=lambda task: (task[1], java_string_key(task[0])))
        rest = []
        for task in tasks:
            member_id = self._ran.get(task)
            if member_id is not None and self._is_below(member_id, self._active_quota):
                self._give(member_id, task, is_active=True)
            else:
                rest.append(task)
        left = []
        for task in rest:
            member_id = self._least_loaded(self._kept.get(task, ()), None)
            if member_id is not None and self._is_below(member_id, self._active_quota):
                self._give(member_id, task, is_active=True)
            else:
                left.append(task)
        queue = self._queue()
        for task in sorted(left, key=lambda task: (java_string_key(task[0]), task[1])):
            process = queue.poll()
            count = process.add_to_least_loaded(task, is_active=True)
            self._active_quota.has_grown(count)
            self._quota.has_grown(count)
            queue.add(process)

    def _least_loaded(self, member_ids: Sequence[str], wanted: Task | None) -> str | None:
        """The least loaded of these members.

        QUIRK: a later one counts only if both its process and itself have less to do.

        Source: findPrevMemberWithLeastLoad.
        """
        found, process_load, member_load = None, 0.0, 0
        for member_id in member_ids:
            process = self._process_of(member_id)
            is_taken = wanted is not None and wanted in process.tasks
            is_judged_last = self._is_early and found is None
            if is_taken and not is_judged_last:
                continue
            load, count = process.load, process.counts[member_id]
            if found is None or (load < process_load and count < member_load):
                found, process_load, member_load = member_id, load, count
        if not self._is_early or not member_ids or wanted is None:
            return found
        # QUIRK: up to 4.3 the first of them decides whether any is taken.
        return None if wanted in self._process_of(member_ids[0]).tasks else found

    def _assign_standby(self, tasks: list[Task]) -> None:
        count = self._standby_count
        rest: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=lambda each: (each[1], java_string_key(each[0])))[::-1]:
            for number in range(count):
                member_id = self._former(task)
                if member_id is None:
                    rest.append((task, count - number))
                    break
                self._give(member_id, task, is_active=False)
        queue = self._queue()
        rest.sort(key=lambda each: (java_string_key(each[0][0]), each[0][1]), reverse=True)
        for task, missing in rest:
            for _ in range(missing):
                if not self._put_copy(queue, task):
                    break

    def _former(self, task: Task) -> str | None:
        """A member that knows the task, and has room for a copy of it."""
        member_id = self._ran.get(task)
        if (
            member_id is not None
            and task not in self._process_of(member_id).tasks
            and self._is_below(member_id, self._quota)
        ):
            return member_id
        member_id = self._least_loaded(self._kept.get(task, ()), task)
        if member_id is not None and self._is_below(member_id, self._quota):
            return member_id
        return None

    def _put_copy(self, queue: JavaPriorityQueue[_Process], task: Task) -> bool:
        """Put a copy into the least loaded process that has none; whether there is such a one."""
        passed: list[_Process] = []
        is_found = False
        while len(queue) and not is_found:
            process = queue.poll()
            passed.append(process)
            if task not in process.tasks:
                count = process.add_to_least_loaded(task, is_active=False)
                self._quota.has_grown(count)
                is_found = True
        for process in reversed(passed):
            queue.add(process)
        return is_found


def _tasks_of(numbers: TaskNumbers) -> list[Task]:
    return [(name, number) for name, each in numbers.items() for number in sorted(each)]


def _all_tasks(subtopologies: Mapping[str, AskedSubtopology]) -> list[Task]:
    return [
        (name, number) for name, each in subtopologies.items() for number in range(each.task_count)
    ]


def _by_subtopology(tasks: Sequence[Task]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for name, number in tasks:
        found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}


def _candidates(members: Mapping[str, AskingMember]) -> dict[Task, list[str]]:
    """Who has a copy of each task: first who keeps one, then who reports to have one.

    Source: collectStandbyCandidates and rankStandbyCandidates.
    """
    found: dict[Task, list[tuple[bool, int, str]]] = {}
    for member_id, member in members.items():
        for name, number in _tasks_of(member.standby):
            offset = member.offsets.get(name, {}).get(number, 0)
            found.setdefault((name, number), []).append((False, -offset, member_id))
        for name, offsets in member.offsets.items():
            for number, offset in offsets.items():
                if number not in member.standby.get(name, ()):
                    found.setdefault((name, number), []).append((True, -offset, member_id))
    return {
        task: [each[2] for each in sorted(listed, key=lambda each: each[:2])]
        for task, listed in found.items()
    }


def _process_order(names: list[str], room: int, *, puts_last: bool) -> list[str]:
    """Processes in the order of a HashMap made for `room`.

    It is filled by `putIfAbsent`, which puts a key last into its bucket, or by `computeIfAbsent`,
    which puts it first, and grows one key later.

    Source: java.util.HashMap.tableSizeFor, resize, putVal and computeIfAbsent.
    """
    capacity = 1
    while capacity < room:
        capacity *= 2
    for size in range(len(names)):
        if size + puts_last > int(capacity * _FULL_TABLE):
            capacity *= 2
    return java_hash_order(names if puts_last else reversed(names), capacity)


def assign_tasks(
    members: Mapping[str, AskingMember],
    subtopologies: Mapping[str, AskedSubtopology],
    standby_count: int,
    *,
    is_early: bool = False,
) -> dict[str, AssignedTasks]:
    """What each member shall have.

    Args:
        members: By id, in the order of Kafka's map; none makes an empty assignment.
        subtopologies: By id, ascending by UTF-16 code units.
        standby_count: Copies of each task with state, at least 0.
        is_early: Whether as 4.2 and 4.3 do it: processes in the order of another map, and a task
            whose first former holder cannot have it goes to none of the others.

    Returns:
        Tasks for every member, also where it has none.

    Source: StickyTaskAssignor.assign.
    """
    if not members:
        return {}
    return _Assigning(members, subtopologies, standby_count, is_early=is_early).run()
