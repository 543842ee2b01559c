"""The cost of redistributing work: moves, needless moves, standstill, unowned work.

The rounds and absences of a run are taken as they are; the strategies are this project's own.
"""

from collections import Counter
from itertools import pairwise, zip_longest
from statistics import median_low

from msgspec import Struct

from coordinator_sim.replay.course import Absence, Course, Round, Seat
from coordinator_sim.replay.strategies import (
    Owners,
    Result,
    Strategy,
    fewest_moves,
    moves_between,
)
from coordinator_sim.trace.window import ALWAYS, Window


class SharingCosts(Struct, frozen=True, kw_only=True):
    """Costs of one strategy over one run; durations are milliseconds.

    Args:
        strategy: Assignor or Connect protocol.
        items: Partitions, or connectors and tasks.
        rebalances: Rebalances of the run that the strategy does not ask for itself.
        follow_ups: Further rebalances that it asks for.
        moved: Items that changed their owner from one finished hand-over to the next.
        needless: Moves beyond the fewest that a balanced result needs; None where members differ in
            their subscriptions.
        paused_ms: Time in which members of eager rounds that had worked did not, summed over them.
        stopped_ms: Time in which no member worked, from the first assignment on.
        unowned_ms: Time without a working owner, summed over the items that ever had one.
        interrupted: How often an item lost a working owner, summed over the items.
        longest_ms: Longest time from such a loss to the next working owner of the item.
    """

    strategy: str
    items: int
    rebalances: int = 0
    follow_ups: int = 0
    moved: int = 0
    needless: int | None = 0
    paused_ms: int = 0
    stopped_ms: int = 0
    unowned_ms: int = 0
    interrupted: int = 0
    longest_ms: int = 0

    def plus(self, other: "SharingCosts") -> "SharingCosts":
        """Return the sum with the costs of a later part of the same group's trace."""
        unknown = self.needless is None or other.needless is None
        return SharingCosts(
            strategy=self.strategy,
            items=max(self.items, other.items),
            rebalances=self.rebalances + other.rebalances,
            follow_ups=self.follow_ups + other.follow_ups,
            moved=self.moved + other.moved,
            needless=None if unknown else (self.needless or 0) + (other.needless or 0),
            paused_ms=self.paused_ms + other.paused_ms,
            stopped_ms=self.stopped_ms + other.stopped_ms,
            unowned_ms=self.unowned_ms + other.unowned_ms,
            interrupted=self.interrupted + other.interrupted,
            longest_ms=max(self.longest_ms, other.longest_ms),
        )


def sharing_costs(
    course: Course,
    strategy: Strategy,
    until_ms: int,
    dropped: set[object],
    *,
    is_new: bool,
    window: Window = ALWAYS,
) -> SharingCosts:
    """Return the costs of a strategy over one run, up to `until_ms`.

    Args:
        course: The run.
        strategy: Shares the work out.
        until_ms: Where the run ends, milliseconds of the trace.
        dropped: Gets the items that lost a working owner.
        is_new: Whether nobody worked before the run, so that an item counts from its first owner
            on; otherwise all had one.
        window: Only rounds that begin within it cost, each up to the next one.
    """
    owned = 0 if is_new else strategy.size
    return _Ledger(course, strategy, until_ms, dropped, owned_before=owned).run(window)


class _Ledger:
    """Goes through the rounds of a run once and adds up.

    Members of an eager group stop working when they rejoin, and work again when the leader's
    assignment comes. Where no line tells when one rejoined, it did so as the rebalance began.
    """

    def __init__(
        self,
        course: Course,
        strategy: Strategy,
        until_ms: int,
        dropped: set[object],
        *,
        owned_before: int,
    ) -> None:
        self._strategy = strategy
        self._rounds = _own_rounds(course.rounds, is_connect=strategy.is_connect)
        self._until_ms = until_ms
        self._absences = sorted(course.absences, key=lambda each: each.from_ms)
        self._next_absence = 0
        self._away: list[Absence] = []
        self._usual_ms = _usual_length_ms(self._rounds)
        self._owners: Owners = {}
        self._loads: Counter[str] = Counter()
        self._settled: Owners = {}
        self._seats: tuple[Seat, ...] = ()
        self._now_ms = self._rounds[0].start_ms if self._rounds else until_ms
        self._counts = False
        self._owned_before = owned_before
        self._worked: set[object] = set()
        self._pausing: dict[str, int] = {}
        self._paused_ms = self._stopped_ms = self._unowned_ms = 0
        self._moved = self._needless = self._follow_ups = 0
        self._dropped = dropped
        self._is_shown = False
        self._since: dict[object, int] = {}
        self._gone: dict[str, int] = {}
        self._interrupted = self._longest_ms = 0

    def run(self, window: Window) -> SharingCosts:
        """Return the costs of the rounds that begin within a window."""
        shown = 0
        for round_, following in zip_longest(self._rounds, self._rounds[1:]):
            next_ms = self._until_ms if following is None else following.start_ms
            self._go(round_.start_ms)
            self._is_shown = window.holds_ms(round_.start_ms)
            shown += self._is_shown
            self._begin(round_)
            self._rejoin(round_, next_ms if round_.sync_ms is None else round_.sync_ms)
            if round_.sync_ms is not None and round_.seats:
                self._go(round_.sync_ms)
                self._hand_out(next_ms)
            if round_.is_empty:
                self._counts = False
                self._own({})
                self._since.clear()
                self._pausing.clear()
        self._go(self._until_ms)
        for since_ms in self._since.values():
            self._lasts(self._until_ms - since_ms)
        return SharingCosts(
            strategy=self._strategy.name,
            items=self._strategy.size,
            rebalances=shown,
            follow_ups=self._follow_ups,
            moved=self._moved,
            needless=self._needless if self._strategy.is_uniform else None,
            paused_ms=self._paused_ms,
            stopped_ms=self._stopped_ms,
            unowned_ms=self._unowned_ms,
            interrupted=self._interrupted,
            longest_ms=self._longest_ms,
        )

    def _begin(self, round_: Round) -> None:
        self._counts = True
        self._seats = round_.seats
        if not self._strategy.is_cooperative:
            later = {key for key, at_ms in round_.rejoins.items() if at_ms > round_.start_ms}
            for key in round_.rejoins.keys() - later:
                self._pause(key)
            self._own({item: key for item, key in self._owners.items() if key in later})
        elif round_.seats:
            keys = {seat.key for seat in round_.seats}
            self._own({item: key for item, key in self._owners.items() if key in keys})

    def _pause(self, key: str) -> None:
        """Note that a member rejoins, and does not work until its next assignment."""
        if self._loads[key]:
            self._pausing.setdefault(key, self._now_ms)

    def _rejoin(self, round_: Round, until_ms: int) -> None:
        """Have members stop one by one that rejoin after their eager round has begun."""
        if self._strategy.is_cooperative:
            return
        items: dict[str, list[object]] = {}
        for item, key in self._owners.items():
            items.setdefault(key, []).append(item)
        for key, at_ms in sorted(round_.rejoins.items(), key=lambda entry: entry[1]):
            if key in items and at_ms < until_ms:
                self._go(at_ms)
                self._pause(key)
                for item in items[key]:
                    del self._owners[item]
                    self._interrupt(item, key)
                self._loads[key] = 0

    def _hand_out(self, next_ms: int) -> None:
        """Share out now, and again for as long as the strategy asks and no other round begins."""
        for seat in self._seats:
            paused_ms = self._now_ms - self._pausing.pop(seat.key, self._now_ms)
            self._paused_ms += paused_ms * self._is_shown
        self._pausing.clear()
        while True:
            result = self._strategy.share(self._seats, self._owners, self._now_ms)
            self._own(result.owners)
            begins_ms = self._now_ms + (result.delay_ms if result.is_done else 0)
            ends_ms = begins_ms + self._usual_ms
            asks = not result.is_done or result.delay_ms > 0
            if not asks:
                self._settle(result)
            if not asks or ends_ms >= next_ms:
                return
            self._follow_ups += self._is_shown
            self._go(ends_ms)

    def _settle(self, result: Result) -> None:
        """Compare with the last finished hand-over."""
        if self._settled and self._is_shown:
            moved = moves_between(self._settled, result.owners)
            keys = [seat.key for seat in self._seats]
            self._moved += moved
            self._needless += max(0, moved - fewest_moves(self._settled, result.owners, keys))
        self._settled = result.owners

    def _own(self, owners: Owners) -> None:
        for item, key in self._owners.items():
            if owners.get(item) != key:
                self._interrupt(item, key)
        for item in owners:
            since_ms = self._since.pop(item, None)
            if since_ms is not None:
                self._lasts(self._now_ms - since_ms)
        self._owners = owners
        self._worked.update(owners)
        self._loads = Counter(owners.values())

    def _interrupt(self, item: object, key: str) -> None:
        if self._is_shown:
            self._interrupted += 1
            self._dropped.add(item)
        self._since[item] = self._gone.get(key, self._now_ms)

    def _lasts(self, length_ms: int) -> None:
        """Note for how long an item had no working owner."""
        if self._is_shown:
            self._longest_ms = max(self._longest_ms, length_ms)

    def _go(self, to_ms: int) -> None:
        """Go on in time, and count what nobody works on meanwhile."""
        from_ms, self._now_ms = self._now_ms, max(self._now_ms, to_ms)
        if not self._counts or self._now_ms <= from_ms:
            return
        length_ms = self._now_ms - from_ms
        ever = max(self._owned_before, len(self._worked))
        idle_ms = self._idle_ms(from_ms)
        if not self._is_shown:
            return
        if ever and not self._owners:
            self._stopped_ms += length_ms
        self._unowned_ms += (ever - len(self._owners)) * length_ms + idle_ms

    def _idle_ms(self, from_ms: int) -> int:
        """Return the time that items of absent members are idle since `from_ms`, summed up."""
        while (
            self._next_absence < len(self._absences)
            and self._absences[self._next_absence].from_ms < self._now_ms
        ):
            self._leave_idle(self._absences[self._next_absence])
            self._next_absence += 1
        idle_ms = 0
        for each in self._away:
            overlap_ms = min(each.until_ms, self._now_ms) - max(each.from_ms, from_ms)
            idle_ms += self._loads[each.key] * max(0, overlap_ms)
        self._away = [each for each in self._away if each.until_ms > self._now_ms]
        return idle_ms

    def _leave_idle(self, absence: Absence) -> None:
        """Note that a process is away: what it has is idle until it is back or removed."""
        self._away.append(absence)
        if absence.is_dead:
            self._gone[absence.key] = absence.from_ms
            return
        self._gone.pop(absence.key, None)
        own = [item for item, key in self._owners.items() if key == absence.key]
        if own and self._is_shown:
            self._interrupted += len(own)
            self._dropped.update(own)
            self._lasts(absence.length_ms)


def _own_rounds(rounds: list[Round], *, is_connect: bool) -> list[Round]:
    """Return the rounds that no strategy asked for.

    Left out are the second rounds of cooperative consumers and, of a Connect cluster, all rounds
    with the same workers as before: the protocol's own, and changes of configuration.
    """
    own: list[Round] = []
    workers: frozenset[str] | None = None
    for each in rounds:
        members = frozenset(seat.member_id for seat in each.seats)
        is_repeated = is_connect and bool(members) and members == workers
        workers = members or workers
        if not (is_repeated or each.is_follow_up):
            own.append(each)
    return own


def _usual_length_ms(rounds: list[Round]) -> int:
    """Return the usual length of a rebalance of a group that has members; 0 without any."""
    lengths = [
        later.sync_ms - later.start_ms
        for earlier, later in pairwise(rounds)
        if later.sync_ms is not None and not earlier.is_empty
    ]
    return median_low(lengths) if lengths else 0
