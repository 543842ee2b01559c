package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.JsonNode;

/** Records and JSON in 4.0: a key's schema version is its type, and each message has a converter of its own. */
final class RecordJson {
    private RecordJson() { }

    static short type(CoordinatorRecord c) { return c.key().version(); }
    static JsonNode key(CoordinatorRecord c) { return write(c.key()); }
    static JsonNode value(CoordinatorRecord c) { return write(c.value()); }

    static CoordinatorRecord read(short type, JsonNode keyData, JsonNode value) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        ApiMessageAndVersion key = new ApiMessageAndVersion(read(serde.apiMessageKeyFor(type), keyData, type), type);
        if (!value.isObject()) return new CoordinatorRecord(key, null);
        short version = (short) value.get("version").asInt();
        return new CoordinatorRecord(key, new ApiMessageAndVersion(read(serde.apiMessageValueFor(type), value.get("data"), version), version));
    }

    private static JsonNode write(ApiMessageAndVersion m) {
        Class<?> type = m.message().getClass();
        try {
            return (JsonNode) converter(type).getMethod("write", type, short.class).invoke(null, m.message(), m.version());
        } catch (ReflectiveOperationException e) { throw new IllegalStateException(e); }
    }

    private static ApiMessage read(ApiMessage blank, JsonNode data, short version) {
        try {
            return (ApiMessage) converter(blank.getClass()).getMethod("read", JsonNode.class, short.class).invoke(null, data, version);
        } catch (ReflectiveOperationException e) { throw new IllegalStateException(e); }
    }

    private static Class<?> converter(Class<?> type) throws ClassNotFoundException { return Class.forName(type.getName() + "JsonConverter"); }
}
