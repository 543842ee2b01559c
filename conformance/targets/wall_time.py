"""A foreign endpoint as a target: one case, in wall time, with groups and topics of its own.

A script says what happens at which millisecond; commands take none. Here they take some, so the
script's clock is kept beside the real one: a wait ends where the script's clock says, an answer
may come a little before the end of the wait that it belongs to, and what is wanted may come late.
How much, `Margins` says.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.targets.asked import (
    ADDS_PARTITION,
    DELAY,
    LARGEST_REQUEST,
    LONGEST_SESSION,
    RETENTION_CHECK,
    SHORTEST_SESSION,
    SHORTEST_WANTED_MS,
    VERIFIES,
    Pace,
    misfit,
    unlock_of,
)
from coordinator_sim_conformance.targets.endpoint import DESCRIBING, Endpoint
from coordinator_sim_conformance.targets.names import Names
from coordinator_sim_conformance.targets.reach import Reach
from coordinator_sim_conformance.targets.target import (
    Answer,
    Call,
    Capability,
    ConnectionEnded,
    GroupView,
    Json,
    Outcome,
    Unsupported,
    World,
    has_groups,
    view_of,
)
from coordinator_sim_conformance.wire.links import OWN_CLIENT, Address, Links

_OFFERED: Final = frozenset({Capability.TOPICS, Capability.CLUSTER})
_NEWEST: Final = {"OffsetCommit": 9, "OffsetFetch": 9}
"""Versions up to which topics have names."""
_NEWEST_DESCRIBE: Final = 5
_PLACES_TRIED: Final = 200
_LEAVES: Final = -1
"""The epoch of a member of a new group that leaves it for good."""
_LEAVING: Final[dict[Capability, tuple[str, int, Callable[[bodies.Identity], Json]]]] = {
    Capability.CONSUMER_GROUPS: (
        "ConsumerGroupHeartbeat",
        0,
        lambda who: bodies.consumer_group_heartbeat(0, who, subscription=(None, None), owned=None),
    ),
    Capability.SHARE_GROUPS: (
        "ShareGroupHeartbeat",
        1,
        lambda who: bodies.share_group_heartbeat(who, None),
    ),
    Capability.STREAMS_GROUPS: (
        "StreamsGroupHeartbeat",
        0,
        partial(bodies.streams_group_heartbeat, topology=None, active=None, process_id=None),
    ),
}
"""Heartbeat, version and body with which a member leaves a group of each new protocol."""
_LOOK_AGAIN_S: Final = 0.05
_LOOK_AT_PROCESS_S: Final = 0.25
_STRETCHABLE: Final = frozenset({DELAY, "group.max.size", "offset.metadata.max.bytes"})
"""Settings that a script may ask for in stretched time: no other clock of the broker runs."""
_TIMEOUTS: Final = ("sessionTimeoutMs", "rebalanceTimeoutMs")
LONGEST_WAIT_S: Final = 65
"""Cases that wait longer are left out, and none is stretched beyond."""
_OUTLASTING_MS: Final = LONGEST_WAIT_S * 1_000
_ENDS_S: Final = 5.0
"""How long an endpoint may take to end a connection."""
_LARGEST_OF_ALL: Final = (1 << 31) - 2
"""Bytes of a request where an endpoint does not tell its bound: one more is the largest length."""


class Margins(Struct, frozen=True):
    """How far real time may be from a script's.

    Args:
        factor: What everything is multiplied with; doubled when a case is played again.
        stretch: How many times longer the script's waits and the timeouts of its members are.
            What a script leaves between two instants grows as they do, so a host that takes half
            a second for a command can still be in time.
    """

    factor: int = 1
    stretch: float = 1

    @property
    def quiet_s(self) -> float:
        """How long after the endpoint has handled a request other answers may still come."""
        return 0.015 * self.factor

    @property
    def early_s(self) -> float:
        """Seconds that an answer may precede the end of a wait, besides the commands' own time."""
        return 0.02 * self.factor

    @property
    def late_s(self) -> float:
        """How long a wanted answer may be late."""
        return 0.5 * self.factor


class WallTimeTarget:
    """An endpoint in wall time; `start` takes new groups, so that cases may run side by side.

    Args:
        endpoint: Endpoint under test.
        label: Part of the names of its groups and topics, another for each case.
        margins: How far time may be from the script's.
        has_topics: Whether it has all its topics from the start: sessions run while they are made.
    """

    def __init__(
        self, endpoint: Endpoint, label: str, margins: Margins, *, has_topics: bool = False
    ) -> None:
        self._endpoint, self._has_topics = endpoint, has_topics
        self._label = label
        self._margins = margins
        self._stretch = margins.stretch
        self._pace = Pace({}, {})
        self._world = World(profile="", settings={})
        self._names = Names("")
        self._topic_ids: dict[str, str] = {}
        self._links: Links | None = None
        self._place: Address | None = None
        self._due_s = 0.0
        """Instant of the real clock at which the script's clock stands."""
        self._behind_s = 0.0
        """How long commands took until they were handled; the script's clock is not later than
        the real."""
        self._handled_s = 0.0
        """When the endpoint had handled the last command, at the latest."""
        self._next_s = 0.0
        """Before which instant of the real clock nothing is asked."""
        self._began_s, self._has_begun = 0.0, False
        self.frames: list[Frame] = []
        """What was sent and received for the script, in order."""

    @property
    def name(self) -> str:
        """Name in reports."""
        return self._endpoint.name

    @property
    def delay_ms(self) -> int:
        """How long a fresh group waits for more members when a script does not say."""
        return int(self._endpoint.settings[DELAY])

    def close(self) -> None:
        """Close all sockets."""
        if self._links is not None:
            self._links.close()
            self._links = None

    def leave(self) -> None:
        """Have the members of this case leave, so that its groups can be deleted.

        Raises:
            ConnectionEnded: the endpoint is gone.
        """
        if not self._names.groups or "DescribeGroups" not in self._endpoint.versions:
            return
        version = self._endpoint.best("LeaveGroup", 5)
        for group, there in self._names.groups.items():
            view = self.view(group) if group else None
            for member_id in (view and view.member_ids) or ():
                data = bodies.leave_group(version, there, [(member_id, None)])
                self._sockets.own.ask("LeaveGroup", version, data)
            for capability in DESCRIBING:
                if self.offers(capability):
                    self._leave_new_group(capability, there)

    def _leave_new_group(self, capability: Capability, group: str) -> None:
        describe, newest = DESCRIBING[capability]
        asked = bodies.describe_new_groups([group])
        answer = self._sockets.own.ask(describe, newest, asked)
        api, version, body = _LEAVING[capability]
        for member in answer["groups"][0]["members"]:
            identity = bodies.Identity(
                group_id=group,
                member_id=member["memberId"],
                instance_id=member.get("instanceId"),
                generation_id=_LEAVES,
            )
            self._sockets.own.ask(api, version, body(identity))

    def offers(self, capability: Capability) -> bool:
        """Whether the operations of that capability work."""
        if capability is Capability.RECORDS:
            has_shares = Capability.SHARE_GROUPS in self._endpoint.kinds_of_groups
            return has_shares and self._endpoint.is_one_broker
        if capability in self._endpoint.kinds_of_groups:
            return has_groups(capability, self._world.profile)
        return capability in _OFFERED

    def newest(self, api: str, most: int) -> int:
        """Return the newest version that the endpoint offers, up to a bound."""
        offered = self._endpoint.versions.get(api, (most, most))[1]
        return min(most, offered, self._endpoint.declared.newest.get(api, most))

    def start(self, world: World) -> None:
        """Take new names; nothing of other cases is seen.

        Raises:
            Unsupported: a script asks for a setting that the endpoint does not have, or not told.
        """
        self.close()
        asked = {name: world.settings[name] for name in world.settings if name in world.asked}
        self._stretch = self._margins.stretch if world.asked <= _STRETCHABLE else 1
        setting = misfit(asked, self._endpoint.settings)
        if setting is not None:
            found = self._endpoint.settings.get(setting)
            said = "does not tell it" if found is None else f"has {found}"
            unlock = f"{setting}={asked[setting]}"
            raise Unsupported(f"wants {unlock}; {self.name} {said}", unlock)
        if world.switches:
            raise Unsupported("wants a release between those with a profile")
        self._pace = Pace(world.settings, self._endpoint.settings)
        self._world = world
        self._names = Names(f"{self._endpoint.run}-{self._label}-")
        self._topic_ids, self._place = {}, None
        self._next_s = self._behind_s = 0.0
        self._has_begun = False
        if self._has_topics and self._endpoint.kinds_of_groups:
            self.topic_ids()
        self._began_s = self._due_s = self._handled_s = time.monotonic()

    def call(self, call: Call) -> Outcome:
        """Send a request; return the answers that came until the endpoint had handled it.

        Raises:
            Unsupported: the endpoint does not offer the version, or takes no such session.
        """
        self._check(call)
        data = self._names.there(call.data, group=self._new_group, topic=self._new_topic)
        data |= {name: self._stretched(data[name]) for name in _TIMEOUTS if name in data}
        self._sleep_until(self._next_s)
        sockets = self._sockets
        if not self._has_begun:  # What it takes to make topics is no time of the script's.
            self._has_begun = True
            self._began_s = self._due_s = time.monotonic()
        owed_ms = self._pace.owed_ms(call, self._due_s * 1000)
        earlier = self.advance(owed_ms).answers if owed_ms else ()
        self._sleep_until(self._next_s)
        sockets.send(replace(call, data=data))
        self._settle()
        return Outcome((*earlier, *self._collected()))

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Wait until the script's clock is so much later.

        What began with a command happens between its script time and as much later as commands
        have taken so far: a wait before something ends early in that span, any other after it.
        """
        self._behind_s = max(self._behind_s, self._handled_s - self._due_s)
        self._due_s += ms * self._stretch / 1000
        answers = self._collected_until(self._due_s - self._margins.early_s)
        if not early:  # The broker looks for expired offsets once in so long.
            looks = self._endpoint.settings if RETENTION_CHECK in self._world.asked else {}
            looks_s = int(looks.get(RETENTION_CHECK, 0)) / 1000
            self._next_s = self._due_s + self._behind_s + self._margins.early_s + looks_s
        return Outcome(tuple(answers))

    def late(self, since_s: float) -> Outcome | None:
        """Wait for what is wanted and did not come; None when it is too late for that.

        Args:
            since_s: When it was first missed, on the clock of `time.monotonic`.
        """
        patience_s = self._margins.early_s + self._behind_s + self._margins.late_s
        if DELAY not in self._world.asked:
            patience_s += self.delay_ms / 1000
        now_s = time.monotonic()
        end_s = since_s + patience_s
        if now_s >= end_s:
            return None
        self._sockets.await_any(min(_LOOK_AGAIN_S, end_s - now_s))
        return Outcome(tuple(self._collected()))

    def view(self, group_id: str) -> GroupView | None:
        """Return the group as DescribeGroups shows it."""
        version = self._endpoint.best("DescribeGroups", _NEWEST_DESCRIBE)
        data = self._names.there(
            bodies.describe_groups(version, [group_id]),
            group=self._new_group,
            topic=self._new_topic,
        )
        self._sleep_until(self._next_s)
        answer = self._sockets.own.ask("DescribeGroups", version, data)
        return view_of(answer["groups"][0])

    def operate(self, operation: Json) -> Outcome:
        """Create, grow or delete topics of this case.

        Raises:
            Unsupported: any other operation.
        """
        if operation["op"] != "topics":
            raise Unsupported(f"{self.name} is nobody's to command: no op {operation['op']}")
        for topic in operation.get("remove", ()):
            self._endpoint.delete_topic(self._names.topics[topic])
        for topic in operation.get("set", ()):
            self._set_topic(topic["name"], topic["partitions"])
        self._topic_ids = {}
        time.sleep(self._margins.late_s)  # Coordinators hear of it when it is gone.
        return Outcome(tuple(self._collected()))

    def topic_ids(self) -> dict[str, str]:
        """Return the ids of the case's topics, which are made where they are not there yet.

        Only cases of new groups ask. Their times are the broker's, so they are not stretched.
        """
        self._stretch = 1
        if not self._topic_ids:
            for topic in self._world.topics or {}:
                self._names.topic(topic, self._new_topic)
            names = self._names.topics
            ids = self._endpoint.topic_ids(list(names.values()))
            self._topic_ids = {name: ids[there] for name, there in names.items() if there in ids}
            time.sleep(self._margins.late_s)  # Coordinators hear of topics after all others do.
        return dict(self._topic_ids)

    def _set_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of the case, or give it more partitions."""
        there = self._names.topics.get(topic)
        if there is not None and there in self._endpoint.topics:
            self._endpoint.grow_topic(there, partitions)
            return
        there = self._names.topics[topic] = f"{self._names.prefix}{topic}"
        self._endpoint.create_topic(there, partitions)

    def partition_of(self, group_id: str) -> int:
        """Fail: the partitions of groups are inside.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"{self.name} does not show in which partition {group_id!r} lives")

    def reach(self) -> Reach:
        """Return how the coordinator of fresh groups is reached with frames of one's own."""
        numbers = count(1)

        def group() -> str:
            asked = bodies.describe_groups(0, [f"g{next(numbers)}"])
            named = self._names.there(asked, group=self._new_group, topic=self._new_topic)
            found: str = named["groups"][0]
            return found

        told = self._endpoint.settings.get(LARGEST_REQUEST)
        return Reach(
            versions=self._endpoint.versions,
            group=group,
            opened=lambda: self._endpoint.opened(self._place, watch=self._watch),
            topic=lambda: self._new_topic(next(iter(self._world.topics or {}))),
            largest=_LARGEST_OF_ALL if told is None else int(told),
            patience_s=_ENDS_S * self._margins.factor,
        )

    # -- names -----------------------------------------------------------------------------

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

    def _new_topic(self, topic: str) -> str:
        """Return a name of a fresh topic, if the script's broker has one of that name."""
        name = f"{self._names.prefix}{topic}"
        known = self._world.topics or {}
        if topic in known:
            self._endpoint.create_topic(name, known[topic])
        return name

    # -- inside ----------------------------------------------------------------------------

    @property
    def _sockets(self) -> Links:
        """The sockets, opened on first use, at the coordinator of the case's groups."""
        if self._links is None:
            place = self._place
            self._links = Links(lambda: self._endpoint.opened(place, watch=self._watch))
        return self._links

    def _watch(self, direction: Literal["sent", "received"], call: Call, frame: bytes) -> None:
        """Keep a frame of the script's; the target's own questions are left out."""
        if call.client_id != OWN_CLIENT:
            self.frames.append(
                Frame(
                    direction=direction,
                    api=call.api,
                    version=call.version,
                    at_ms=round((time.monotonic() - self._began_s) * 1000),
                    hex=frame.hex(),
                )
            )

    def _check(self, call: Call) -> None:
        low, high = self._endpoint.versions.get(call.api, (1, 0))
        if not low <= call.version <= min(high, _NEWEST.get(call.api, high)):
            raise Unsupported(f"{self.name} does not offer version {call.version} of {call.api}")
        if call.api == "TxnOffsetCommit" and self._endpoint.settings.get(VERIFIES) != "false":
            raise Unsupported(
                f"wants {VERIFIES}=false: its producer is made up", f"{VERIFIES}=false"
            )
        if call.api == "TxnOffsetCommit" and call.version >= ADDS_PARTITION:
            raise Unsupported(f"version {call.version} of {call.api} wants a real transaction")
        if "sessionTimeoutMs" not in call.data:
            return
        session_ms = self._stretched(call.data["sessionTimeoutMs"])
        shortest = self._endpoint.settings.get(SHORTEST_SESSION) or session_ms
        longest = self._endpoint.settings.get(LONGEST_SESSION) or session_ms
        if self._world.asked.isdisjoint({SHORTEST_SESSION, LONGEST_SESSION}) and not (
            int(shortest) <= session_ms <= int(longest)
        ):
            raise Unsupported(
                f"wants a session of {session_ms} ms, not of {shortest} to {longest}",
                f"{SHORTEST_SESSION}={SHORTEST_WANTED_MS}",
            )

    def _stretched(self, timeout_ms: int) -> int:
        """Return a member's timeout in stretched time; none, and one beyond any case, stays."""
        is_outlasting = not 0 < timeout_ms <= _OUTLASTING_MS
        return timeout_ms if is_outlasting else round(timeout_ms * self._stretch)

    def _settle(self) -> None:
        """Return when the endpoint has handled what was sent, and a little later.

        A question about the group waits behind the request; what the request sets free comes
        right after it.
        """
        if "DescribeGroups" not in self._endpoint.versions:
            self._sockets.settle()
        else:
            for group in list(self._names.groups)[-1:]:
                self.view(group)
        self._handled_s = time.monotonic()
        time.sleep(self._margins.quiet_s)

    def _sleep_until(self, instant_s: float) -> None:
        while (left_s := instant_s - time.monotonic()) > 0:
            self._go_on()
            time.sleep(min(left_s, _LOOK_AT_PROCESS_S))

    def _go_on(self) -> None:
        """Continue only while the endpoint's process runs, if it is known.

        Raises:
            ConnectionEnded: it does not; what became of it.
        """
        problem = self._endpoint.problem()
        if problem:
            raise ConnectionEnded(problem)

    def _collected(self) -> list[Answer]:
        at_ms = round((time.monotonic() - self._began_s) * 1000)
        hosts, answers = (
            {f"/{self._sockets.own.local_host}": "/127.0.0.1"},
            self._sockets.collect(at_ms),
        )
        for each in answers:
            unlock = unlock_of(each.data, self._world.asked, self._endpoint.settings)
            if unlock:
                raise Unsupported(f"wants {unlock}; {self.name} refuses", unlock)
        return [
            Answer(each.call_id, each.at_ms, self._names.here(each.data, hosts=hosts))
            for each in answers
        ]

    def _collected_until(self, end_s: float) -> list[Answer]:
        found: list[Answer] = []
        while (left_s := end_s - time.monotonic()) > 0:
            self._go_on()
            self._sockets.await_any(min(left_s, _LOOK_AT_PROCESS_S))
            found += self._collected()
        return found
