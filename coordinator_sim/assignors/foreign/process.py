"""Assignors that are processes: one question and one answer a line, as JSON."""

import shlex
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.assignors.foreign import contract
from coordinator_sim.assignors.foreign.line_process import LineProcess, running
from coordinator_sim.errors import UNREADABLE_JSON, ConfigError

_SHOWN_BYTES: Final = 200


class _Question(Struct, frozen=True):
    assignor: str
    topics: contract.Topics
    members: tuple[contract.Member, ...]


class _Reply(Struct, frozen=True):
    assigned: dict[str, list[tuple[str, int]]] | None = None
    error: str | None = None


class AssignorProcess(LineProcess):
    """A process that assigns, started with the first question and asked again and again."""

    def ask(self, topics: contract.Topics, members: tuple[contract.Member, ...]) -> contract.Answer:
        """Return its answer.

        Raises:
            AssignorFault: the process ends, takes too long, says an error, or no JSON answer.
        """
        question = _Question(self._own.name, topics, members)
        line = self.exchange(msgspec.json.encode(question))
        try:
            reply = msgspec.json.decode(line, type=_Reply)
        except UNREADABLE_JSON as error:
            shown = line[:_SHOWN_BYTES].decode("utf-8", "replace")
            raise contract.AssignorFault(
                f"assignor {self._own.name!r} answers {shown!r}: {error}; wants one line as "
                '{"assigned": {"consumer-1": [["orders", 0]]}}'
            ) from error
        if reply.error is not None:
            raise contract.AssignorFault(f"assignor {self._own.name!r} refuses: {reply.error}")
        if reply.assigned is None:
            raise contract.AssignorFault(
                f"assignor {self._own.name!r} answers without `assigned` and without `error`"
            )
        return reply.assigned


def process_function(own: contract.OwnAssignor) -> contract.AssignFunction:
    """Return a function that asks the process, which is shared by all members that ask."""

    def ask(topics: contract.Topics, members: tuple[contract.Member, ...]) -> contract.Answer:
        return running(own, _started).ask(topics, members)

    return ask


def _started(own: contract.OwnAssignor) -> AssignorProcess:
    try:
        words = shlex.split(own.target)
    except ValueError as error:
        raise ConfigError(f"assignor {own.name!r}: {own.target!r}: {error}") from error
    return AssignorProcess(own, words)
