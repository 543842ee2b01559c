"""Record the layout of every message of the codec, from Kafka's own classes.

    python -m tools.record_message_schemas

writes `tests/data/schemas/kafka-VERSION.jsonl` from the clients of the newest release, which knows
the newest versions, and of 3.9.2, which still knows the oldest ones.
"""

from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.messages.catalogue import API_NAMES, CONTROL_APIS, DRAFTED_APIS
from coordinator_sim_conformance.real_kafka.kafka import (
    BROKER_VERSION,
    OLD_BROKER_VERSION,
    run_java,
)

REPO: Final = Path(__file__).parents[1]
FOLDER: Final = REPO / "tests" / "data" / "schemas"
VERSIONS: Final = (OLD_BROKER_VERSION, BROKER_VERSION)


def message_schemas(version: str) -> str:
    """Return one line of JSON for each message of a release.

    Raises:
        DataError: the release's classes have an unexpected form.
        MissingDependencyError: the JVM or the jars are missing.
    """
    source = REPO / "conformance" / "real_kafka" / "MessageSchemas.java"
    is_old = version == OLD_BROKER_VERSION
    absent = DRAFTED_APIS if is_old else CONTROL_APIS
    names = [name for api, name in API_NAMES.items() if api not in absent]
    done = run_java(version, str(source), *names)
    if done.returncode:
        raise DataError(f"MessageSchemas of {version}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def main() -> None:
    """Record both releases."""
    for version in VERSIONS:
        (FOLDER / f"kafka-{version}.jsonl").write_text(message_schemas(version), "utf-8")


if __name__ == "__main__":
    main()
