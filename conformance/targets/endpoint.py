"""A running endpoint that somebody else wrote: what it is and can do, found out by asking.

What is asked: ApiVersions, Metadata, DescribeConfigs, and two JoinGroups of a fresh group where the
settings are not told. What cannot be asked is declared.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Final

from coordinator_sim.errors import CoordinatorSimError, DataError
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import API_NAMES
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.targets.asked import (
    DELAY,
    LONGEST_SESSION,
    SHORTEST_SESSION,
    VERIFIES,
)
from coordinator_sim_conformance.targets.target import (
    Capability,
    ConnectionEnded,
    Declared,
    Unsupported,
)
from coordinator_sim_conformance.wire.kio_bodies import Json
from coordinator_sim_conformance.wire.links import Address, Link, Unanswered, Watch
from coordinator_sim_conformance.wire.security import Security

PATIENCE_S: Final = 30.0
POLL_S: Final = 0.1
STARTING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a coordinator that is not ready yet."""
_ID_FIRST: Final = ErrorCode.MEMBER_ID_REQUIRED


def joined_alone(
    link: Link, group: str, session_ms: int, versions: tuple[int, int]
) -> tuple[ErrorCode, float]:
    """Join a fresh group, and leave it; return the error, and the seconds that it took.

    Args:
        link: To the group's coordinator.
        group: Name of the group.
        session_ms: Its session timeout.
        versions: Of JoinGroup and LeaveGroup.
    """
    version, leaving = versions
    member_id = ""
    began = time.monotonic()
    while True:
        data = bodies.join_group(
            version,
            bodies.Identity(group_id=group, member_id=member_id),
            timeouts_ms=(session_ms, 60_000),
            protocol_type="consumer",
            protocols={"range": bodies.subscription(())},
        )
        answer = link.ask("JoinGroup", version, data)
        error = ErrorCode(answer["errorCode"])
        if error in STARTING and time.monotonic() < began + PATIENCE_S:
            time.sleep(POLL_S)
        elif error is _ID_FIRST and not member_id:
            member_id = answer["memberId"]
        else:
            break
    took_s = time.monotonic() - began
    if error is ErrorCode.NONE:
        members = [(answer["memberId"], None)]
        link.ask("LeaveGroup", leaving, bodies.leave_group(leaving, group, members))
    return error, took_s


HANGS: Final = "the endpoint hangs"
"""How the words about an endpoint that takes connections and does not answer begin."""
_MAKING_S: Final = 2.0
_ABSENT: Final = 20
"""How far apart two Kafkas are by an API that only one of them has."""
_BROKER: Final = 4
"""Type of a resource in DescribeConfigs."""
_TELLS_IDS: Final = 12
"""A version of Metadata in which topics have ids, and may be asked for by name."""
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION
DESCRIBING: Final = {
    Capability.CONSUMER_GROUPS: ("ConsumerGroupDescribe", 0),
    Capability.SHARE_GROUPS: ("ShareGroupDescribe", 1),
    Capability.STREAMS_GROUPS: ("StreamsGroupDescribe", 0),
}
"""The API that describes groups of each new protocol, and a version of it that all have."""
_GONE: Final = frozenset({ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND})
_EXISTS: Final = ErrorCode.TOPIC_ALREADY_EXISTS
_NAMED: Final = 3
_TIDYING_S: Final = 5.0
"""How long members of the last cases may take to leave."""
_USUAL_SESSION_MS: Final = 10_000
_PROBED_SESSIONS_MS: Final = (100, 1_000, 6_000)
"""Sessions that cases want, shortest first; the last is Kafka's own minimum."""


class Endpoint:
    """A cluster behind bootstrap addresses.

    Args:
        bootstrap: Addresses to begin with; the first that answers is used.
        security: How to get in.
        declared: What is known of it beforehand.
        problem: Says what became of its process, where that is known; empty while it runs.

    Raises:
        DataError: nobody answers there, or not as a Kafka broker does.
    """

    def __init__(
        self,
        bootstrap: list[Address],
        security: Security,
        declared: Declared | None = None,
        problem: Callable[[], str] = str,
    ) -> None:
        self.problem = problem
        self.declared = declared or Declared()
        self.security = security
        self.bootstrap = bootstrap
        self._lock = threading.Lock()
        """Held while a request is on the connection that all cases share."""
        self._control = self._first_answering()
        try:
            self._find_out()
        except CoordinatorSimError:
            self._control.close()
            raise

    def _find_out(self) -> None:
        """Ask what the endpoint is."""
        self.versions = self._asked_versions()
        self._nodes: dict[int, Address] = {}
        self._controller = -1
        self._ask_nodes()
        self.run = f"conformance-{time.time_ns() // 1_000_000:x}"
        """How the names of everything that this run makes begin."""
        self._probes = count(1)
        self._coordinators: dict[Address, Link] = {}
        self.topics: set[str] = set()
        self.groups: set[str] = set()
        self.settings = self._asked_settings()
        self.kinds_of_groups = frozenset(
            kind for kind, (api, version) in DESCRIBING.items() if self._describes(api, version)
        )
        """The groups of new protocols that are on."""

    def asked_problem(self) -> str:
        """Return what became of the endpoint, asking for its versions; empty if it answers."""
        try:
            with closing(self.opened()) as link:
                link.probe()
        except Unanswered as silent:
            return f"{HANGS}: {silent}"
        except (ConnectionEnded, DataError, OSError) as gone:
            return f"the endpoint has crashed: {gone}"
        return ""

    @property
    def name(self) -> str:
        """Name in results."""
        host, port = self.bootstrap[0]
        return self.declared.name or f"{host}:{port}"

    @property
    def is_one_broker(self) -> bool:
        """Whether it is a cluster of one: every partition's leader is at hand."""
        return len(self._nodes) == 1

    def facts(self) -> dict[str, str]:
        """Return what was found out and decides on cases, for results."""
        decisive = (DELAY, SHORTEST_SESSION, LONGEST_SESSION, VERIFIES)
        known = {name: self.settings[name] for name in decisive if name in self.settings}
        offered = {api: f"{low} to {high}" for api, (low, high) in self.versions.items()}
        groups = {API_NAMES[api] for api in GROUP_APIS}
        return known | {api: span for api, span in offered.items() if api in groups}

    def clean_up(self) -> str:
        """Remove the topics and groups of this run, and close; return what could not be removed.

        The verdicts stand whatever is left behind.
        """
        try:
            if self.topics:
                self._delete_topics(sorted(self.topics))
            kept = sorted(self.groups)
            deadline = time.monotonic() + _TIDYING_S
            while kept and "DeleteGroups" in self.versions and time.monotonic() < deadline:
                kept = self._delete_groups(kept)
                time.sleep(POLL_S if kept else 0)
        except (Unsupported, ConnectionEnded, DataError) as problem:
            return f"groups and topics named {self.run}-* are left behind: {problem}"
        finally:
            self.close()
        named = ", ".join([*kept[:_NAMED], *(["..."] if len(kept) > _NAMED else [])])
        return f"{len(kept)} groups are left behind: {named}" if kept else ""

    def close(self) -> None:
        """Close the connections that all cases share; what they made there is left behind."""
        self._control.close()
        for link in self._coordinators.values():
            link.close()

    def opened(self, address: Address | None = None, watch: Watch | None = None) -> Link:
        """Open a connection, to the bootstrap broker if no other is named."""
        return Link(address or self._first, self.security, watch=watch)

    def best(self, api: str, most: int) -> int:
        """Return the newest version that is offered, up to a bound.

        Raises:
            Unsupported: no version up to there is offered.
        """
        low, high = self.versions.get(api, (1, 0))
        chosen = min(high, most, self.declared.newest.get(api, most))
        if chosen < low:
            raise Unsupported(f"{self.name} does not offer {api} up to version {most}")
        return chosen

    def profile(self) -> str:
        """Return the profile whose versions are nearest; the newer of two that are equally near."""
        distances = {name: self._distance(name) for name in PROFILES}
        return min(reversed(distances), key=lambda name: distances[name])

    def _distance(self, profile: str) -> int:
        recorded = recorded_versions(PROFILES[profile]).ranges
        total = 0
        for api in GROUP_APIS:
            here, there = self.versions.get(API_NAMES[api]), recorded.get(api)
            if here is None or there is None:
                total += 0 if here is there else _ABSENT
            else:
                total += abs(here[0] - there[0]) + abs(here[1] - there[1])
        return total

    # -- groups and topics -----------------------------------------------------------------

    def coordinator_of(self, group: str) -> Address:
        """Return the address of a group's coordinator, once it is there and takes requests.

        Raises:
            DataError: there is none within half a minute.
        """
        version = self.best("FindCoordinator", 4)
        data = bodies.find_coordinator(version, [group], 0)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = self._ask("FindCoordinator", version, data)
            found = found["coordinators"][0] if "coordinators" in found else found
            error, address = found["errorCode"], (found["host"], found["port"])
            error = error or self._started(address, group)
            if not error:
                return address
            if time.monotonic() > deadline:
                said = ErrorCode(error).name
                raise DataError(f"no coordinator of groups within {PATIENCE_S:.0f} s: {said}")
            time.sleep(POLL_S)

    def _started(self, address: Address, group: str) -> int:
        """Return the error of a coordinator that was named and does not take requests yet, or 0.

        A new cluster names its coordinators a little before they have read their log.
        """
        if "DescribeGroups" not in self.versions:
            return 0
        version = self.best("DescribeGroups", 5)
        data = bodies.describe_groups(version, [group])
        with self._lock:
            if address not in self._coordinators:
                self._coordinators[address] = self.opened(address)
            try:
                answer = self._coordinators[address].ask("DescribeGroups", version, data)
            except (ConnectionEnded, DataError):
                self._coordinators.pop(address).close()
                raise
        error: int = answer["groups"][0]["errorCode"]
        return error if error in STARTING else 0

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, and return when it has leaders.

        Raises:
            Unsupported: the endpoint does not create topics for us.
        """
        if "CreateTopics" not in self.versions:
            self._have_made(name)
            return
        version = self.best("CreateTopics", 4)
        topic = {"name": name, "numPartitions": partitions, "replicationFactor": 1}
        topic |= {"assignments": [], "configs": []}
        data = {"topics": [topic], "timeoutMs": 20_000, "validateOnly": False}
        link = self._at_controller()
        try:
            answer = link.ask("CreateTopics", version, data)["topics"][0]
        finally:
            link.close()
        error = ErrorCode(answer["errorCode"])
        if error not in {ErrorCode.NONE, _EXISTS}:
            raise Unsupported(
                f"{self.name} does not create topics: {error.name}",
                "right CREATE on topics conformance-*",
            )
        self.topics.add(name)
        self._await(lambda: self._leaders(name) == partitions, f"topic {name} has no leaders")

    def _have_made(self, name: str) -> None:
        """Ask for a topic, which endpoints without CreateTopics may make by that.

        How many partitions it has is theirs to say.
        """
        deadline_s = time.monotonic() + _MAKING_S
        while not self._leaders(name, may_make=True):
            if time.monotonic() > deadline_s:
                raise Unsupported(f"{self.name} creates no topics, asked for or not")
            time.sleep(POLL_S)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, and return when they have leaders.

        Raises:
            Unsupported: the endpoint does not do that for us.
        """
        topic = {"name": name, "count": partitions, "assignments": None}
        data = {"topics": [topic], "timeoutMs": 20_000, "validateOnly": False}
        link = self._at_controller()
        try:
            answer = link.ask("CreatePartitions", self.best("CreatePartitions", 1), data)
        finally:
            link.close()
        error = ErrorCode(answer["results"][0]["errorCode"])
        if error is not ErrorCode.NONE:
            raise Unsupported(
                f"{self.name} does not add partitions: {error.name}",
                "right ALTER on topics conformance-*",
            )
        self._await(lambda: self._leaders(name) == partitions, f"topic {name} does not grow")

    def topic_ids(self, names: list[str]) -> dict[str, str]:
        """Return the id of each of these topics, by name."""
        data: Json = {
            "topics": [{"topicId": _NO_ID, "name": name} for name in names],
            "allowAutoTopicCreation": False,
            "includeTopicAuthorizedOperations": False,
        }
        answer = self._ask("Metadata", _TELLS_IDS, data)
        return {each["name"]: each["topicId"] for each in answer["topics"]}

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return when it is gone."""
        self._delete_topics([name])
        self.topics.discard(name)
        self._await(lambda: self._leaders(name) == 0, f"topic {name} does not go away")

    def _delete_topics(self, names: list[str]) -> None:
        version = self.best("DeleteTopics", 5)
        link = self._at_controller()
        try:
            link.ask("DeleteTopics", version, {"topicNames": names, "timeoutMs": 20_000})
        finally:
            link.close()

    def _delete_groups(self, groups: list[str]) -> list[str]:
        """Delete groups; return those that the endpoint keeps."""
        version = self.best("DeleteGroups", 2)
        kept: list[str] = []
        by_place: dict[Address, list[str]] = {}
        for group in groups:
            by_place.setdefault(self.coordinator_of(group), []).append(group)
        for address, there in by_place.items():
            link = self.opened(address)
            answer = link.ask("DeleteGroups", version, bodies.delete_groups(there))
            link.close()
            kept += [
                each["groupId"] for each in answer["results"] if each["errorCode"] not in _GONE
            ]
        return kept

    def _leaders(self, topic: str, *, may_make: bool = False) -> int:
        """How many partitions of a topic have a leader."""
        found = self._metadata([topic], may_make=may_make)["topics"][0]
        return sum(each["leaderId"] >= 0 for each in found["partitions"])

    def _await(self, is_so: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise DataError(f"{problem} within {PATIENCE_S:.0f} s")
            time.sleep(POLL_S)

    def _at_controller(self) -> Link:
        return self.opened(self._nodes.get(self._controller))

    def _ask(self, api: str, version: int, data: Json) -> Json:
        with self._lock:
            return self._control.ask(api, version, data)

    # -- finding out -----------------------------------------------------------------------

    def _first_answering(self) -> Link:
        problems = []
        for address in self.bootstrap:
            try:
                link = Link(address, self.security)
            except (ConnectionEnded, DataError) as problem:
                problems.append(str(problem))
            else:
                self._first = address
                return link
        raise DataError("; ".join(problems))

    def _asked_versions(self) -> dict[str, tuple[int, int]]:
        """What the endpoint offers, of the APIs that the suite's codec has a name for."""
        software = {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1"}
        answer = self._ask("ApiVersions", 0, {})
        ranges = {each["apiKey"]: each for each in answer["apiKeys"]}
        newest = ranges.get(ApiKey.API_VERSIONS, {}).get("maxVersion", 0)
        if newest >= 3:  # noqa: PLR2004 - the version that tells the client's software
            again = self._ask("ApiVersions", 3, software)
            if again["errorCode"] != _UNSUPPORTED:
                ranges = {each["apiKey"]: each for each in again["apiKeys"]}
        return {
            name: (ranges[api]["minVersion"], ranges[api]["maxVersion"])
            for api, name in API_NAMES.items()
            if api in ranges
        }

    def _describes(self, api: str, version: int) -> bool:
        """Whether it has groups of a new protocol, and tells the ids of their topics."""
        data = bodies.describe_new_groups([f"{self.run}-none"])
        if api not in self.versions or "Metadata" not in self.versions:
            return False
        if self.versions["Metadata"][1] < _TELLS_IDS:
            return False
        answer = self._ask(api, version, data)
        return bool(answer["groups"][0]["errorCode"] != _UNSUPPORTED)

    def _metadata(self, topics: list[str], *, may_make: bool = False) -> Json:
        version = self.best("Metadata", 7)
        data: Json = {"topics": [{"name": name} for name in topics]}
        if version >= 4:  # noqa: PLR2004 - the version that may forbid the creation of topics
            data["allowAutoTopicCreation"] = may_make
        return self._ask("Metadata", version, data)

    def _ask_nodes(self) -> None:
        answer = self._metadata([])
        self._nodes = {each["nodeId"]: (each["host"], each["port"]) for each in answer["brokers"]}
        self._controller = answer.get("controllerId", -1)

    def _asked_settings(self) -> dict[str, str]:
        """The settings that decide on cases: declared, told or measured, in this order."""
        declared = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.declared.settings.items()
        }
        settings = self._told_settings() | declared
        if SHORTEST_SESSION not in settings:
            settings[SHORTEST_SESSION] = str(self._shortest_session())
        if DELAY not in settings:
            settings[DELAY] = str(self._measured_delay())
        return settings

    def _told_settings(self) -> dict[str, str]:
        try:
            version = self.best("DescribeConfigs", 4)
        except Unsupported:
            return {}
        node = str(next(iter(self._nodes), 0))
        resource = {"resourceType": _BROKER, "resourceName": node, "configurationKeys": None}
        data: Json = {"resources": [resource]}
        data |= {"includeSynonyms": False} if version >= 1 else {}
        data |= {"includeDocumentation": False} if version >= 3 else {}  # noqa: PLR2004
        try:
            results = self._ask("DescribeConfigs", version, data)["results"]
        except (ConnectionEnded, DataError):
            self._control.close()
            self._control = self._first_answering()
            return {}
        return {
            each["name"]: each["value"]
            for result in results
            for each in result["configs"]
            if each["value"] is not None
        }

    def _shortest_session(self) -> int:
        """The shortest session of those that cases want which is taken."""
        for session_ms in _PROBED_SESSIONS_MS:
            error, _ = self._joined_alone(session_ms)
            if error is not ErrorCode.INVALID_SESSION_TIMEOUT:
                return session_ms
        return _USUAL_SESSION_MS

    def _measured_delay(self) -> int:
        """How long a fresh group's first JoinGroup waits, in whole tenths of a second."""
        _, seconds = self._joined_alone(_USUAL_SESSION_MS)
        return round(seconds * 10) * 100

    def _joined_alone(self, session_ms: int) -> tuple[ErrorCode, float]:
        """Join a fresh group, and leave it; return the error, and the seconds that it took."""
        group = f"{self.run}-probe-{next(self._probes)}"
        self.groups.add(group)
        link = self.opened(self.coordinator_of(group))
        try:
            versions = self.best("JoinGroup", 5), self.best("LeaveGroup", 5)
            return joined_alone(link, group, session_ms, versions)
        finally:
            link.close()
