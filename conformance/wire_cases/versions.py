"""Versions: those that a broker offers are answered, those beside them are refused."""

from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.targets.target import Unsupported
from coordinator_sim_conformance.wire_cases.case import WireCase, wire_case
from coordinator_sim_conformance.wire_cases.others import others_going_on
from coordinator_sim_conformance.wire_cases.steps import STEPS, played, prepare
from coordinator_sim_conformance.wire_cases.story import Story, Unanswered, is_known, name_of_error

CASES: list[WireCase] = []
_PARSED: Final = "RequestContext.parseRequest"
_IDS: Final = {
    "FindCoordinator": ("VERSION-FIND", "KafkaApis.handleFindCoordinatorRequest", ""),
    "JoinGroup": ("VERSION-JOIN", "KafkaApis.handleJoinGroupRequest", ""),
    "SyncGroup": ("VERSION-SYNC", "KafkaApis.handleSyncGroupRequest", ""),
    "Heartbeat": ("VERSION-HEARTBEAT", "KafkaApis.handleHeartbeatRequest", ""),
    "LeaveGroup": ("VERSION-LEAVE", "KafkaApis.handleLeaveGroupRequest", ""),
    "OffsetCommit": ("VERSION-COMMIT", "KafkaApis.handleOffsetCommitRequest", ""),
    "OffsetFetch": ("VERSION-FETCH", "KafkaApis.handleOffsetFetchRequest", ""),
    "DescribeGroups": ("VERSION-DESCRIBE", "KafkaApis.handleDescribeGroupsRequest", ""),
    "ListGroups": ("VERSION-LIST", "KafkaApis.handleListGroupsRequest", ""),
    "DeleteGroups": ("VERSION-DELETE", "KafkaApis.handleDeleteGroupsRequest", "1.1"),
    "OffsetDelete": ("VERSION-ERASE", "KafkaApis.handleOffsetDeleteRequest", "2.4"),
    "TxnOffsetCommit": ("VERSION-TXN", "KafkaApis.handleTxnOffsetCommitRequest", "0.11"),
    "AddOffsetsToTxn": ("VERSION-ADDTXN", "KafkaApis.handleAddOffsetsToTxnRequest", "0.11"),
    "ApiVersions": ("VERSION-APIS", "KafkaApis.handleApiVersionsRequest", ""),
}
"""API -> id of its requirement, who answers, and the first release that has it."""


def _every_version(story: Story, api: str) -> None:
    """Play the step of an API once for each version that is offered."""
    step = STEPS[api]
    versions = story.offered(api)
    prepare(story, step.before)
    problems: dict[int, str] = {}
    for version in story.known(api):
        prepare(story, step.each)
        problem = played(story, api, version)
        if problem:
            problems[version] = problem
            story.start_over()
            prepare(story, step.before)
    if problems:
        told = ", ".join(map(str, problems))
        story.fail(f"{api} {told}", "; ".join(problems.values()))
    newer = [version for version in versions if not is_known(api, version)]
    if newer:
        raise Unsupported(f"this suite does not know the layout of {api} {newer[0]}")


def _register(api: str, case_id: str, answers: str, since: str) -> None:
    """Register the requirement that every version of an API is answered."""
    title = f"Every version of {api} is answered in its layout"

    @wire_case(case_id, _PARSED, answers, title=title, since=since)
    def every_version_of_one(story: Story) -> None:
        _every_version(story, api)


for _api, _rest in _IDS.items():
    _register(_api, *_rest)


@wire_case("VERSION-ABOVE", _PARSED, "SocketServer.processCompletedReceives")
def above(story: Story) -> None:
    """A version above those offered ends the connection without an answer."""
    _all_refused(story, {api: span[1] + 1 for api, span in story.reach.versions.items()})


@wire_case("VERSION-BELOW", _PARSED, "SocketServer.processCompletedReceives")
def below(story: Story) -> None:
    """A version below those offered ends the connection without an answer."""
    _all_refused(story, {api: span[0] - 1 for api, span in story.reach.versions.items()})


def _all_refused(story: Story, versions: dict[str, int]) -> None:
    """Ask each group API in a version that is not offered, in the layout of its neighbour."""
    problems: dict[str, str] = {}
    with others_going_on(story):
        for api in STEPS:
            known = [version for version in story.known(api) if api != "ApiVersions"]
            if known:
                asked = versions[api]
                neighbour = min(known, key=lambda version: abs(version - asked))
                frame = story.frame(api, neighbour, STEPS[api].body(story, neighbour))
                came = story.refused(api, asked, with_version(frame, asked))
                if came:
                    problems[f"{api} {asked}"] = f"{api} of version {asked}: {came}"
    if problems:
        story.fail(", ".join(problems), "; ".join(problems.values()))


def with_version(frame: bytes, version: int) -> bytes:
    """Return a request that says it is of another version."""
    return frame[:2] + version.to_bytes(2, "big", signed=True) + frame[4:]


@wire_case(
    "VERSION-APIS-ABOVE", _PARSED, "ApiVersionsRequest.getErrorResponse", "KIP-511", since="2.4"
)
def api_versions_above(story: Story) -> None:
    """An ApiVersions above those offered is answered as version 0, with those offered."""
    newest, known = story.offered("ApiVersions")[-1], story.known("ApiVersions")[-1]
    body = STEPS["ApiVersions"].body(story, known)
    asked = with_version(story.frame("ApiVersions", known, body), newest + 1)
    line = f"ApiVersions {newest + 1}"
    try:
        answer = story.told("ApiVersions", asked)
        ranges = {each["apiKey"]: each["maxVersion"] for each in answer["apiKeys"]}
        came = (name_of_error(answer["errorCode"]), ranges.get(ApiKey.API_VERSIONS))
        if came != (ErrorCode.UNSUPPORTED_VERSION.name, newest):
            story.fail(line, f"came {came[0]}, and {came[1]} as the newest version")
        problem = played(story, "ApiVersions", 0)
    except Unanswered as unanswered:
        story.fail(line, str(unanswered))
    if problem:
        story.fail("ApiVersions 0, on the same connection", problem)
