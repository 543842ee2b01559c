"""Record what real brokers of 0.10.2 answer to the requests of a controller.

    python -m tools.record_control_requests

writes `tests/data/control_requests/STORY.jsonl`, a line for each request.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.real_kafka.control_requests import answered, refused, shut_down
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker

FOLDER: Final = Path(__file__).parents[1] / "tests" / "data" / "control_requests"
_VERSION: Final = "0.10.2.2"
_SETTINGS: Final = {"auto.create.topics.enable": "false", "controlled.shutdown.enable": "false"}
_GUARDED: Final = {**_SETTINGS, "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer"}
STORIES: Final[dict[str, Callable[..., Iterator[str]]]] = {
    "answered": answered,
    "refused": refused,
    "shut_down": shut_down,
}
"""By name: requests for one broker, for one with an authorizer, for a controller and another."""


def transcript(story: str) -> str:
    """Return all requests of a story with the answers of real brokers."""
    with tempfile.TemporaryDirectory() as folder:
        return "".join(f"{line}\n" for line in _lines(story, Path(folder)))


def _lines(story: str, folder: Path) -> Iterator[str]:
    settings = _GUARDED if story == "refused" else _SETTINGS
    with ExitStack() as running:
        first = running.enter_context(ZooKeeperBroker(folder / "1", _VERSION, settings))
        brokers = [first]
        if story == "shut_down":
            joins = {"broker.id": "2", "zookeeper.connect": first.zookeeper}
            other = ZooKeeperBroker(folder / "2", _VERSION, {**settings, **joins})
            brokers.append(running.enter_context(other))
        clients = [RawClient(broker.bootstrap) for broker in brokers]
        yield from STORIES[story](*clients)
        for client in clients:
            client.close()


def main() -> None:
    """Record all stories."""
    FOLDER.mkdir(exist_ok=True)
    for story in STORIES:
        (FOLDER / f"{story}.jsonl").write_text(transcript(story), "utf-8")


if __name__ == "__main__":
    main()
