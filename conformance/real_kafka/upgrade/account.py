"""The account of a run: what was lost, what was read twice, and whether that was permitted.

Kafka promises at least once. A partition's next owner begins at the group's committed offset, so a
record is read again only if its owner gave the partition up, or died, with a commit behind it. The
rules that follow, each of which is one list of `Account`:

- `lost`: every acknowledged record is read.
- `skipped`: an owner reads offset after offset, from where it began.
- `misplaced`: an owner begins at a commit: no earlier than the last one acknowledged before the
  partition was assigned to it, no later than the last one that was attempted.
- `shared`: a partition has one owner at a time, until it gives it up, loses it or dies.
- `unclean`: who gives a partition up has committed what it read, unless its end is excused.

Excused is who was killed, and who commits automatically: a classic member of Java that rebalances
cooperatively reads on after the commit that precedes a rebalance. So each record that was read
again, `repeats`, must have been read before by such an owner, after its last commit.

Source: kafka 4.4, ConsumerCoordinator.onJoinPrepare, which commits, and onJoinComplete, which
revokes without a commit.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct, field

_END: float = float("inf")


class Event(Struct, frozen=True):
    """An event that a member reports.

    Args:
        at_us: Time in microseconds, of a clock that all members share.
        who: The member, of one life.
        what: `assigned`, `revoked`, `lost`, `read`, `committing`, `committed`, `killed`, `closed`.
        place: The partition, as `TOPIC-PARTITION`; empty where there is none.
        offset: Of the record, or of the commit.
        value: Of the record.
    """

    at_us: int
    who: str
    what: str
    place: str = ""
    offset: int = -1
    value: str = ""


class Holding(Struct):
    """A partition in the hands of one owner, from its assignment to its end.

    Args:
        who: The owner.
        from_us: When it was assigned.
        to_us: When it was given up, lost, or its owner died.
        end: `revoked`, `lost` or `killed`; `held` while it goes on.
        offsets: Offsets read, in order.
        commits: Commits acknowledged to this owner: when, and up to which offset.
        attempts: Offsets of all commits that it tried, acknowledged or not.
    """

    who: str
    from_us: int
    to_us: float = _END
    end: str = "held"
    offsets: list[int] = field(default_factory=list)
    commits: list[tuple[int, int]] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


class Repeat(Struct, frozen=True, kw_only=True):
    """A record that was read again.

    Args:
        who: Who read it again.
        place: Its partition.
        offset: Its offset.
        before: Who had read it before.
        end: How that owner's holding ended.
        is_permitted: Whether that owner had not committed it, and is excused.
    """

    who: str
    place: str
    offset: int
    before: str
    end: str
    is_permitted: bool


class Account(Struct, frozen=True):
    """What became of the records of a run.

    Args:
        produced: How many were acknowledged to the producer.
        lost: Those that nobody read.
        repeats: Those that were read again, each time.
        skipped: Offsets that an owner left out, or read out of order.
        misplaced: Owners that began where no commit was.
        shared: Partitions that had two owners at once.
        unclean: Owners that did not commit all they had read and are not excused.
    """

    produced: int
    lost: list[str]
    repeats: list[Repeat]
    skipped: list[str]
    misplaced: list[str]
    shared: list[str]
    unclean: list[str]

    def faults(self) -> list[str]:
        """Everything that is against the rules; empty of a right run."""
        found = [f"lost {each}" for each in self.lost]
        found += self.skipped + self.misplaced + self.shared + self.unclean
        found += [
            f"{each.who} read {each.place} {each.offset} again after {each.before}"
            for each in self.repeats
            if not each.is_permitted
        ]
        return found


def account_of(
    events: Iterable[Event], acknowledged: Iterable[str], *, commits_itself: bool
) -> Account:
    """Judge a run by what its members told.

    Args:
        events: Of all members.
        acknowledged: Values of the records that the producer knows to be written.
        commits_itself: Whether the members' consumers commit automatically.
    """
    excused = ("killed", "revoked") if commits_itself else ("killed",)
    ordered = sorted(events, key=lambda each: each.at_us)
    written = list(acknowledged)
    seen = {each.value for each in ordered if each.what == "read"}
    holdings = holdings_of(ordered)
    every = [(place, held) for place, chain in holdings.items() for held in chain]
    return Account(
        produced=len(written),
        lost=[each for each in written if each not in seen],
        repeats=[
            each for place, chain in holdings.items() for each in _repeats(place, chain, excused)
        ],
        skipped=[line for place, held in every for line in _skips(place, held)],
        misplaced=[line for place, chain in holdings.items() for line in _beginnings(place, chain)],
        shared=[line for place, chain in holdings.items() for line in _overlaps(place, chain)],
        unclean=[
            f"{held.who} left {place} by {held.end} with {_uncommitted(held)} uncommitted"
            for place, held in every
            if held.end not in excused and _uncommitted(held)
        ],
    )


def holdings_of(ordered: Iterable[Event]) -> dict[str, list[Holding]]:
    """The owners of each partition, by the time at which they got it.

    An interceptor tells of a commit after its partition was given up: it counts for the holding in
    which its records were read.
    """
    chains: dict[str, list[Holding]] = {}
    for each in ordered:
        if each.what == "assigned":
            chains.setdefault(each.place, []).append(Holding(each.who, each.at_us))
            continue
        for place in [each.place] if each.place else list(chains):
            mine = [held for held in chains.get(place, []) if held.who == each.who]
            if mine:
                _take(_meant(mine, each), each)
    return chains


def _meant(mine: list[Holding], event: Event) -> Holding:
    """The holding that an event belongs to: the last, unless a commit fits an earlier one."""
    if event.what == "committed":
        for held in reversed(mine):
            if held.offsets and held.offsets[0] < event.offset <= held.offsets[-1] + 1:
                return held
    return mine[-1]


def _take(held: Holding, event: Event) -> None:
    """Tell a holding what its owner told."""
    if event.what == "read":
        held.offsets.append(event.offset)
    elif event.what == "committing":
        held.attempts.append(event.offset)
    elif event.what == "committed":
        held.attempts.append(event.offset)
        held.commits.append((event.at_us, event.offset))
    elif event.what in ("revoked", "lost", "killed") and held.end == "held":
        held.end, held.to_us = event.what, event.at_us


def _committed(held: Holding) -> int:
    """The offset up to which what its owner read is committed; it has read something."""
    return max([held.offsets[0], *(offset for _, offset in held.commits)])


def _uncommitted(held: Holding) -> int:
    """How many records its owner read after its last acknowledged commit."""
    return max(0, held.offsets[-1] + 1 - _committed(held)) if held.offsets else 0


def _repeats(place: str, chain: list[Holding], excused: Iterable[str]) -> Iterator[Repeat]:
    """The records of a partition that were read again."""
    readers: dict[int, Holding] = {}
    for held in chain:
        for offset in held.offsets:
            before = readers.get(offset)
            if before is not None:
                may = before is not held and before.end in excused
                may = may and offset >= _committed(before)
                yield Repeat(
                    who=held.who,
                    place=place,
                    offset=offset,
                    before=before.who,
                    end=before.end,
                    is_permitted=may,
                )
            readers[offset] = held


def _skips(place: str, held: Holding) -> Iterator[str]:
    """Where an owner did not read the offset behind the last one."""
    for one, other in pairwise(held.offsets):
        if other != one + 1:
            yield f"{held.who} read {place} {other} after {one}"


def _beginnings(place: str, chain: list[Holding]) -> Iterator[str]:
    """Owners that did not begin at what the owners before them had committed."""
    for index, held in enumerate(chain):
        if not held.offsets:
            continue
        before = chain[:index]
        told = [offset for each in before for at, offset in each.commits if at < held.from_us]
        tried = [offset for each in before for offset in each.attempts]
        least, most = max(told, default=0), max(tried, default=0)
        if not least <= held.offsets[0] <= most:
            yield f"{held.who} began {place} at {held.offsets[0]}, committed were {least} to {most}"


def _overlaps(place: str, chain: list[Holding]) -> Iterator[str]:
    """Owners that had a partition before it was given up."""
    for one, other in pairwise(chain):
        if other.from_us < one.to_us:
            yield f"{other.who} got {place} before {one.who} gave it up"
