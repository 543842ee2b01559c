"""Record the answers of real brokers to raw requests of share groups.

    python -m tools.record_share_answers

writes `tests/data/shares/kafka-VERSION-API.jsonl`: a line for each request of the story, played in
version API of ShareFetch and ShareAcknowledge. It takes a minute and a half for each: a share
coordinator is asked for what it does not have, again and again. The story of dead-letter queues is
`kafka-VERSION-dead-letters.jsonl`; it takes half a minute.
"""

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.real_kafka.dead_letter_story import (
    QUEUE_SETTINGS,
    DeadLetterStory,
)
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.share_answers import SETTINGS, Connection
from coordinator_sim_conformance.real_kafka.share_story import ShareStory

OLDEST_VERSION: Final = "4.2.1"
"""First line of releases with share groups."""
FOLDER: Final = Path(__file__).parents[1] / "tests" / "data" / "shares"
PLAYED: Final = (
    (BROKER_VERSION, 2),
    (BROKER_VERSION, 1),
    (TOOLS_VERSION, 2),
    (OLDEST_VERSION, 2),
)
"""Brokers, and versions of the APIs."""


def file_of(version: str, api_version: int) -> Path:
    """Where the answers of a broker are recorded."""
    return FOLDER / f"kafka-{version}-{api_version}.jsonl"


def queue_file_of(version: str) -> Path:
    """Where the answers of a broker about dead-letter queues are recorded."""
    return FOLDER / f"kafka-{version}-dead-letters.jsonl"


def transcript(version: str, api_version: int) -> str:
    """The whole story at a real broker."""
    return _played(version, SETTINGS, partial(ShareStory, version=api_version))


def queue_transcript(version: str) -> str:
    """The story of dead-letter queues at a real broker."""
    return _played(version, QUEUE_SETTINGS, DeadLetterStory)


def _played(
    version: str,
    settings: Mapping[str, str],
    story: Callable[[Callable[[], Connection]], ShareStory | DeadLetterStory],
) -> str:
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(Path(folder), dict(settings), version) as broker,
    ):
        lines = story(lambda: RawClient(broker.bootstrap)).play()
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Record all of them."""
    FOLDER.mkdir(exist_ok=True)
    queue_file_of(BROKER_VERSION).write_text(queue_transcript(BROKER_VERSION), "utf-8")
    for version, api_version in PLAYED:
        text = transcript(version, api_version)
        file_of(version, api_version).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
