package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;

/** Messages and JSON by Kafka's generated converters; only the top level of a request is defaulted. */
final class Messages {
    private static final Map<Class<?>, MethodHandle> WRITE = new HashMap<>();
    private static final Map<Class<?>, MethodHandle> READ = new HashMap<>();
    private static final Map<ApiKeys, Map<Short, ObjectNode>> DEFAULTS = new EnumMap<>(ApiKeys.class);

    private Messages() { }

    static ApiMessage request(ApiKeys key, short version, JsonNode data) {
        ObjectNode body = JsonNodeFactory.instance.objectNode();
        body.setAll(DEFAULTS.computeIfAbsent(key, k -> new HashMap<>())
            .computeIfAbsent(version, v -> (ObjectNode) write(key.messageType.newRequest(), v)));
        data.properties().forEach(entry -> body.set(entry.getKey(), entry.getValue()));
        Class<?> type = key.messageType.newRequest().getClass();
        MethodHandle read = READ.computeIfAbsent(type, t -> converter(t, "read", MethodType.methodType(t, JsonNode.class, short.class)));
        return (ApiMessage) call(read, body, version);
    }

    static JsonNode write(ApiMessage message, short version) {
        Class<?> type = message.getClass();
        MethodHandle write = WRITE.computeIfAbsent(type, t -> converter(t, "write", MethodType.methodType(JsonNode.class, t, short.class)));
        return (JsonNode) call(write, message, version);
    }

    private static MethodHandle converter(Class<?> type, String method, MethodType signature) {
        try {
            return MethodHandles.lookup().findStatic(Class.forName(type.getName() + "JsonConverter"), method, signature);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object call(MethodHandle handle, Object message, short version) {
        try {
            return handle.invoke(message, version);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
