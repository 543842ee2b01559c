"""Every API's messages against an independent codec, kio, in the versions that it has."""

import re
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioError
from kio.serial import entity_reader, entity_writer

from coordinator_sim.wire.frames import RequestHeader, request_frame, response_frame
from coordinator_sim.wire.schema import Data, Kind, Layout, MessageSchema, Slot
from coordinator_sim.wire.schemas import SCHEMAS, layout_of
from tests.property.test_wire_round_trips import BITS, SIMPLE, integers

pytestmark = pytest.mark.property

KNOWN_ERRORS: Final = st.sampled_from([error.value for error in KioError])
INSTANTS: Final = st.integers(0, 1 << 41)
"""Milliseconds: kio makes times of them, which end in the year 9999."""


def kio_type(schema: MessageSchema, version: int, kind: str) -> type | None:
    """Kio's class of a message; None when it lacks the version."""
    package = re.sub("(?<!^)(?=[A-Z])", "_", schema.name).lower()
    try:
        module = import_module(f"kio.schema.{package}.v{version}.{kind.lower()}")
    except ModuleNotFoundError:
        return None
    found: type = getattr(module, schema.name + kind)
    return found


COVERED: Final = [
    pytest.param(schema, version, kind, id=f"{schema.name}-{version}-{kind}")
    for schema in SCHEMAS.values()
    for version in range(schema.newest + 1)
    for kind in ("Request", "Response")
    if kio_type(schema, version, kind) is not None
]


def values(slot: Slot) -> st.SearchStrategy[Any]:
    """What a field may hold that kio has a value for."""
    if slot.name.lower().endswith("errorcode"):
        drawn = KNOWN_ERRORS
    elif slot.name.endswith(("Ms", "imestamp")):
        drawn = INSTANTS if slot.kind is Kind.INT64 else st.integers(0, (1 << 31) - 1)
    elif slot.layout is not None:
        drawn = fields(slot.layout)
        if slot.kind is Kind.STRUCTS:
            drawn = st.lists(drawn, max_size=2)
    elif slot.kind in BITS:
        drawn = integers(BITS[slot.kind])
    else:
        drawn = SIMPLE[slot.kind]
    return st.none() | drawn if slot.nullable else drawn


def fields(layout: Layout) -> st.SearchStrategy[Data]:
    """A struct with every field of its version."""
    return st.fixed_dictionaries({slot.name: values(slot) for slot in layout.present})


def written_again(kind: type, frame: bytes) -> bytes:
    """A frame that kio reads to its last byte, with the body as kio writes it."""
    _, start = entity_reader(kind.__header_schema__)(frame, 0)  # type: ignore[attr-defined]
    entity, size = entity_reader(kind)(frame, start)
    assert start + size == len(frame)
    buffer = BytesIO()
    write: Callable[[BytesIO, object], None] = entity_writer(kind)
    write(buffer, entity)
    return frame[:start] + buffer.getvalue()


@pytest.mark.parametrize(("schema", "version", "kind"), COVERED)
@settings(max_examples=8)
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(
    schema: MessageSchema, version: int, kind: str, data: st.DataObject
) -> None:
    """Requests and responses with any values, tagged fields too."""
    response = kind == "Response"
    message = data.draw(fields(layout_of(schema.api_key, version, response=response)))
    if response:
        frame = response_frame(schema.api_key, version, 7, message)
    else:
        header = RequestHeader(
            api_key=schema.api_key, api_version=version, correlation_id=7, client_id="c"
        )
        frame = request_frame(header, message)
    theirs = kio_type(schema, version, kind)
    assert theirs is not None

    assert written_again(theirs, frame) == frame
