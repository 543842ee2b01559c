"""Traces as JSON Lines: one row a line, columns that are not known left out, bytes as base64."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from coordinator_sim.errors import DataError
from coordinator_sim.trace.schema import EventRow, day_of

_RowT = TypeVar("_RowT", bound=msgspec.Struct)


class JsonLinesTable:
    """Writes one table of a trace as one file of JSON lines.

    Args:
        directory: Of the table; created with the first row.
        constants: Columns that every line starts with.
    """

    def __init__(self, directory: Path, constants: dict[str, str] | None = None) -> None:
        self._directory = directory
        self._constants = constants or {}
        self._encoder = msgspec.json.Encoder(order="deterministic")
        self._file: IO[bytes] | None = None
        self.count = 0
        """Rows written."""

    def write(self, row: msgspec.Struct) -> None:
        """Append a row."""
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = (self._directory / f"{self._directory.name}.jsonl").open("wb")
        if isinstance(row, EventRow):
            values = dict(self._constants)
            values["day"] = day_of(row.ts_us)
            head = self._encoder.encode(values)[:-1] + b","
        else:
            head = b"{"
        self._file.write(head + self._encoder.encode(row)[1:] + b"\n")
        self.count += 1

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._file is not None:
            self._file.close()


def read_lines(path: Path, row_type: type[_RowT]) -> Iterator[_RowT]:
    """The rows of a JSON Lines file in file order.

    Raises:
        DataError: A line is not a row of that type; names file and line.
    """
    decoder = msgspec.json.Decoder(row_type)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise DataError(f"{path}, line {number}: {error}") from error
