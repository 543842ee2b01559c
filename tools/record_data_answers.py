"""Record the answers of real brokers to the questions about records.

    python -m tools.record_data_answers

writes `tests/data/data_apis/kafka-VERSION.jsonl`: a line for each question.
"""

import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim_conformance.real_kafka.data_answers import ASKED, answered
from coordinator_sim_conformance.real_kafka.data_questions import Versions
from coordinator_sim_conformance.real_kafka.kafka import OLD_BROKER_VERSION, TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker

REPO: Final = Path(__file__).parents[1]
FOLDER: Final = REPO / "tests" / "data" / "data_apis"
OLDEST_VERSION: Final = "0.10.2.2"
_HIDDEN_SINCE: Final = 12
_BATCHES_SINCE: Final = 3
"""From 4.0 on Produce 0 to 2 are offered and refused, for librdkafka. Source: KAFKA-18659."""
VERSIONS: Final = (OLDEST_VERSION, OLD_BROKER_VERSION, TOOLS_VERSION)


def offered_by(client: RawClient) -> Versions:
    """Return the versions that a broker offers and our codec supports, of the APIs asked."""
    wanted = (*ASKED, ApiKey.CREATE_TOPICS, ApiKey.METADATA)
    offered = {
        each["apiKey"]: (each["minVersion"], each["maxVersion"])
        for each in client.call(ApiKey.API_VERSIONS, 0, {})["apiKeys"]
    }
    oldest, newest = offered[ApiKey.PRODUCE]
    if newest >= _HIDDEN_SINCE:
        offered[ApiKey.PRODUCE] = (max(oldest, _BATCHES_SINCE), newest)
    return {
        api: (offered[api][0], min(offered[api][1], newest_version(api)))
        for api in wanted
        if api in offered
    }


def transcript(version: str) -> str:
    """Return all questions with a real broker's answers."""
    with tempfile.TemporaryDirectory() as folder, _broker(version, Path(folder)) as broker:
        client = RawClient(broker.bootstrap)
        lines = list(answered(client, offered_by(client)))
        client.close()
    return "".join(f"{line}\n" for line in lines)


def _broker(version: str, folder: Path) -> AbstractContextManager[Broker | ZooKeeperBroker]:
    return (
        ZooKeeperBroker(folder, version)
        if version == OLDEST_VERSION
        else Broker(folder, version=version)
    )


def main() -> None:
    """Record all brokers."""
    FOLDER.mkdir(exist_ok=True)
    for version in VERSIONS:
        (FOLDER / f"kafka-{version}.jsonl").write_text(transcript(version), "utf-8")


if __name__ == "__main__":
    main()
