"""A Trogdor that writes down what a case does with it."""

import msgspec

from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Reply, Trogdor


class Scribe:
    """A `Trogdor` that passes everything on, and keeps a transcript.

    Args:
        trogdor: The other one.
    """

    def __init__(self, trogdor: Trogdor) -> None:
        self._trogdor = trogdor
        self.transcript: list[str] = []

    @property
    def now_ms(self) -> int:
        """The present."""
        return self._trogdor.now_ms

    @property
    def slack_ms(self) -> int:
        """See `Trogdor.slack_ms`."""
        return self._trogdor.slack_ms

    @property
    def late_ms(self) -> int:
        """See `Trogdor.late_ms`."""
        return self._trogdor.late_ms

    @property
    def bootstrap(self) -> str:
        """See `Trogdor.bootstrap`."""
        return self._trogdor.bootstrap

    def members(self, group_id: str) -> list[Member]:
        """The members of a group."""
        found = self._trogdor.members(group_id)
        self._note(f"members of {group_id}: {_text(found)}")
        return found

    def at(self, at_ms: int) -> None:
        """Let time pass."""
        self._trogdor.at(at_ms)

    def coordinator(self, method: str, target: str, body: Json = None) -> Reply:
        """Ask the coordinator."""
        reply = self._trogdor.coordinator(method, target, body)
        self._asked(method, target, body, reply)
        return reply

    def agent(self, node: str, method: str, target: str, body: Json = None) -> Reply:
        """Ask an agent."""
        reply = self._trogdor.agent(node, method, target, body)
        self._asked(method, f"{node} {target}", body, reply)
        return reply

    def kill_agent(self, node: str) -> None:
        """End an agent's process."""
        self._note(f"kill the agent of {node}")
        self._trogdor.kill_agent(node)

    def start_agent(self, node: str) -> None:
        """Start an agent."""
        self._note(f"start the agent of {node}")
        self._trogdor.start_agent(node)

    def commands(self, node: str) -> list[str]:
        """The commands that were run on a node."""
        found = self._trogdor.commands(node)
        self._note(f"commands of {node}: {'; '.join(found)}")
        return found

    def calls(self, node: str, worker_id: int) -> dict[str, int]:
        """How often a worker's work was started and stopped."""
        found = self._trogdor.calls(node, worker_id)
        self._note(f"calls of worker {worker_id} on {node}: {found}")
        return found

    def status_requests(self, node: str) -> int:
        """How often the agent of a node was asked for its workers."""
        found = self._trogdor.status_requests(node)
        self._note(f"{node} was asked {found} times")
        return found

    def file(self, path: str) -> bytes | None:
        """The content of a file."""
        found = self._trogdor.file(path)
        self._note(f"{path}: {found!r}")
        return found

    def _asked(self, method: str, target: str, body: Json, reply: Reply) -> None:
        asked = "" if body is None else f" {_text(body)}"
        self._note(f"{method} {target}{asked} -> {reply.status} {_text(reply.body)}")

    def _note(self, line: str) -> None:
        self.transcript.append(f"{self._trogdor.now_ms:>9} {line}")


def _text(body: Json) -> str:
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()
