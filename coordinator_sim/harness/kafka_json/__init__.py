"""Requests, responses and log records in the JSON form of Kafka's own converters.

Field names and the versions they exist in are those of Kafka's message schemas; bytes are base64.
"""

from coordinator_sim.harness.kafka_json.messages import (
    frame_to_json,
    json_to_frame,
    read_request,
    read_response,
    write_request,
    write_response,
    write_topic,
)
from coordinator_sim.harness.kafka_json.records import (
    read_record,
    read_records,
    write_record,
    write_records,
)
from coordinator_sim.messages.codec.json_form import Json

__all__ = [
    "Json",
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
    "write_topic",
]
