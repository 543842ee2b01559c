"""Schemas of AddOffsetsToTxn, TxnOffsetCommit and WriteTxnMarkers.

Source: kafka trunk, clients/src/main/resources/common/message/{AddOffsetsToTxn,TxnOffsetCommit,
WriteTxnMarkers}*.json; WriteTxnMarkers 0 as in 3.9.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    int8,
    int16,
    int32,
    int32s,
    int64,
    optional,
    string,
    structs,
    throttle,
    uuid,
)

_OUTCOMES: Final = structs("partitions", (int32("partitionIndex"), int16("errorCode")))
_TOPIC: Final = (
    string("name", until=5, ignorable=True),
    uuid("topicId", since=6, ignorable=True),
)

ADD_OFFSETS_TO_TXN: Final = MessageSchema(
    api_key=ApiKey.ADD_OFFSETS_TO_TXN,
    name="AddOffsetsToTxn",
    newest=4,
    flexible_since=3,
    request=(
        string("transactionalId"),
        int64("producerId"),
        int16("producerEpoch"),
        string("groupId"),
    ),
    response=(throttle(0), int16("errorCode")),
)

TXN_OFFSET_COMMIT: Final = MessageSchema(
    api_key=ApiKey.TXN_OFFSET_COMMIT,
    name="TxnOffsetCommit",
    newest=6,
    flexible_since=3,
    request=(
        string("transactionalId"),
        string("groupId"),
        int64("producerId"),
        int16("producerEpoch"),
        int32("generationIdOrMemberEpoch", since=3, default=-1, former="generationId"),
        string("memberId", since=3),
        optional("groupInstanceId", 3),
        structs(
            "topics",
            (
                *_TOPIC,
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int64("committedOffset"),
                        int32("committedLeaderEpoch", since=2, default=-1, ignorable=True),
                        string("committedMetadata", nullable_since=0),
                    ),
                ),
            ),
        ),
    ),
    response=(throttle(0), structs("topics", (*_TOPIC, _OUTCOMES))),
)

WRITE_TXN_MARKERS: Final = MessageSchema(
    api_key=ApiKey.WRITE_TXN_MARKERS,
    name="WriteTxnMarkers",
    newest=2,
    flexible_since=1,
    request=(
        structs(
            "markers",
            (
                int64("producerId"),
                int16("producerEpoch"),
                boolean("transactionResult"),
                structs("topics", (string("name"), int32s("partitionIndexes"))),
                int32("coordinatorEpoch"),
                int8("transactionVersion", since=2, ignorable=True),
            ),
        ),
    ),
    response=(
        structs("markers", (int64("producerId"), structs("topics", (string("name"), _OUTCOMES)))),
    ),
)
