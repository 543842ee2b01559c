"""Schemas of the APIs of idempotent and transactional producers that no group needs.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{InitProducerId,
AddPartitionsToTxn,EndTxn,DescribeProducers,DescribeTransactions,ListTransactions}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    int16,
    int32,
    int32s,
    int64,
    int64s,
    optional,
    string,
    strings,
    structs,
    throttle,
)

INIT_PRODUCER_ID: Final = MessageSchema(
    api_key=ApiKey.INIT_PRODUCER_ID,
    name="InitProducerId",
    newest=6,
    flexible_since=2,
    request=(
        string("transactionalId", nullable_since=0),
        int32("transactionTimeoutMs"),
        int64("producerId", since=3, default=-1),
        int16("producerEpoch", since=3, default=-1),
        boolean("enable2Pc", since=6),
        boolean("keepPreparedTxn", since=6),
    ),
    response=(
        throttle(0),
        int16("errorCode"),
        int64("producerId", default=-1),
        int16("producerEpoch"),
        int64("ongoingTxnProducerId", since=6, default=-1),
        int16("ongoingTxnProducerEpoch", since=6, default=-1),
    ),
)

ADD_PARTITIONS_TO_TXN: Final = MessageSchema(
    api_key=ApiKey.ADD_PARTITIONS_TO_TXN,
    name="AddPartitionsToTxn",
    newest=5,
    flexible_since=3,
    request=(
        structs(
            "transactions",
            (
                string("transactionalId"),
                int64("producerId"),
                int16("producerEpoch"),
                boolean("verifyOnly"),
                structs("topics", (string("name"), int32s("partitions"))),
            ),
            since=4,
        ),
        string("v3AndBelowTransactionalId", until=3),
        int64("v3AndBelowProducerId", until=3),
        int16("v3AndBelowProducerEpoch", until=3),
        structs("v3AndBelowTopics", (string("name"), int32s("partitions")), until=3),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode", since=4, ignorable=True),
        structs(
            "resultsByTransaction",
            (
                string("transactionalId"),
                structs(
                    "topicResults",
                    (
                        string("name"),
                        structs(
                            "resultsByPartition",
                            (int32("partitionIndex"), int16("partitionErrorCode")),
                        ),
                    ),
                ),
            ),
            since=4,
        ),
        structs(
            "resultsByTopicV3AndBelow",
            (
                string("name"),
                structs(
                    "resultsByPartition", (int32("partitionIndex"), int16("partitionErrorCode"))
                ),
            ),
            until=3,
        ),
    ),
)

END_TXN: Final = MessageSchema(
    api_key=ApiKey.END_TXN,
    name="EndTxn",
    newest=5,
    flexible_since=3,
    request=(
        string("transactionalId"),
        int64("producerId"),
        int16("producerEpoch"),
        boolean("committed"),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        int64("producerId", since=5, default=-1, ignorable=True),
        int16("producerEpoch", since=5, default=-1, ignorable=True),
    ),
)

DESCRIBE_PRODUCERS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_PRODUCERS,
    name="DescribeProducers",
    newest=0,
    flexible_since=0,
    request=(structs("topics", (string("name"), int32s("partitionIndexes"))),),
    response=(
        int32("throttleTimeMs"),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int16("errorCode"),
                        optional("errorMessage", 0),
                        structs(
                            "activeProducers",
                            (
                                int64("producerId"),
                                int32("producerEpoch"),
                                int32("lastSequence", default=-1),
                                int64("lastTimestamp", default=-1),
                                int32("coordinatorEpoch"),
                                int64("currentTxnStartOffset", default=-1),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_TRANSACTIONS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_TRANSACTIONS,
    name="DescribeTransactions",
    newest=0,
    flexible_since=0,
    request=(strings("transactionalIds"),),
    response=(
        int32("throttleTimeMs"),
        structs(
            "transactionStates",
            (
                int16("errorCode"),
                string("transactionalId"),
                string("transactionState"),
                int32("transactionTimeoutMs"),
                int64("transactionStartTimeMs"),
                int64("producerId"),
                int16("producerEpoch"),
                structs("topics", (string("topic"), int32s("partitions"))),
            ),
        ),
    ),
)

LIST_TRANSACTIONS: Final = MessageSchema(
    api_key=ApiKey.LIST_TRANSACTIONS,
    name="ListTransactions",
    newest=2,
    flexible_since=0,
    request=(
        strings("stateFilters"),
        int64s("producerIdFilters"),
        int64("durationFilter", since=1, default=-1),
        optional("transactionalIdPattern", 2),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        strings("unknownStateFilters"),
        structs(
            "transactionStates",
            (string("transactionalId"), int64("producerId"), string("transactionState")),
        ),
    ),
)
