"""Conversion between texts and record values, as Connect's own converters do it.

Only strings are supported, which FileStream connectors use. The connector's setting names the
converter, else the worker's.

Source: kafka trunk, connect/api/.../storage/StringConverter.java, connect/json/.../JsonConverter
.java, fromConnectData and toConnectData; Worker.buildWorkerTask for whose setting counts.
"""

import json
from collections.abc import Mapping
from typing import Final

from coordinator_sim.connect.stores.json_converter import from_json, to_json
from coordinator_sim.errors import DataError

_PACKAGE: Final = "org.apache.kafka.connect."
STRING_CONVERTER: Final = f"{_PACKAGE}storage.StringConverter"
JSON_CONVERTER: Final = f"{_PACKAGE}json.JsonConverter"
_ALIASES: Final = {
    "StringConverter": STRING_CONVERTER,
    "String": STRING_CONVERTER,
    "JsonConverter": JSON_CONVERTER,
    "Json": JSON_CONVERTER,
}


class ValueConverter:
    """The converter of a task's values.

    Args:
        connector: The connector's settings.
        worker: The worker's properties.

    Raises:
        DataError: a converter that is unknown, or does not support strings.
    """

    def __init__(self, connector: Mapping[str, str], worker: Mapping[str, str]) -> None:
        settings = connector if "value.converter" in connector else worker
        named = settings.get("value.converter", JSON_CONVERTER)
        self._class = _ALIASES.get(named, named)
        if self._class not in (STRING_CONVERTER, JSON_CONVERTER):
            raise DataError(
                f"{_PACKAGE}errors.DataException: {named} does not convert strings here; use "
                f"{STRING_CONVERTER} or {JSON_CONVERTER}"
            )
        enabled = settings.get("value.converter.schemas.enable", "true")
        self._has_schema = enabled.strip().lower() == "true"

    def to_bytes(self, text: str) -> bytes:
        """Convert a line of text to a record's value."""
        if self._class == STRING_CONVERTER:
            return text.encode()
        if self._has_schema:
            return to_json({"schema": {"type": "string", "optional": False}, "payload": text})
        return to_json([text])[1:-1]

    def to_text(self, value: bytes | None) -> str | None:
        """Convert a record's value to text as FileStreamSink prints it; None for null.

        DEVIATION: a structured value is printed as JSON, not as Java's maps and structs print.

        Raises:
            DataError: the converter cannot read the bytes; the message is the task's trace.
        """
        if value is None:
            return None
        if self._class == STRING_CONVERTER:
            return value.decode(errors="replace")
        try:
            parsed = from_json(value)
        except DataError as error:
            raise DataError(
                f"{_PACKAGE}errors.DataException: Converting byte[] to Kafka Connect data failed "
                f"due to serialization error: {error}"
            ) from None
        if self._has_schema:
            if not isinstance(parsed, dict) or set(parsed) != {"schema", "payload"}:
                raise DataError(
                    f"{_PACKAGE}errors.DataException: JsonConverter with schemas.enable requires "
                    '"schema" and "payload" fields and may not contain additional fields. If you '
                    "are trying to deserialize plain JSON data, set schemas.enable=false in your "
                    "converter configuration."
                )
            parsed = parsed["payload"]
        if parsed is None or isinstance(parsed, str):
            return parsed
        return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)
