"""Plays a program on a running endpoint in wall time: what it answered, and when.

The endpoint draws member ids of its own. Requests name them in place of the program's, as soon as
the answer that told an id has come; answers are kept as they were.
"""

import selectors
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from msgspec import Struct

from coordinator_sim.harness.harness import START_MS
from coordinator_sim_conformance.differ.timed_programs import Clearance
from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.names import Names
from coordinator_sim_conformance.targets.target import (
    Call,
    ConnectionEnded,
    MalformedAnswer,
    Unsupported,
)
from coordinator_sim_conformance.wire.links import Address, Link

Json = dict[str, Any]

_LOOPBACK: Final = "/127.0.0.1"
_PLACES_TRIED: Final = 200
_READY_S: Final = 30.0
_POLL_S: Final = 0.1
_STARTING: Final = frozenset({14, 15, 16})
"""Errors of a coordinator that is still on its way."""


class Heard(Struct, frozen=True):
    """What came of a request.

    Args:
        command: Index of the command during which it came.
        at_ms: Instant on the program's clock.
        data: Body of the answer; None if the connection ended instead, or no message came.
        problem: What came instead of a message.
    """

    command: int
    at_ms: int
    data: Json | None
    problem: str = ""


class SentFrame(Struct, frozen=True):
    """A frame, the socket that it went through, and the request that it is of."""

    socket: int
    call_id: int
    frame: Frame


@dataclass(slots=True)
class Played:
    """A program's way through an endpoint.

    Attributes:
        heard: Id of a request -> what came of it.
        ids: Member id of the program -> that of the endpoint.
        late_ms: How late the latest request was sent.
        frames: All frames, in order.
    """

    heard: dict[int, Heard] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    late_ms: int = 0
    frames: list[SentFrame] = field(default_factory=list)


class EndpointPlay:
    """Plays one program on an endpoint, in groups that no other play uses.

    Args:
        endpoint: The endpoint.
        label: Part of the names of its groups, another for each play.
        clearance: How late things may be.
        topics: Names of the topics that all programs share: the program's -> the endpoint's.
    """

    def __init__(
        self, endpoint: Endpoint, label: str, clearance: Clearance, topics: Mapping[str, str]
    ) -> None:
        self._endpoint = endpoint
        self._clearance = clearance
        self._names = Names(f"{endpoint.run}-{label}-")
        self._names.topics.update(topics)
        self._topics = {there: here for here, there in topics.items()}
        self._place: Address | None = None
        self._free: list[Link] = []
        self._busy: list[Link] = []
        self._opened = 0
        self._began_s = 0.0
        self._asked: dict[int, Json] = {}
        self.played = Played()

    def play(
        self,
        commands: Sequence[Json],
        drawn: Mapping[int, str],
        expected: Mapping[int, frozenset[int]],
    ) -> Played:
        """Play the commands.

        Args:
            commands: The program; everything but `call` and `advance` is ours alone.
            drawn: Id of a request -> the member id that its answer tells.
            expected: Index of an `advance` -> ids of the requests that are answered by its end.

        Raises:
            DataError: the endpoint does not answer questions beside the program.
        """
        self._prepare(commands)
        due_s = self._began_s = time.monotonic()
        try:
            for index, command in enumerate(commands):
                if command["op"] == "call":
                    late_ms = round((time.monotonic() - due_s) * 1000)
                    self.played.late_ms = max(self.played.late_ms, late_ms)
                    self._send(index, command, drawn)
                elif command["op"] == "advance":
                    due_s += command["ms"] / 1000
                    self._listen(index, due_s, drawn, expected.get(index, frozenset()))
        finally:
            for link in (*self._free, *self._busy):
                link.close()
        return self.played

    def leave(self) -> None:
        """Have the members leave and remove the groups, as far as the endpoint does that.

        Raises:
            ConnectionEnded: the endpoint is gone.
        """
        link = self._endpoint.opened(self._place)
        try:
            for group in self._names.groups.values():
                self._empty(link, group)
            if "DeleteGroups" in self._endpoint.versions:
                version = self._endpoint.best("DeleteGroups", 2)
                groups = [group for group in self._names.groups.values() if group]
                link.ask("DeleteGroups", version, bodies.delete_groups(groups))
                self._endpoint.groups.difference_update(groups)
        finally:
            link.close()

    def _empty(self, link: Link, group: str) -> None:
        if not group or "DescribeGroups" not in self._endpoint.versions:
            return
        version = self._endpoint.best("DescribeGroups", 5)
        described = link.ask("DescribeGroups", version, bodies.describe_groups(version, [group]))
        leaving = self._endpoint.best("LeaveGroup", 5)
        for member in described["groups"][0]["members"]:
            members = [(member["memberId"], None)]
            link.ask("LeaveGroup", leaving, bodies.leave_group(leaving, group, members))

    # -- before ----------------------------------------------------------------------------

    def _prepare(self, commands: Sequence[Json]) -> None:
        """Choose the endpoint's names of all groups, and wait until they are coordinated."""
        for name in dict.fromkeys(_groups_of(commands)):
            self._names.groups[name] = self._new_group(name)
        if "DescribeGroups" in self._endpoint.versions:
            link = self._open()
            for group in filter(None, self._names.groups.values()):
                self._await_ready(link, group)
            self._free.append(link)

    def _new_group(self, group: str) -> str:
        """Return a name of a fresh group whose coordinator is that of the others."""
        if not group:
            return ""
        for attempt in range(_PLACES_TRIED):
            name = f"{self._names.prefix}{group}{f'-{attempt}' if attempt else ''}"
            place = self._endpoint.coordinator_of(name)
            if self._place in {None, place}:
                self._place = place
                self._endpoint.groups.add(name)
                return name
        raise Unsupported(f"no two groups have one coordinator, of {_PLACES_TRIED} names")

    def _await_ready(self, link: Link, group: str) -> None:
        version = self._endpoint.best("DescribeGroups", 5)
        data = bodies.describe_groups(version, [group])
        deadline_s = time.monotonic() + _READY_S
        while link.ask("DescribeGroups", version, data)["groups"][0]["errorCode"] in _STARTING:
            if time.monotonic() > deadline_s:
                raise Unsupported(f"group {group} has no coordinator within {_READY_S:.0f} s")
            time.sleep(_POLL_S)

    # -- sockets ---------------------------------------------------------------------------

    def _open(self) -> Link:
        """Return a new socket whose first request the broker has answered."""
        link = self._endpoint.opened(self._place, watch=self._watch(self._opened))
        self._opened += 1
        link.probe()
        return link

    def _watch(self, socket: int) -> Callable[[Literal["sent", "received"], Call, bytes], None]:
        def keep(direction: Literal["sent", "received"], call: Call, data: bytes) -> None:
            if call.call_id not in self._asked:
                return
            frame = Frame(
                direction=direction,
                api=call.api,
                version=call.version,
                at_ms=self._clock_ms() - START_MS,
                hex=data.hex(),
            )
            self.played.frames.append(SentFrame(socket, call.call_id, frame))

        return keep

    def _clock_ms(self) -> int:
        return START_MS + round((time.monotonic() - self._began_s) * 1000)

    def _send(self, index: int, command: Json, drawn: Mapping[int, str]) -> None:
        data = self._names.there(
            with_ids(command["data"], self.played.ids), group=self._group, topic=self._topic
        )
        call_id = command["id"]
        self._asked[call_id] = command
        call = Call(
            call_id=call_id,
            api=command["api"],
            version=command["v"],
            data=data,
            client_id=command["clientId"],
        )
        link = self._free.pop() if self._free else self._open()
        self._busy.append(link)
        try:
            link.send(call)
        except ConnectionEnded as ended:
            self.played.heard[call_id] = Heard(index, self._clock_ms(), None, str(ended))
        self._take(index, drawn)

    def _group(self, name: str) -> str:
        return self._names.groups[name]

    def _topic(self, name: str) -> str:
        """Return the endpoint's name of a topic that the program's broker does not have."""
        return f"{self._names.prefix}{name}"

    def _listen(
        self, index: int, due_s: float, drawn: Mapping[int, str], expected: frozenset[int]
    ) -> None:
        """Take answers until an instant, and a little longer if one is missing."""
        patience_s = self._clearance.slack_ms / 1000
        while True:
            left_s = due_s - time.monotonic()
            if left_s <= 0 and not expected <= self.played.heard.keys():
                left_s += patience_s
            if left_s <= 0:
                return
            with selectors.DefaultSelector() as selector:
                for link in self._busy:
                    selector.register(link, selectors.EVENT_READ)
                if selector.get_map():
                    selector.select(left_s)
                else:
                    time.sleep(left_s)
            self._take(index, drawn)

    def _take(self, index: int, drawn: Mapping[int, str]) -> None:
        """Take the answers that have come."""
        for link in list(self._busy):
            waiting = [call.call_id for call in link.sent]
            at_ms = self._clock_ms()
            try:
                answers = link.take(at_ms)
            except MalformedAnswer as malformed:
                self._gone(link, index, waiting, str(malformed))
                continue
            for answer in answers:
                here = self._here(answer.call_id, answer.data)
                self.played.heard[answer.call_id] = Heard(index, at_ms, here)
                self._learn(answer.call_id, answer.data, drawn)
            if link.is_closed:
                self._gone(link, index, [call.call_id for call in link.sent], "connection closed")
            elif not link.sent:
                self._busy.remove(link)
                self._free.append(link)

    def _gone(self, link: Link, index: int, waiting: Sequence[int], problem: str) -> None:
        self._busy.remove(link)
        link.close()
        for call_id in waiting:
            self.played.heard.setdefault(call_id, Heard(index, self._clock_ms(), None, problem))

    def _learn(self, call_id: int, data: Json, drawn: Mapping[int, str]) -> None:
        theirs = data.get("memberId")
        ours = drawn.get(call_id)
        if ours is not None and theirs and ours not in self.played.ids:
            self.played.ids[ours] = theirs

    def _here(self, call_id: int, data: Json) -> Json:
        """Return an answer with the program's names of groups and topics."""
        host = f"/{self._busy[0].local_host}"
        named = self._names.here(data, hosts={host: _LOOPBACK})
        if self._asked[call_id]["api"] == "ListGroups":
            # The empty id's group is everybody's.
            named["groups"] = [each for each in named["groups"] if each["groupId"]]
        for group in named.get("groups", ()):
            if group.get("errorMessage"):
                group["errorMessage"] = self._in_words(group["errorMessage"])
        for member in _members_of(named):
            for name in ("metadata", "memberMetadata"):
                if name in member:
                    member[name] = bodies.with_topics(
                        member[name], lambda topic: self._topics.get(topic, topic)
                    )
        return named

    def _in_words(self, text: str) -> str:
        """Return a message with the program's names of groups."""
        names = self._names.groups.items()
        for here, there in sorted(names, key=lambda name: -len(name[1])):
            text = text.replace(there, here) if there else text
        return text


def with_ids(data: Any, ids: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return a body in which members have other ids."""
    match data:
        case dict():
            return {
                name: ids.get(value, value)
                if name in {"memberId", "leader"} and isinstance(value, str)
                else with_ids(value, ids)
                for name, value in data.items()
            }
        case list():
            return [with_ids(each, ids) for each in data]
    return data


def _members_of(answer: Json) -> Iterator[Json]:
    yield from (each for each in answer.get("members", ()) if isinstance(each, dict))
    for group in answer.get("groups", ()):
        yield from group.get("members", ())


def _groups_of(commands: Sequence[Json]) -> Iterator[str]:
    """Yield the groups that requests name, as often as they do."""
    for command in commands:
        data = command.get("data", {})
        if "groupId" in data:
            yield data["groupId"]
        for each in (*(data.get("groups") or ()), *data.get("groupsNames", ())):
            yield each["groupId"] if isinstance(each, dict) else each
