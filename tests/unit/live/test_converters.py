"""Lines as records' values: whose converter counts, and what it writes."""

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.live.work import JSON_CONVERTER, STRING_CONVERTER, ValueConverter

WITH_SCHEMA = {"value.converter": JSON_CONVERTER}
PLAIN = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "false"}
STRING = {"value.converter": STRING_CONVERTER}


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        (STRING, 'a"é'.encode()),
        (PLAIN, '"a\\"é"'.encode()),
        (WITH_SCHEMA, '{"schema":{"type":"string","optional":false},"payload":"a\\"é"}'.encode()),
    ],
)
def test_a_line_comes_back(settings: dict[str, str], written: bytes) -> None:
    """Each converter writes Java's bytes and reads them."""
    converter = ValueConverter(settings, {})

    assert converter.to_bytes('a"é') == written
    assert converter.to_text(written) == 'a"é'
    assert converter.to_text(None) is None


def test_the_connectors_converter_counts_before_the_workers() -> None:
    """The converter's own settings count: the worker's `schemas.enable` does not reach it."""
    mixed = ValueConverter(WITH_SCHEMA, PLAIN)

    assert mixed.to_bytes("x").startswith(b'{"schema"')
    assert ValueConverter({}, PLAIN).to_bytes("x") == b'"x"'


def test_bytes_of_another_converter_fail_with_a_trace() -> None:
    """The trace names Connect's exception."""
    with pytest.raises(DataError, match=r"errors\.DataException: JsonConverter with schemas"):
        ValueConverter(WITH_SCHEMA, {}).to_text(b'"x"')
    with pytest.raises(DataError, match=r"serialization error"):
        ValueConverter(PLAIN, {}).to_text(b"{")


def test_a_converter_without_strings_is_refused() -> None:
    """FileStream has nothing but strings."""
    with pytest.raises(DataError, match="ByteArrayConverter does not convert strings"):
        ValueConverter({"value.converter": "org.x.ByteArrayConverter"}, {})
