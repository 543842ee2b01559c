"""Record the answers of real brokers to raw requests of share groups.

    python -m tools.record_share_answers [NAME...]

writes `tests/data/shares/NAME.jsonl`, a line for each answer of a story at a real broker; without
names all of them. The story of share groups is played in several releases and versions of
ShareFetch and ShareAcknowledge, and without a persister. It takes a minute and a half: a share
coordinator is asked for what it does not have, again and again. That of dead-letter queues takes
half a minute.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

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


class Recording(NamedTuple):
    """A story at a real broker.

    Args:
        version: Version of Kafka.
        what: What tells the recording from others of that version.
        settings: Settings of the broker.
        story: Makes the story of a function that connects to a broker.
    """

    version: str
    what: str
    settings: Mapping[str, str]
    story: Callable[[Callable[[], Connection]], ShareStory | DeadLetterStory]

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"kafka-{self.version}-{self.what}"

    @property
    def file(self) -> Path:
        """Where the answers are."""
        return FOLDER / f"{self.name}.jsonl"

    def played(self) -> list[str]:
        """Play it at a real broker."""
        with (
            tempfile.TemporaryDirectory() as folder,
            Broker(Path(folder), dict(self.settings), self.version) as broker,
        ):
            return self.story(lambda: RawClient(broker.bootstrap)).play()


_SECOND: Final = partial(ShareStory, version=2)
RECORDINGS: Final = (
    Recording(BROKER_VERSION, "2", SETTINGS, _SECOND),
    Recording(BROKER_VERSION, "1", SETTINGS, partial(ShareStory, version=1)),
    Recording(TOOLS_VERSION, "2", SETTINGS, _SECOND),
    Recording(OLDEST_VERSION, "2", SETTINGS, _SECOND),
    Recording(
        BROKER_VERSION,
        "no-persister",
        {**SETTINGS, "group.share.persister.class.name": ""},
        _SECOND,
    ),
    Recording(BROKER_VERSION, "dead-letters", QUEUE_SETTINGS, DeadLetterStory),
)
"""All stories."""


def main() -> None:
    """Record those that the command line names, or all of them."""
    recordings = {each.name: each for each in RECORDINGS}
    for name in sys.argv[1:] or recordings:
        if name not in recordings:
            sys.exit(f"no recording {name!r}: use one of {', '.join(recordings)}")
        text = "".join(f"{line}\n" for line in recordings[name].played())
        recordings[name].file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
