"""An OffsetFetch of several groups, each on its own offsets partition.

Each group is read alone, and may fail alone; the request is answered when all are read.

Source: kafka trunk, KafkaApis.handleOffsetFetchRequest and GroupCoordinatorService.fetchOffsets.
"""

from dataclasses import dataclass
from typing import Protocol

from coordinator_sim.coordinator.runtime import (
    ACTIVE,
    Effect,
    Partition,
    Runtime,
    fetch_error,
    partition_error,
)
from coordinator_sim.coordinator.tracing import trace_fetch
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)


class FetchGroup(Protocol):
    """Reads one group's offsets."""

    def __call__(
        self, partition: Partition, wanted: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """What is there now; with `require_stable` not what an open transaction may change."""
        ...


class FetchUnderWay:
    """One OffsetFetch request, and the results of the groups that were read so far.

    Args:
        fetch_group: How this coordinator reads a group.
    """

    __slots__ = ("_context", "_fetch_group", "_found", "_missing_count", "_request", "_runtime")

    def __init__(
        self,
        runtime: Runtime,
        request: OffsetFetchRequest,
        context: RequestContext,
        fetch_group: FetchGroup,
    ) -> None:
        self._runtime = runtime
        self._fetch_group = fetch_group
        self._request = request
        self._context = context
        self._found: list[OffsetFetchResponseGroup | None] = [None] * len(request.groups)
        self._missing_count = len(request.groups)

    def start(self) -> None:
        """Read every group; in Java a require-stable read waits for the writes before it."""
        runtime = self._runtime
        stable = self._request.require_stable
        waits = stable and runtime.profile.has_coordinator_runtime
        for index, wanted in enumerate(self._request.groups):
            partition = runtime.partitions.get(runtime.partition_index(wanted.group_id))
            if partition is None or partition.state is not ACTIVE:
                error = partition_error(partition, runtime.profile)
                self.found(
                    index, OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error)
                )
                continue
            group = self._fetch_group(partition, wanted, require_stable=stable)
            if waits and group.error_code is ErrorCode.NONE:
                runtime.submit(partition, None, Effect(follow=FetchOne(self, index, group)))
            else:
                self.found(index, group)
        if not self._request.groups:
            self._answer()

    def found(self, index: int, group: OffsetFetchResponseGroup) -> None:
        """One group is read; answer when it was the last."""
        self._found[index] = group
        self._missing_count -= 1
        if self._missing_count == 0:
            self._answer()

    def _answer(self) -> None:
        groups = tuple(group for group in self._found if group is not None)
        response = OffsetFetchResponse(groups=groups)
        self._runtime.reply(self._context.token, response)
        if self._runtime.tracing:
            trace_fetch(self._runtime, self._context, response)


@dataclass(slots=True, eq=False)
class FetchOne:
    """One group of a require-stable fetch, read and waiting for the log."""

    fetch: FetchUnderWay
    index: int
    group: OffsetFetchResponseGroup

    def finish(self, error: ErrorCode) -> None:
        """What was read is committed, or will not be in time."""
        if error is not ErrorCode.NONE:
            failed = OffsetFetchResponseGroup(
                group_id=self.group.group_id, error_code=fetch_error(error)
            )
            self.fetch.found(self.index, failed)
        else:
            self.fetch.found(self.index, self.group)
