package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.JsonNode;

/** Records and JSON, by the converters that Kafka generates for them since 4.1. */
final class RecordJson {
    private RecordJson() { }

    static short type(CoordinatorRecord c) { return c.key().apiKey(); }
    static JsonNode key(CoordinatorRecord c) { return CoordinatorRecordJsonConverters.writeRecordKeyAsJson(c.key()); }
    static JsonNode value(CoordinatorRecord c) { return CoordinatorRecordJsonConverters.writeRecordValueAsJson(c.value().message(), c.value().version()); }

    static CoordinatorRecord read(short type, JsonNode keyData, JsonNode value) {
        ApiMessage key = CoordinatorRecordJsonConverters.readRecordKeyFromJson(keyData, type);
        if (!value.isObject()) return CoordinatorRecord.tombstone(key);
        short version = (short) value.get("version").asInt();
        return CoordinatorRecord.record(key, new ApiMessageAndVersion(
            CoordinatorRecordJsonConverters.readRecordValueFromJson(value.get("data"), type, version), version));
    }
}
