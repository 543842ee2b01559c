"""Record the answers of real brokers to the stories about transactions.

    python -m tools.record_transactions

writes `tests/data/transactions/kafka-VERSION.jsonl`: a line with a story's name, then one for each
of its requests.
"""

import json
import tempfile
from pathlib import Path
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.real_kafka.kafka import OLD_BROKER_VERSION, TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.raw_client import RawClient
from coordinator_sim_conformance.real_kafka.transaction_session import PROPERTIES
from coordinator_sim_conformance.real_kafka.transaction_stories import told

REPO: Final = Path(__file__).parents[1]
FOLDER: Final = REPO / "tests" / "data" / "transactions"
VERSIONS: Final = (OLD_BROKER_VERSION, TOOLS_VERSION)


def offered_by(client: RawClient) -> dict[ApiKey, int]:
    """Return the newest version of each API that a broker offers."""
    known = {int(api) for api in ApiKey}
    answer = client.call(ApiKey.API_VERSIONS, 0, {})
    return {
        ApiKey(each["apiKey"]): each["maxVersion"]
        for each in answer["apiKeys"]
        if each["apiKey"] in known
    }


def transcript(version: str) -> str:
    """Return all stories with a real broker's answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(Path(folder), PROPERTIES, version) as broker,
    ):
        client = RawClient(broker.bootstrap)
        lines = []
        for name, requests in told(client, offered_by(client)):
            lines += [json.dumps({"story": name}), *requests]
        client.close()
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Record all brokers."""
    FOLDER.mkdir(exist_ok=True)
    for version in VERSIONS:
        (FOLDER / f"kafka-{version}.jsonl").write_text(transcript(version), "utf-8")


if __name__ == "__main__":
    main()
