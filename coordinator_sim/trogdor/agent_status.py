"""The answer to `GET /agent/status`, written and read anew only as far as it has changed.

An agent tells all its workers at each heartbeat, and those that are over stay with it until it
ends: a node that has run 10,000 tasks tells 10,000 workers a second.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, inspect

from coordinator_sim.errors import UNREADABLE_JSON
from coordinator_sim.trogdor import jackson, scalars
from coordinator_sim.trogdor.java_numbers import LONG_BITS
from coordinator_sim.trogdor.messages import AgentStatusResponse
from coordinator_sim.trogdor.states import WorkerState

_LEAST: Final = -(1 << (LONG_BITS - 1))
_LONG: Final = inspect.IntType()


class _Apart(
    Struct, frozen=True, kw_only=True, gc=False, rename="camel", forbid_unknown_fields=True
):
    """An `AgentStatusResponse` whose workers are known by their bytes alone."""

    server_start_ms: Annotated[int, Meta(ge=_LEAST, le=-1 - _LEAST)] = 0
    workers: dict[str, Raw] = {}


_APART: Final = msgspec.json.Decoder(_Apart)


class StatusWriter:
    """Writes the status of one agent: a worker that is the same value is written once."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[WorkerState, bytes]] = {}

    def write(self, started_ms: int, workers: dict[int, WorkerState]) -> bytes:
        """The JSON of an `AgentStatusResponse`.

        Args:
            started_ms: When the agent began.
            workers: Worker id -> worker, ascending by id.
        """
        before = self._written
        written = self._written = {}
        for worker_id, state in workers.items():
            known = before.get(worker_id)
            if known is None or known[0] is not state:
                known = (state, b'"%d":%b' % (worker_id, jackson.write(state)))
            written[worker_id] = known
        bare = jackson.write(AgentStatusResponse(server_start_ms=started_ms))
        if not written:
            return bare
        told = b",".join([text for _, text in written.values()])
        return b'%b,"workers":{%b}}' % (bare[:-1], told)


class StatusReader:
    """Reads the statuses of one agent; a worker with unchanged bytes keeps its earlier value.

    DEVIATION: if an answer has the same worker twice, Jackson reads both, and refuses the answer
    when the first is malformed; here only the last is read.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[bytes, int, WorkerState]] = {}

    def read(self, body: bytes) -> dict[int, WorkerState]:
        """The workers of an answer, ascending by id.

        Raises:
            TrogdorRefusal: it is none; see `jackson.read`.
        """
        try:
            apart = _APART.decode(body)
        except UNREADABLE_JSON:
            # What only Jackson takes, such as comments, and what nobody takes.
            return dict(jackson.read(body, AgentStatusResponse).workers)
        before = self._read
        read: dict[str, tuple[bytes, int, WorkerState]] = {}
        workers: dict[int, WorkerState] = {}
        latest, is_ascending = _LEAST - 1, True
        for key, raw in apart.workers.items():
            told = bytes(raw)
            known = before.get(key)
            if known is None or known[0] != told:
                known = (told, scalars.as_key(key, _LONG), jackson.read(told, WorkerState))
            read[key] = known
            _, worker_id, workers[worker_id] = known
            is_ascending = is_ascending and latest < worker_id
            latest = worker_id
        self._read = read
        return workers if is_ascending else dict(sorted(workers.items()))
