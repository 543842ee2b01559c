"""Ask every API for more and more, count the work, and name what grows faster than its request.

    python -m tests.growth [--profile P] [--versions newest|edges|all] [--api NAME] [--verbose]

Prints one JSON object: how much was asked, what grew too fast, and what was not answered.

Requests of 12, 24 and 48 items go to clusters with 12, 24 and 48 of everything, so that a product
of request and cluster shows as well. Linear work w(n) = a + b*n gives w(4n) - 3*w(2n) + 2*w(n) = 0;
whatever is left, divided by 6*n*n, is the work per pair of items.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable
from typing import Any, Final

from tests.growth.counted_work import count_work_of
from tests.growth.forked import apart

METER: Final = count_work_of("coordinator_sim")

from coordinator_sim.kafka.api_keys import ApiKey  # noqa: E402
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, profile_named  # noqa: E402
from coordinator_sim_conformance.field_frames import read_response_frame  # noqa: E402 - counted from here on
from tests.growth.crowded_world import CrowdedWorld, Line, frame_of  # noqa: E402
from tests.growth.growing_requests import (  # noqa: E402
    Names,
    Pattern,
    Question,
    grown_frame,
    questions_of,
)

ITEMS: Final = 12
"""Length of the grown array; it is doubled twice."""
EXCESS: Final = 0.2
"""Work per pair of items that is still taken for linear: one search through a list has 0.5 or more,
and what is left of buckets and digits stays below a tenth."""
_LATER_MS: Final = 70_000
_COUNTED: Final = ("handling it", "what was asked after it", "the time after it")


def _is_known_product(question: Question, profile: str) -> bool:
    """Whether a request may cost as much as its items times what the cluster has.

    A filter of DeleteAcls is answered with every rule that it matches, so that the answer itself is
    that long. Up to 3.9 each topic that is deleted is looked for in every group
    (GroupMetadata.removeOffsets by cleanupGroupMetadata).
    """
    if question.api is ApiKey.DELETE_ACLS:
        return question.dress == 1 or question.pattern is Pattern.REPEATED
    is_scala = profile in ("0.10.2", "2.8", "3.9")
    return question.api is ApiKey.DELETE_TOPICS and is_scala and question.names is Names.KNOWN


def _behind(world: CrowdedWorld, api: ApiKey) -> bytes | None:
    """What is asked behind a request, where the same again would say less."""
    producer_id, epoch = world.producers[0]
    end = {
        "transactionalId": "txn-0000",
        "producerId": producer_id,
        "producerEpoch": epoch,
        "committed": True,
    }
    if api in (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT):
        return frame_of(ApiKey.END_TXN, 1, end)
    if api in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS):
        return frame_of(ApiKey.METADATA, 1, {"topics": None})
    return None


def _errors_of(answer: Any) -> set[int]:  # noqa: ANN401 - any part of an answer
    """The error codes of an answer, wherever they stand."""
    if isinstance(answer, list):
        return set().union(*map(_errors_of, answer))
    if not isinstance(answer, dict):
        return set()
    found = {value for name, value in answer.items() if name == "errorCode"}
    return found.union(*map(_errors_of, answer.values()))


def _measured(world: CrowdedWorld, question: Question) -> dict[str, Any]:
    """The work of a request, of what comes behind it, and of the time after that."""
    frame = grown_frame(world, question)
    again = _behind(world, question.api) or frame
    first, second = world.line(), world.line()
    counts = []

    def counted(work: Callable[[], object]) -> None:
        before = METER.count
        work()
        counts.append(METER.count - before)

    def asked(line: Line, sent: bytes) -> None:
        world.send(line, sent)
        world.settle(line)

    counted(lambda: asked(first, frame))
    counted(lambda: asked(second, again))
    counted(lambda: world.linger(_LATER_MS))
    errors: set[int] = set()
    if first.frames:
        answer = read_response_frame(question.api, question.version, first.frames[0])[1]
        errors = _errors_of(answer)
    return {
        "counts": counts,
        "answers": len(first.frames),
        "closed": first.closed,
        "errors": sorted(errors),
    }


def excess_of(once: int, twice: int, four_times: int) -> float:
    """Work per pair of items: the coefficient of the square, 0 for whatever is linear."""
    return (four_times - 3 * twice + 2 * once) / (6 * ITEMS * ITEMS)


def _judged(worlds: list[CrowdedWorld], question: Question) -> dict[str, Any]:
    """What a question's requests cost, and what there is to say against it."""
    # The first world fills whatever the library remembers: codecs, hashes of names.
    _, *found = apart(lambda: [_measured(world, question) for world in worlds])
    counts = list(zip(*(each["counts"] for each in found), strict=True))
    excesses = [excess_of(*each) for each in counts]
    complaints = [
        f"{question}: {what} took {each}, {excess:.2f} a pair of items"
        for what, each, excess in zip(_COUNTED, counts, excesses, strict=True)
        if excess > EXCESS
    ]
    unanswered = [each["closed"] or "no answer" for each in found if each["answers"] != 1]
    return {
        "complaints": complaints,
        "silent": [f"{question}: {each}" for each in unanswered[:1]],
        "line": f"{question} {found[0]['errors']} {counts} {max(excesses):.3f}",
    }


def main() -> None:
    """Ask, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default=DEFAULT_PROFILE.name)
    parser.add_argument("--versions", choices=("newest", "edges", "all"), default="newest")
    parser.add_argument("--api", action="append")
    parser.add_argument("--verbose", action="store_true")
    wanted = parser.parse_args()
    profile = profile_named(wanted.profile)
    worlds = [CrowdedWorld(profile, size) for size in (4 * ITEMS, ITEMS, 2 * ITEMS, 4 * ITEMS)]
    gc.freeze()
    gc.disable()
    told: dict[str, Any] = {"asked": 0, "complaints": [], "silent": []}
    for api, (oldest, newest) in worlds[0].cluster.versions.ranges.items():
        if wanted.api and api.name not in wanted.api:
            continue
        versions = {"edges": (oldest, newest), "newest": (newest,)}.get(wanted.versions)
        for version in dict.fromkeys(versions or range(oldest, newest + 1)):
            for question in questions_of(api, version):
                judged = _judged(worlds, question)
                told["asked"] += 1
                told["silent"] += judged["silent"]
                if not _is_known_product(question, profile.name):
                    told["complaints"] += judged["complaints"]
                if wanted.verbose:
                    sys.stderr.write(judged["line"] + "\n")
    json.dump(told, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
