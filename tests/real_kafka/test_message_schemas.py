"""The recorded layouts of messages are those of Kafka's classes."""

import pytest

from coordinator_sim.messages.schema import schema_names
from tools import record_messages
from tools.record_message_schemas import FOLDER, VERSIONS, message_schemas

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("version", VERSIONS)
def test_the_recorded_layouts_are_still_those_of_kafka(version: str) -> None:
    """The everyday test of the tables needs no JVM, because this one compares them with Kafka's."""
    recorded = (FOLDER / f"kafka-{version}.jsonl").read_text("utf-8")

    assert message_schemas(version) == recorded


def test_the_schemas_are_still_those_inside_the_jars() -> None:
    """The data that all structs and codecs are made from."""
    recorded = dict(record_messages.recorded())

    assert sorted(recorded) == schema_names()
    for name, text in recorded.items():
        assert (record_messages.FOLDER / f"{name}.json").read_text("utf-8") == text, name
