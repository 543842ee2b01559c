"""One member's next step towards its target: the tasks that it keeps, gives up and gets.

Only the member whose heartbeat is handled moves. An active task is given to it when no process runs
it, a copy when none of the same process has the task.

Source: kafka 4.4, group-coordinator/.../streams/CurrentAssignmentBuilder.java.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.streams.member import MemberState, StreamsGroupMember
from coordinator_sim.coordinator.streams.tasks import (
    NO_TASKS,
    NOTHING_HELD,
    HeldTasks,
    Tasks,
    TaskSet,
    merged,
)

Task = tuple[str, int]
Mutable = dict[str, set[int]]


class TaskOwners(Struct, frozen=True):
    """Which processes have a task.

    Args:
        active: The process that runs a task; None for none.
        standby: The processes that keep a copy.
        warmup: The processes that make one.
    """

    active: Callable[[str, int], str | None]
    standby: Callable[[str, int], frozenset[str] | set[str]]
    warmup: Callable[[str, int], frozenset[str] | set[str]]


class Difference(Struct, frozen=True):
    """Tasks of one role: what is kept, given up and got, and whether some are not free yet."""

    assigned: Mutable
    revoked: Mutable
    granted: Mutable
    is_unreleased: bool


class CurrentAssignmentBuilder(Struct, frozen=True):
    """A heartbeat that moves its member.

    Args:
        member: As it is, with what the heartbeat says of it.
        epoch: Of the target.
        target: What it shall have.
        owned: What it reports to have; None when it reports nothing.
        owners: Who has which task.
        swaps_roles: Whether a member may turn a copy of its own into an active task, and back,
            without giving it up first.
    """

    member: StreamsGroupMember
    epoch: int
    target: Tasks
    owned: Tasks | None
    owners: TaskOwners
    swaps_roles: bool

    def build(self) -> StreamsGroupMember | None:
        """The member after the step; None for one that must abandon all and join again."""
        member = self.member
        match member.state:
            case MemberState.STABLE:
                return member if member.member_epoch == self.epoch else self._next()
            case MemberState.UNREVOKED_TASKS:
                if self._has_not_released(member.pending_revocation):
                    return member
                return self._next(member.member_epoch + 1)
            case MemberState.UNRELEASED_TASKS:
                return self._next()
            case MemberState.UNKNOWN:
                if self.owned is None or not self.owned.is_empty:
                    return None
                return self._next(self.epoch)

    def _has_not_released(self, tasks: HeldTasks) -> bool:
        return self.owned is None or self.owned.has_any_of(tasks)

    def _next(self, epoch: int | None = None) -> StreamsGroupMember:
        """Go towards the target; `epoch` is kept while tasks are to be given up.

        Source: CurrentAssignmentBuilder.computeNextAssignment and buildNewMember.
        """
        held, target = self.member.assigned, self.target
        active = self._difference(held.active, target.active, self._is_unreleased_active)
        standby = self._difference(held.standby, target.standby, self._is_unreleased_standby)
        warmup = self._difference(held.warmup, target.warmup, self._is_unreleased_warmup)
        if self.swaps_roles:
            _demote(held, standby)
            _convert(held.standby, standby, warmup)
            _convert(held.warmup, warmup, standby)
            self._drop_promoted(held.standby, standby)
            self._drop_promoted(held.warmup, warmup)
        pending = HeldTasks(
            active=_with_epochs(active.revoked, held, self.epoch),
            standby=_frozen(standby.revoked),
            warmup=_frozen(warmup.revoked),
        )
        is_revoking = not pending.is_empty and self._has_not_released(pending)
        if self.swaps_roles:
            for copies, change in ((held.standby, standby), (held.warmup, warmup)):
                self._keep_promoted(copies, change, active, is_revoking=is_revoking)
        assigned = HeldTasks(
            active=_with_epochs(active.assigned, held, self.epoch),
            standby=_frozen(standby.assigned),
            warmup=_frozen(warmup.assigned),
        )
        if is_revoking:
            kept = self.member.member_epoch if epoch is None else epoch
            return self._stepped(kept, MemberState.UNREVOKED_TASKS, assigned, pending)
        granted = HeldTasks(
            active=_with_epochs(active.granted, NOTHING_HELD, self.epoch),
            standby=_frozen(standby.granted),
            warmup=_frozen(warmup.granted),
        )
        waits = active.is_unreleased or standby.is_unreleased or warmup.is_unreleased
        state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
        return self._stepped(self.epoch, state, merged(assigned, granted), NOTHING_HELD)

    def _stepped(
        self, epoch: int, state: MemberState, assigned: HeldTasks, pending: HeldTasks
    ) -> StreamsGroupMember:
        return replace(
            self.member.moved(epoch), state=state, assigned=assigned, pending_revocation=pending
        )

    def _difference(
        self,
        held: Mapping[str, Mapping[int, int] | frozenset[int]],
        target: TaskSet,
        is_unreleased: Callable[[str, int], bool],
    ) -> Difference:
        """Source: CurrentAssignmentBuilder.computeAssignmentDifference."""
        change = Difference({}, {}, {}, is_unreleased=False)
        waits = False
        for name in dict.fromkeys((*target, *held)):
            have, want = set(held.get(name, ())), target.get(name, NO_TASKS)
            missing = want - have
            free = {number for number in missing if not is_unreleased(name, number)}
            waits = waits or len(free) < len(missing)
            for part, numbers in (
                (change.assigned, have & want),
                (change.revoked, have - want),
                (change.granted, free),
            ):
                if numbers:
                    part[name] = set(numbers)
        return replace(change, is_unreleased=waits)

    # -- who has a task ----------------------------------------------------------------------

    def _is_unreleased_active(self, name: str, number: int) -> bool:
        owners, held = self.owners, self.member.assigned
        return (
            owners.active(name, number) is not None
            or self._is_elsewhere_here(owners.standby(name, number), held.standby, (name, number))
            or self._is_elsewhere_here(owners.warmup(name, number), held.warmup, (name, number))
        )

    def _is_unreleased_standby(self, name: str, number: int) -> bool:
        owners, held = self.owners, self.member.assigned
        own = self.swaps_roles and number in held.active.get(name, {})
        return (
            (owners.active(name, number) == self.member.process_id and not own)
            or self.member.process_id in owners.standby(name, number)
            or self._is_elsewhere_here(owners.warmup(name, number), held.warmup, (name, number))
        )

    def _is_unreleased_warmup(self, name: str, number: int) -> bool:
        owners, held = self.owners, self.member.assigned
        return (
            owners.active(name, number) == self.member.process_id
            or self._is_elsewhere_here(owners.standby(name, number), held.standby, (name, number))
            or self.member.process_id in owners.warmup(name, number)
        )

    def _is_elsewhere_here(
        self, processes: frozenset[str] | set[str], held: TaskSet, task: Task
    ) -> bool:
        """Whether the process has that copy already, and in another member where that counts."""
        name, number = task
        own = self.swaps_roles and number in held.get(name, NO_TASKS)
        return self.member.process_id in processes and not own

    # -- roles -------------------------------------------------------------------------------

    def _drop_promoted(self, copies: TaskSet, change: Difference) -> None:
        """A copy that becomes an active task is not given up."""
        for name, numbers in copies.items():
            for number in numbers & self.target.active.get(name, NO_TASKS):
                _discard(change.revoked, name, number)

    def _keep_promoted(
        self, copies: TaskSet, change: Difference, active: Difference, *, is_revoking: bool
    ) -> None:
        """A copy that is to become an active task stays one until it does."""
        for name, numbers in copies.items():
            granted = set() if is_revoking else active.granted.get(name, set())
            staying = (numbers & self.target.active.get(name, NO_TASKS)) - granted
            if staying:
                change.assigned.setdefault(name, set()).update(staying)


def _demote(held: HeldTasks, standby: Difference) -> None:
    """Grant a copy immediately where the member runs the same task as active."""
    for name, epochs in held.active.items():
        for number in epochs:
            _grant_now(standby, name, number)


def _convert(copies: TaskSet, outgoing: Difference, incoming: Difference) -> None:
    """A copy that changes between standby and warm-up does so at once."""
    for name, numbers in copies.items():
        for number in numbers:
            if _grant_now(incoming, name, number):
                _discard(outgoing.revoked, name, number)


def _grant_now(change: Difference, name: str, number: int) -> bool:
    if number not in change.granted.get(name, ()):
        return False
    _discard(change.granted, name, number)
    change.assigned.setdefault(name, set()).add(number)
    return True


def _discard(tasks: Mutable, name: str, number: int) -> None:
    numbers = tasks.get(name)
    if numbers is None:
        return
    numbers.discard(number)
    if not numbers:
        del tasks[name]


def _frozen(tasks: Mutable) -> dict[str, frozenset[int]]:
    return {name: frozenset(numbers) for name, numbers in tasks.items()}


def _with_epochs(tasks: Mutable, held: HeldTasks, epoch: int) -> dict[str, dict[int, int]]:
    """Tasks with the epochs at which the member got them; those that are new have this one."""
    return {
        name: {number: held.active.get(name, {}).get(number, epoch) for number in sorted(numbers)}
        for name, numbers in tasks.items()
    }
