"""Every API's messages against an independent codec, kio, in the versions that it has."""

import re
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema import errors
from kio.schema.errors import ErrorCode as KioError
from kio.serial import entity_reader, entity_writer

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import API_NAMES, layout_of, newest_version
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.schema import Kind, Layout, VersionField
from coordinator_sim_conformance.field_frames import Fields, request_frame, response_frame
from tests.property.test_wire_round_trips import SIMPLE

pytestmark = pytest.mark.property

SCHEMAS: Final = Path(errors.__file__).parent
KNOWN_ERRORS: Final = st.sampled_from([error.value for error in KioError])
INSTANTS: Final = st.integers(0, 1 << 41)
"""Milliseconds: kio makes times of them, which end in the year 9999."""


def package_of(api: ApiKey) -> str:
    """Kio's package of an API's messages."""
    return re.sub("(?<!^)(?=[A-Z])", "_", API_NAMES[api]).lower()


def has_kio(api: ApiKey, version: int, kind: str) -> bool:
    """Whether kio has the version; looked up in its files, for importing them takes seconds."""
    return (SCHEMAS / package_of(api) / f"v{version}" / f"{kind.lower()}.py").is_file()


def kio_type(api: ApiKey, version: int, kind: str) -> type:
    """Kio's class of a message."""
    module = import_module(f"kio.schema.{package_of(api)}.v{version}.{kind.lower()}")
    found: type = getattr(module, API_NAMES[api] + kind)
    return found


COVERED: Final = [
    pytest.param(api, version, kind, id=f"{name}-{version}-{kind}")
    for api, name in API_NAMES.items()
    for version in range(newest_version(api) + 1)
    for kind in ("Request", "Response")
    if has_kio(api, version, kind)
]


def values(each: VersionField) -> st.SearchStrategy[Any]:
    """What a field may hold that kio has a value for."""
    field = each.field
    if field.is_error_code:
        drawn = KNOWN_ERRORS
    elif field.name.endswith(("Ms", "imestamp")):
        drawn = INSTANTS if field.kind is Kind.INT64 else st.integers(0, (1 << 31) - 1)
    elif each.layout is not None:
        drawn = fields(each.layout)
    else:
        drawn = SIMPLE[field.element or field.kind]
    if field.element is not None:
        drawn = st.lists(drawn, max_size=2)
    return st.none() | drawn if each.is_nullable else drawn


def fields(layout: Layout) -> st.SearchStrategy[Fields]:
    """A struct with every field of its version."""
    return st.fixed_dictionaries({each.field.name: values(each) for each in layout.present})


def written_again(kind: type, frame: bytes) -> bytes:
    """A frame that kio reads to its last byte, with the body as kio writes it."""
    _, start = entity_reader(kind.__header_schema__)(frame, 0)  # type: ignore[attr-defined]
    entity, size = entity_reader(kind)(frame, start)
    assert start + size == len(frame)
    buffer = BytesIO()
    write: Callable[[BytesIO, object], None] = entity_writer(kind)
    write(buffer, entity)
    return frame[:start] + buffer.getvalue()


@pytest.mark.parametrize(("api", "version", "kind"), COVERED)
@settings(max_examples=8)
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(
    api: ApiKey, version: int, kind: str, data: st.DataObject
) -> None:
    """Requests and responses with any values, tagged fields too."""
    response = kind == "Response"
    message = data.draw(fields(layout_of(api, version, response=response)))
    if response:
        frame = response_frame(api, version, 7, message)
    else:
        header = RequestHeader(api_key=api, api_version=version, correlation_id=7, client_id="c")
        frame = request_frame(header, message)
    theirs = kio_type(api, version, kind)

    assert written_again(theirs, frame) == frame
