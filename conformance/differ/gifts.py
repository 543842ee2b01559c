"""What a small failing program leaves in a folder: text, script, test, diagram, capture."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from pprint import pformat
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.server.pcap import PcapTap
from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.endpoint_play import SentFrame
from coordinator_sim_conformance.differ.loop import Exchange
from coordinator_sim_conformance.differ.scripts import write_script
from coordinator_sim_conformance.differ.story import tell

Json = dict[str, Any]

_FIRST_PORT: Final = 40_000
_NS_IN_MS: Final = 1_000_000
_LENGTH_BYTES: Final = 4
_LINE: Final = 88
_TEST: Final = '''\
"""{reference} and the simulator answer a program of {requests} requests otherwise: {signature}.

    ENDPOINT={reference} pytest {file}
"""

import os

from coordinator_sim_conformance.differ.replay import difference_at

PROFILE = {profile!r}
SCRIPT = {script}


def test_the_endpoint_answers_as_kafka_does() -> None:
    """Fails as long as the endpoint differs."""
    endpoint = os.environ.get("ENDPOINT", {reference!r})
    assert difference_at(endpoint, SCRIPT, PROFILE) is None
'''


class Counterexample(Struct, frozen=True, kw_only=True):
    """A program that an endpoint answers otherwise.

    Args:
        reference: The endpoint's name.
        bootstrap: Its first address.
        profile: Kafka that the simulator was.
        seed: Seed of the program that it comes from.
        commands: The program, as JSON lines.
        exchanges: Both sides, up to and with the command of the difference.
        difference: What differs.
        frames: Everything on the wire.
    """

    reference: str
    bootstrap: tuple[str, int]
    profile: str
    seed: int
    commands: tuple[Json, ...]
    exchanges: tuple[Exchange, ...]
    difference: Difference
    frames: tuple[SentFrame, ...]


def write_gifts(folder: Path, found: Counterexample) -> list[Path]:
    """Write the five files of a counterexample; return their paths. The folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path, Counterexample], object]] = {
        "transcript.txt": lambda path, each: _write(path, transcript(each)),
        "script.jsonl": lambda path, each: write_script(path, each.commands),
        "test_difference.py": lambda path, each: _write(path, [test_of(each, path.name)]),
        "sequence.mmd": lambda path, each: _write(path, diagram(each)),
        "frames.pcap": _write_capture,
    }
    for name, write in writers.items():
        write(folder / name, found)
    return [folder / name for name in writers]


def _write(path: Path, lines: Iterator[str] | Sequence[str]) -> None:
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def transcript(found: Counterexample) -> Iterator[str]:
    """Yield the lines of the exchange, and of what differs."""
    yield from tell(found.exchanges, found.difference, found.reference, shown=len(found.exchanges))


def test_of(found: Counterexample, file: str) -> str:
    """Return a module of pytest that plays the program again."""
    return _TEST.format(
        reference=found.reference,
        requests=sum(command["op"] == "call" for command in found.commands),
        signature=found.difference.signature,
        file=file,
        profile=found.profile,
        script=pformat(list(found.commands), width=_LINE, sort_dicts=False),
    )


# -- the diagram ---------------------------------------------------------------------------


def diagram(found: Counterexample) -> Iterator[str]:
    """Yield the lines of a Mermaid sequence diagram: members, the endpoint, and what differs."""
    who = _Actors()
    steps = list(_steps(found, who))
    yield "sequenceDiagram"
    yield f"    participant B as {_safe(found.reference)}"
    for name, alias in who.names.items():
        yield f"    participant {alias} as {_safe(name)}"
    yield from steps


class _Actors:
    """Aliases of the senders of requests, by member id, or by client id if there is none."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.of_call: dict[int, str] = {}

    def alias(self, command: Json, told: str) -> str:
        """Return the alias of a request's sender.

        Args:
            command: The request.
            told: Member id that its answer tells, if any.
        """
        member_id = command["data"].get("memberId") or told
        name = member_id or f"client {command['clientId']}"
        return self.names.setdefault(name, f"C{len(self.names) + 1}")


def _steps(found: Counterexample, who: _Actors) -> Iterator[str]:
    told = {
        reply["id"]: reply["data"].get("memberId", "")
        for each in found.exchanges
        for reply in each.theirs["replies"]
        if isinstance(reply.get("data"), dict) and reply["api"] == "JoinGroup"
    }
    for each in found.exchanges:
        command = each.command
        if command["op"] == "call":
            alias = who.alias(command, told.get(command["id"], ""))
            who.of_call[command["id"]] = alias
            yield f"    {alias}->>B: {_safe(_asked(command))}"
        for reply in each.theirs["replies"]:
            if "data" in reply:
                alias = who.of_call[reply["id"]]
                yield f"    B-->>{alias}: {_safe(_answered(reply))}"
        if command["op"] == "advance":
            yield f"    Note over B: {command['ms']} ms pass"
    difference = found.difference
    yield (
        f"    Note over B: {_safe(difference.path)} is {_safe(_short(difference.theirs))}, "
        f"Kafka {_safe(found.profile)} answers {_safe(_short(difference.ours))}"
    )


def _asked(command: Json) -> str:
    data = command["data"]
    generation = data.get("generationId", data.get("generationIdOrMemberEpoch"))
    group = f" {data['groupId'][:40]}" if "groupId" in data else ""
    suffix = "" if generation is None else f", generation {generation}"
    return f"{command['api']} {command['v']}{group}{suffix}"


def _answered(reply: Json) -> str:
    data = reply["data"]
    if not isinstance(data, dict):
        return f"{reply['api']}: {data}"
    code = data.get("errorCode")
    words = [] if code is None else [ErrorCode(code).name]
    if data.get("generationId", -1) >= 0:
        words.append(f"generation {data['generationId']}")
    return f"{reply['api']}: {', '.join(words) or 'answered'}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LINE else f"{text[:_LINE]}..."


def _safe(text: str) -> str:
    """Return text without what ends a statement of Mermaid."""
    return text.replace("#", "no. ").replace(";", ",").replace("\n", " ")


# -- the capture ---------------------------------------------------------------------------


def _write_capture(path: Path, found: Counterexample) -> None:
    """Write the frames at their instants, counted from 1970; each socket has a port of its own."""
    now_ms = 0
    tap = PcapTap(path, overwrite=True, now_ns=lambda: now_ms * _NS_IN_MS)
    opened: set[int] = set()
    for each in found.frames:
        now_ms = each.frame.at_ms
        if each.socket not in opened:
            opened.add(each.socket)
            tap.opened(
                each.socket, ("127.0.0.1", _FIRST_PORT + each.socket), _numeric(found.bootstrap)
            )
        body = bytes.fromhex(each.frame.hex)
        data = len(body).to_bytes(_LENGTH_BYTES, "big") + body
        (tap.received if each.frame.direction == "sent" else tap.sent)(each.socket, data)
    for socket in sorted(opened):
        tap.closed(socket)
    tap.finish()


def _numeric(address: tuple[str, int]) -> tuple[str, int]:
    """Return an address that a capture can hold: a name stands for this host."""
    host, port = address
    return (host if host.replace(".", "").isdigit() or ":" in host else "127.0.0.1", port)
