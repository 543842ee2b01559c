"""Names of the columns that transforms share; a column of only one transform is named there."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

TRACE_ID: Final = "trace_id"
CLUSTER_ID: Final = "cluster_id"
GROUP_ID: Final = "group_id"
INCARNATION: Final = "incarnation"
GENERATION: Final = "generation"
ORDINAL: Final = "ordinal"
EVENT: Final = "event"
TS_US: Final = "ts_us"
MEMBER_ID: Final = "member_id"
MEMBER_KEY: Final = "member_key"
RESOURCE: Final = "resource"
PROTOCOL_TYPE: Final = "protocol_type"
PROTOCOL_NAME: Final = "protocol_name"
REASON: Final = "reason"
MEMBERS: Final = "members"
REBALANCE_NO: Final = "rebalance_no"
START_US: Final = "start_us"
JOIN_DONE_US: Final = "join_done_us"
SYNC_US: Final = "sync_us"
END_US: Final = "end_us"
OUTCOME: Final = "outcome"
FOLLOWUP: Final = "followup"
FROM_US: Final = "from_us"
TO_US: Final = "to_us"
RESOURCE_LIST_ID: Final = "resource_list_id"

GROUP_HASH: Final = "group_hash"

GROUP_KEY: Final = (TRACE_ID, CLUSTER_ID, GROUP_ID)
"""A group of one run."""
LIFE_KEY: Final = (*GROUP_KEY, INCARNATION)
"""One incarnation of a group."""
GENERATION_KEY: Final = (*LIFE_KEY, GENERATION)
"""One generation."""

_KINDS: Final = {
    "text": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "texts": pa.list_(pa.string()),
}


def schema_with(columns: Iterable[str]) -> pa.Schema:
    """Return a schema of columns that are declared by kind, as `text path kind` and `long lines`.

    Args:
        columns: A kind (`text`, `int`, `long`, `real`, `flag`, `texts`) and names, in order.
    """
    declared = (each.split(" ") for each in columns)
    return pa.schema([(name, _KINDS[kind]) for kind, *names in declared for name in names])


def arrays_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of rows, whose values are in the order of the schema."""
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    return [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
