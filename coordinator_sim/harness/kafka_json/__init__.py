"""Requests, responses and log records in the JSON form of Kafka's own converters.

Field names and the versions they exist in are those of Kafka's message schemas; bytes are base64.

Source: kafka trunk, clients/src/main/resources/common/message/*.json and the constructors of
JoinGroupResponse, LeaveGroupResponse and OffsetFetchResponse.
"""

from coordinator_sim.harness.kafka_json.converter import Json
from coordinator_sim.harness.kafka_json.frames import frame_to_json, json_to_frame
from coordinator_sim.harness.kafka_json.messages import (
    api_named,
    read_request,
    read_response,
    write_request,
    write_response,
)
from coordinator_sim.harness.kafka_json.records import (
    read_record,
    read_records,
    write_record,
    write_records,
)

__all__ = [
    "Json",
    "api_named",
    "frame_to_json",
    "json_to_frame",
    "read_record",
    "read_records",
    "read_request",
    "read_response",
    "write_record",
    "write_records",
    "write_request",
    "write_response",
]
