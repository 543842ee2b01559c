"""The source offsets of a cluster, read from the offset topic, and the commits of local tasks.

Source: kafka trunk, OffsetStorageReaderImpl.offsets, OffsetStorageWriter.doFlush.
"""

import asyncio
from collections.abc import Mapping

from coordinator_sim.connect.effects import Fetched, TopicRecord
from coordinator_sim.connect.stores.json_converter import from_json
from coordinator_sim.connect.stores.offset_store import offset_key, offset_value
from coordinator_sim.errors import DataError
from coordinator_sim.live.data_plane import DataPlane


class SourceOffsets:
    """The last value of every key of the offset topic.

    Args:
        plane: Writes records and looks up the topic's end.
        topic: The offset topic.
    """

    def __init__(self, plane: DataPlane, topic: str) -> None:
        self._plane = plane
        self._topic = topic
        self._values: dict[bytes, bytes] = {}
        self._positions: dict[int, int] = {}
        self._moved = asyncio.Event()

    @property
    def topic(self) -> str:
        """Name of the offset topic."""
        return self._topic

    def fetched(self, fetched: Fetched) -> None:
        """Take records read; those of other topics are ignored."""
        if fetched.topic != self._topic:
            return
        self._positions.update(fetched.positions)
        self._moved.set()
        for record in fetched.records:
            if not isinstance(record, TopicRecord) or record.key is None:
                continue
            if record.value is None:
                self._values.pop(record.key, None)
            else:
                self._values[record.key] = record.value

    async def offset_of(
        self, connector: str, partition: Mapping[str, object]
    ) -> dict[str, object] | None:
        """Return the offset of a source partition, after reading to the topic's present end.

        Raises:
            DataError: the end of the topic is not available, or the value is no offset.
        """
        ends = await self._plane.end_offsets(self._topic)
        while any(self._positions.get(number, 0) < end for number, end in ends.items()):
            self._moved.clear()
            await self._moved.wait()
        value = from_json(self._values.get(offset_key(connector, partition)))
        if value is not None and not isinstance(value, dict):
            raise DataError(f"the offset of {connector} {dict(partition)} is no map")
        return None if value is None else {**value}

    async def commit(
        self, connector: str, partition: Mapping[str, object], offset: Mapping[str, object]
    ) -> str | None:
        """Write an offset; return the name of an error, None when it is written."""
        outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def written(_offset: int | None, error: str | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        self._plane.write(
            self._topic, offset_key(connector, partition), offset_value(offset), written
        )
        return await outcome
