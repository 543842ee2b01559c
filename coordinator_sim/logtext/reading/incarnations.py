"""Numbers the incarnations of groups: one per life of a group id.

Generations restart when a group vanishes and returns under its name, so a generation alone
is ambiguous: (group, incarnation, generation) is not.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from coordinator_sim.trace.events import Event, Source, TraceEvent

_AFTER_DEATH: Final = frozenset({Event.GROUP_DEAD, Event.GROUP_UNLOADED, Event.OFFSET_TOMBSTONE})
"""Events that may follow a group's end without starting it anew."""
_CLIENT_LOGS: Final = frozenset({Source.CONSUMER_LOG, Source.CONNECT_LOG})
_REQUESTS: Final = frozenset({Source.REQUEST_LOG, Source.WIRE})
_ANSWERED: Final = frozenset({Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY})
"""Events of requests that tell a coordinator's generation; the others have that of a client."""


@dataclass(slots=True)
class _Life:
    incarnation: int = 0
    generation: int = -1
    is_over: bool = False


class IncarnationCounter:
    """Numbers the incarnations of every group of one cluster, from 0.

    A new incarnation begins with the first event after a group's death, and when a coordinator logs
    a lower generation than before. Late lines of clients and requests do not count: a client's
    generation may be one behind.
    """

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}

    def number(self, event: TraceEvent) -> TraceEvent:
        """Return the event with its incarnation; events must come in the order they happened."""
        if event.group_id is None:
            return event
        life = self._lives.get(event.group_id)
        if life is None:
            life = self._lives[event.group_id] = _Life()
        self._follow(life, event)
        if life.incarnation == event.incarnation:
            return event
        return msgspec.structs.replace(event, incarnation=life.incarnation)

    def _follow(self, life: _Life, event: TraceEvent) -> None:
        if event.source in _CLIENT_LOGS or event.event is Event.UNPARSED:
            return
        if event.source in _REQUESTS and event.event not in _ANSWERED:
            if life.is_over and event.event is Event.JOIN_REQ:
                life.incarnation, life.generation, life.is_over = life.incarnation + 1, -1, False
            return
        if life.is_over and event.event not in _AFTER_DEATH:
            life.incarnation += 1
            life.generation = -1
            life.is_over = False
        if event.event is Event.GROUP_DEAD:
            life.is_over = True
        elif event.generation is not None and not life.is_over:
            if event.generation < life.generation:
                life.incarnation += 1
            life.generation = event.generation
