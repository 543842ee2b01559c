"""Record the answers of real brokers to raw requests of share groups.

    python -m tools.record_share_answers

writes `tests/data/shares/kafka-VERSION-API.jsonl`: a line for each request of the story, played in
version API of ShareFetch and ShareAcknowledge. It takes a minute and a half for each: a share
coordinator is asked for what it does not have, again and again.
"""

import tempfile
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.share_answers import SETTINGS
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


def transcript(version: str, api_version: int) -> str:
    """The whole story at a real broker."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(Path(folder), dict(SETTINGS), version) as broker,
    ):
        lines = ShareStory(lambda: RawClient(broker.bootstrap), api_version).play()
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Record all of them."""
    FOLDER.mkdir(exist_ok=True)
    for version, api_version in PLAYED:
        text = transcript(version, api_version)
        file_of(version, api_version).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
