"""A program: librdkafka's mock cluster of one broker, which prints its address and serves.

The mock lives inside a client's process, and an assertion that fails there ends the process.
"""

import time
from typing import Final

from confluent_kafka import Producer

_PATIENCE_S: Final = 20
_LONG_S: Final = 3600


def main() -> None:
    """Serve until killed."""
    client = Producer({"test.mock.num.brokers": 1, "log_level": 4})
    broker = next(iter(client.list_topics(timeout=_PATIENCE_S).brokers.values()))
    print(f"{broker.host}:{broker.port}", flush=True)  # noqa: T201 - the parent reads it
    while True:
        time.sleep(_LONG_S)


if __name__ == "__main__":
    main()
