"""Pairs members that go with members that come: restarts of one process.

A restarted dynamic member is a new member to the coordinator. What a log tells of its identity is
the client id in its member id; where every process has its own, or a new one each time, only time
pairs them.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import Final

from msgspec import Struct

from coordinator_sim.replay.names import split_member_id

NOBODY: Final = ""
"""Key of members whose client id never comes back: pairs among them are made by time alone."""


class Passage(Struct, frozen=True):
    """A member that comes or goes.

    Args:
        at_ms: When; of a failed member, its last sign of life.
        index: Tells members apart.
        client: Its client id; empty where no line tells.
        comes: Whether it comes.
        line_ms: When its line was written: a failure is told long after the last sign of life.
    """

    at_ms: int
    index: int
    client: str
    comes: bool
    line_ms: int = 0


class Restart(Struct, frozen=True):
    """A member that went, and the member that came in its place.

    Args:
        is_by_name: Whether both have one client id; otherwise time alone pairs them.
    """

    gone: Passage
    came: Passage
    is_by_name: bool

    @property
    def away_ms(self) -> int:
        """How long the process was away."""
        return self.came.at_ms - self.gone.at_ms


def client_of(member_id: str | None) -> str:
    """Return the client id inside a member id; empty for a member that no line names."""
    if member_id is None:
        return NOBODY
    parts = split_member_id(member_id)
    return member_id if parts is None else parts[0]


def restarts_in(passages: Iterable[Passage], within_ms: Callable[[Passage], int]) -> list[Restart]:
    """Return the restarts among passages, in order of return.

    Who comes takes the place of the one of its client id that went first and has not been away
    for longer than `within_ms` allows. Each passage counts once, so the time is linear.
    """
    ordered = sorted(passages, key=lambda each: (each.at_ms, each.comes, each.index))
    last_came = {each.client: place for place, each in enumerate(ordered) if each.comes}
    went: set[str] = set()
    waiting: dict[str, deque[Passage]] = {}
    restarts: list[Restart] = []
    for place, passage in enumerate(ordered):
        client = passage.client
        if not passage.comes:
            went.add(client)
            key = client if last_came.get(client, -1) > place else NOBODY
            waiting.setdefault(key, deque()).append(passage)
            continue
        key = client if client in went else NOBODY
        queue = waiting.get(key)
        while queue and passage.at_ms - queue[0].at_ms > within_ms(queue[0]):
            queue.popleft()
        if queue:
            restarts.append(Restart(queue.popleft(), passage, key != NOBODY))
    return restarts


def outlived_in(passages: Iterable[Passage], within_ms: int) -> set[int]:
    """Return the processes that came while those ran that they replaced, and these.

    Passages no more than `within_ms` apart are one turn of events. Where in such a turn as many
    come as go, and at no instant more had gone than had come, nobody waited for a process to stop:
    a deploy that starts a new process first. Who comes and goes in one turn is left out, and so are
    clients that each time came back after they had gone: those were stopped first, by their names.

    Args:
        passages: Who comes and goes; the index is the same for both passages of a process.
        within_ms: Longest time away of a process that keeps its place.
    """
    ordered = sorted(passages, key=lambda each: (each.at_ms, each.comes, each.index))
    steps_of: dict[str, list[int]] = {}
    for each in ordered:
        steps_of.setdefault(each.client, []).append(1 if each.comes else -1)
    returned = {
        client for client, own in steps_of.items() if 1 in own and max(accumulate(own)) <= 0
    }
    ordered = [each for each in ordered if each.client not in returned]
    outlived: set[int] = set()
    turn: list[Passage] = []
    for passage, following in pairwise([*ordered, None]):
        if passage is None:
            continue
        turn.append(passage)
        if following is not None and following.at_ms - passage.at_ms <= within_ms:
            continue
        counts = Counter(each.index for each in turn)
        steps = [1 if each.comes else -1 for each in turn if counts[each.index] == 1]
        extra = list(accumulate(steps))
        if extra and extra[-1] == 0 and min(extra) == 0:
            outlived.update(each.index for each in turn if counts[each.index] == 1)
        turn = []
    return outlived
