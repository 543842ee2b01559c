"""Reading and writing messages beside kio, the codec that is generated from the same schemas.

kio has no bounds and no structs of ours; both take a whole frame to a message, and a response to
its bytes. Each ratio is ours by kio's, best of several runs in one process.
"""

import timeit
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from time import perf_counter
from typing import Final

from kio.serial import entity_reader, entity_writer

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import API_NAMES, name_of, newest_version
from coordinator_sim.messages.codec.compiler import (
    request_reader,
    request_writer,
    response_reader,
    response_writer,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.schema import snake_case

ROUNDS: Final = 5
CALLS: Final = 20_000

COMMIT: Final = OffsetCommitRequest(
    group_id="payments",
    generation_id_or_member_epoch=7,
    member_id="consumer-payments-1-8f3f7d0e",
    topics=(
        OffsetCommitRequestTopic(
            "orders",
            partitions=tuple(OffsetCommitRequestPartition(n, 1_000 + n) for n in range(10)),
        ),
    ),
)
COMMITTED: Final = OffsetCommitResponse(
    topics=(
        OffsetCommitResponseTopic(
            "orders", partitions=tuple(OffsetCommitResponsePartition(n) for n in range(10))
        ),
    )
)
JOIN: Final = JoinGroupRequest(
    group_id="payments",
    session_timeout_ms=45_000,
    rebalance_timeout_ms=300_000,
    member_id="consumer-payments-1-8f3f7d0e",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol("range", bytes(60)),),
)
REQUESTS: Final = (
    ("Heartbeat 4", HeartbeatRequest("payments", 7, "consumer-payments-1-8f3f7d0e"), 4),
    ("JoinGroup 9", JOIN, 9),
    ("OffsetCommit 9 of 10", COMMIT, 9),
)
RESPONSES: Final = (
    ("Heartbeat 4", HeartbeatResponse(), 4),
    ("OffsetCommit 9 of 10", COMMITTED, 9),
)


def seconds_a_call(work: Callable[[], object]) -> float:
    """The best of several runs."""
    return min(timeit.repeat(work, number=CALLS, repeat=ROUNDS)) / CALLS


def kio_class(api: ApiKey, version: int, kind: str) -> type:
    """Kio's class of a message."""
    module = import_module(f"kio.schema.{snake_case(name_of(api))}.v{version}.{kind.lower()}")
    found: type = getattr(module, name_of(api) + kind)
    return found


def compile_all() -> tuple[int, float]:
    """Compile every reader and writer there is: how many, and in how many seconds."""
    makers = (request_reader, request_writer, response_reader, response_writer)
    start = perf_counter()
    count = 0
    for api in API_NAMES:
        for version in range(newest_version(api) + 1):
            for make in makers:
                make(api, version)
                count += 1
    return count, perf_counter() - start


def main() -> None:
    """Print microseconds and ratios."""
    count, seconds = compile_all()
    print(f"{count} readers and writers compiled, {seconds / count * 1000:.2f} ms each")
    for name, request, version in REQUESTS:
        api = request.api_key
        frame = request_writer(api, version)(1, "client", request)
        read = request_reader(api, version)
        theirs = kio_class(api, version, "Request")
        read_header = entity_reader(theirs.__header_schema__)  # type: ignore[attr-defined]
        read_body = entity_reader(theirs)
        ours_s = seconds_a_call(lambda: read(frame))  # noqa: B023 - called at once
        theirs_s = seconds_a_call(lambda: read_body(frame, read_header(frame, 0)[1]))  # noqa: B023
        tell(f"{name} request read", ours_s, theirs_s)
    for name, response, version in RESPONSES:
        api = response.api_key
        write = response_writer(api, version)
        theirs = kio_class(api, version, "Response")
        start = 5
        entity, _ = entity_reader(theirs)(write(1, response), start)
        write_body = entity_writer(theirs)
        ours_s = seconds_a_call(lambda: write(1, response))  # noqa: B023 - called at once
        theirs_s = seconds_a_call(lambda: write_body(BytesIO(), entity))  # noqa: B023
        tell(f"{name} response written", ours_s, theirs_s)


def tell(what: str, ours_s: float, theirs_s: float) -> None:
    """One line."""
    print(f"{what}: {ours_s * 1e6:.2f} us, {ours_s / theirs_s:.2f} of kio's")


if __name__ == "__main__":
    main()
