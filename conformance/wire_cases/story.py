"""A group with one member, driven request by request, each in a version of its own."""

from typing import TYPE_CHECKING, Final, NoReturn

from coordinator_sim.errors import CoordinatorSimError, DataError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.script.stage import CaseBroken, CaseFailed
from coordinator_sim_conformance.targets import target
from coordinator_sim_conformance.targets.reach import Reach

if TYPE_CHECKING:
    from coordinator_sim_conformance.wire.links import Link

_CLIENT: Final = "versions"
_FIRST_WITH_TOPIC_IDS: Final = 10
"""Version of Metadata."""
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class Unanswered(CoordinatorSimError):
    """A request that was not answered in the layout of its version; the text says what came."""


class Story:
    """A connection to a coordinator, and what is known of the group behind it.

    Args:
        reach: The coordinator.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.group = reach.group()
        self.transcript: list[str] = []
        self.member_id = ""
        self.generation_id = -1
        self._link: Link | None = None
        self._topic = ""
        self._topic_id = ""

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def start_over(self) -> None:
        """Go on with another group, on another connection: nobody knows how the last one stands."""
        self.close()
        self.group, self.member_id, self.generation_id = self.reach.group(), "", -1

    @property
    def link(self) -> "Link":
        """The connection; another one when the last was ended."""
        if self._link is None:
            self._link = self.reach.opened()
        return self._link

    def offered(self, api: str) -> range:
        """Return the versions of an API that are offered.

        Raises:
            Unsupported: the API is not offered.
        """
        if api not in self.reach.versions:
            raise target.Unsupported(f"{api} is not offered")
        low, high = self.reach.versions[api]
        return range(low, high + 1)

    def known(self, api: str) -> list[int]:
        """Return the versions that are offered and whose layout the suite knows, oldest first."""
        low, high = self.reach.versions.get(api, (0, -1))
        return [version for version in range(low, high + 1) if is_known(api, version)]

    def ask(self, api: str, version: int, data: target.Json) -> target.Json:
        """Send a request and return its answer.

        Raises:
            Unanswered: no answer came, or one of another layout.
            Unsupported: the suite does not know the layout.
        """
        try:
            answer = self.link.ask(api, version, data, client_id=_CLIENT)
        except (target.ConnectionEnded, DataError, target.MalformedAnswer) as problem:
            self.close()
            self.say(f"{api} {version}", str(problem))
            raise Unanswered(str(problem)) from None
        self.say(f"{api} {version}", ", ".join(map(name_of_error, errors_of(answer))))
        return answer

    def frame(self, api: str, version: int, data: target.Json) -> bytes:
        """Return a request as bytes, to be changed.

        Raises:
            UnsupportedVersion: the suite does not know the layout.
            DataError: the version cannot express the body.
        """
        from coordinator_sim_conformance.wire.frames import request_frame

        return request_frame(api, version, data, correlation_id=1, client_id=_CLIENT)

    def told(self, api: str, frame: bytes) -> target.Json:
        """Send bytes that have to be answered as version 0 of an API is; return the answer.

        Raises:
            Unanswered: no answer came, or one of another layout.
        """
        call = target.Call(call_id=1, api=api, version=0, data={}, client_id=_CLIENT)
        try:
            self.link.send_bytes(call, frame, is_answered=True)
            answer = self.link.next_answer()
        except (target.ConnectionEnded, DataError, target.MalformedAnswer) as problem:
            self.close()
            self.say(f"{api}, to be answered as 0", str(problem))
            raise Unanswered(str(problem)) from None
        self.say(f"{api}, to be answered as 0", ", ".join(map(name_of_error, errors_of(answer))))
        return answer

    def refused(self, api: str, version: int, frame: bytes, length: int | None = None) -> str:
        """Send bytes on a connection of their own, which has to end without an answer.

        Args:
            api: What they stand for.
            version: Its version.
            frame: The bytes behind the length.
            length: The length in front; None takes the true one.

        Returns:
            What happened instead; empty if it ended so.
        """
        link = self.reach.opened()
        call = target.Call(call_id=1, api=api, version=version, data={}, client_id=_CLIENT)
        try:
            link.send_bytes(call, frame, length)
            came = link.end_within(self.reach.patience_s)
        finally:
            link.close()
        self.say(f"{api} {version}, not to be taken", came or "the end of the connection")
        return came

    def say(self, asked: str, came: str) -> None:
        """Add a line to the transcript."""
        self.transcript.append(f"{asked:<40} | {came}")

    def fail(self, line: str, problem: str) -> NoReturn:
        """End the case as failed.

        Raises:
            CaseFailed: always.
        """
        raise CaseFailed(problem, tuple(self.transcript), line)

    def break_off(self, problem: str) -> NoReturn:
        """End the case with nothing known of the requirement.

        Raises:
            CaseBroken: always.
        """
        raise CaseBroken(problem, tuple(self.transcript))

    # -- topics ----------------------------------------------------------------------------

    @property
    def topic(self) -> str:
        """The topic's name."""
        self._topic = self._topic or self.reach.topic()
        return self._topic

    @property
    def topic_id(self) -> str:
        """The topic's id; an unused id if the broker offers no Metadata version with topic ids."""
        known = [each for each in self.known("Metadata") if each >= _FIRST_WITH_TOPIC_IDS]
        if not known:
            return _NO_ID
        if not self._topic_id:
            data: target.Json = {
                "topics": [{"topicId": _NO_ID, "name": self.topic}],
                "allowAutoTopicCreation": False,
                "includeTopicAuthorizedOperations": False,
            }
            if known[0] == _FIRST_WITH_TOPIC_IDS:
                data["includeClusterAuthorizedOperations"] = False
            self._topic_id = self.ask("Metadata", known[0], data)["topics"][0]["topicId"]
        return self._topic_id


def is_known(api: str, version: int) -> bool:
    """Whether the suite knows the layout of a version."""
    from coordinator_sim_conformance.wire.frames import has_layout

    return has_layout(api, version)


def errors_of(answer: object) -> list[int]:
    """Return every error code in an answer."""
    match answer:
        case dict():
            own = [answer["errorCode"]] if "errorCode" in answer else []
            return own + [error for each in answer.values() for error in errors_of(each)]
        case list():
            return [error for each in answer for error in errors_of(each)]
    return []


def name_of_error(code: int) -> str:
    """Return Kafka's name of an error, or its number."""
    return ErrorCode(code).name if code in list(ErrorCode) else str(code)
