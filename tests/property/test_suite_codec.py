"""The suite's wire side, which is kio's codec, says in Kafka's JSON what ours says."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.harness.kafka_json import frame_to_json
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.messages.catalogue import API_NAMES, layout_of, newest_version
from coordinator_sim_conformance.field_frames import response_frame
from coordinator_sim_conformance.targets.target import MalformedAnswer
from coordinator_sim_conformance.wire import frames
from coordinator_sim_conformance.wire.layouts import LAYOUTS
from tests.property.test_wire_against_kio import fields, has_kio

pytestmark = pytest.mark.property

SPOKEN: Final = [
    pytest.param(api, version, id=f"{API_NAMES[api]}-{version}")
    for api in sorted(GROUP_APIS - {ApiKey.METADATA})
    for version in range(newest_version(api) + 1)
    if has_kio(api, version, "Response") or (API_NAMES[api], version) in LAYOUTS
]
ANSWERS: Final = 7
"""Correlation id of every answer here."""


@pytest.mark.parametrize(("api", "version"), SPOKEN)
@settings(max_examples=8)
@given(data=st.data())
def test_an_answer_is_the_same_json_by_both_codecs(
    api: ApiKey, version: int, data: st.DataObject
) -> None:
    """Any answer of a group API, with every field of its version."""
    message = data.draw(fields(layout_of(api, version, response=True)))
    frame = response_frame(api, version, ANSWERS, message)

    theirs = frames.answer_of(API_NAMES[api], version, frame, correlation_id=ANSWERS)

    ours = frame_to_json(API_NAMES[api], version, frame, correlation_id=ANSWERS)
    if "protocolName" in theirs:  # An empty name and none are the same to a Java client.
        theirs["protocolName"] = theirs["protocolName"] or None
        ours["protocolName"] = ours["protocolName"] or None
    assert theirs == ours


@pytest.mark.parametrize(("api", "version"), SPOKEN[:: len(SPOKEN) // 6])
@settings(max_examples=40)
@given(data=st.data(), cut=st.integers(0, 1 << 16), tail=st.binary(max_size=4))
def test_a_damaged_answer_is_refused_or_read_never_a_crash(
    api: ApiKey, version: int, data: st.DataObject, cut: int, tail: bytes
) -> None:
    """Cut and lengthened frames."""
    message = data.draw(fields(layout_of(api, version, response=True)))
    frame = response_frame(api, version, ANSWERS, message)
    damaged = frame[: cut % (len(frame) + 1)] + tail

    try:
        frames.answer_of(API_NAMES[api], version, damaged, correlation_id=ANSWERS)
    except MalformedAnswer:
        assert damaged != frame
