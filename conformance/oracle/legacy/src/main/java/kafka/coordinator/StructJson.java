package kafka.coordinator;

import oracle.Bytes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;

import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Map;

/** The hand-made schemas of 0.10.2 as JSON with the field names of the later, generated messages. */
final class StructJson {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** Where camel case of the old name is not the new one; `Api.field` before plain `field`. */
    private static final Map<String, String> NAMES = Map.ofEntries(
        Map.entry("session_timeout", "sessionTimeoutMs"),
        Map.entry("rebalance_timeout", "rebalanceTimeoutMs"),
        Map.entry("group_protocols", "protocols"),
        Map.entry("protocol_name", "name"),
        Map.entry("protocol_metadata", "metadata"),
        Map.entry("group_protocol", "protocolName"),
        Map.entry("leader_id", "leader"),
        Map.entry("JoinGroup.member_metadata", "metadata"),
        Map.entry("OffsetCommit.group_generation_id", "generationIdOrMemberEpoch"),
        Map.entry("group_generation_id", "generationId"),
        Map.entry("group_assignment", "assignments"),
        Map.entry("member_assignment", "assignment"),
        Map.entry("DescribeGroups.member_assignment", "memberAssignment"),
        Map.entry("group_ids", "groups"),
        Map.entry("DescribeGroups.state", "groupState"),
        Map.entry("DescribeGroups.protocol", "protocolData"),
        Map.entry("retention_time", "retentionTimeMs"),
        Map.entry("responses", "topics"),
        Map.entry("partition_responses", "partitions"),
        Map.entry("topic", "name"),
        Map.entry("partition", "partitionIndex"),
        Map.entry("offset", "committedOffset"),
        Map.entry("timestamp", "commitTimestamp"),
        Map.entry("OffsetCommit.metadata", "committedMetadata"));

    private StructJson() { }

    private static String name(String api, String field) {
        String special = NAMES.getOrDefault(api + "." + field, NAMES.get(field));
        if (special != null) return special;
        StringBuilder camel = new StringBuilder();
        for (String word : field.split("_"))
            camel.append(camel.isEmpty() ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        return camel.toString();
    }

    static Struct read(String api, Schema schema, JsonNode node) {
        Struct struct = new Struct(schema);
        for (Field field : schema.fields()) {
            JsonNode value = node.get(name(api, field.name));
            if (api.equals("OffsetFetch") && field.name.equals("partitions")) value = node.get("partitionIndexes");
            if (value == null) {
                if (field.defaultValue == Field.NO_DEFAULT)
                    throw new IllegalArgumentException(api + " lacks field " + name(api, field.name));
                struct.set(field, field.defaultValue);
            } else struct.set(field, value(api, field.type, value));
        }
        return struct;
    }

    private static Object value(String api, Type type, JsonNode node) {
        if (node.isNull()) return null;
        if (type instanceof ArrayOf array) {
            Object[] items = new Object[node.size()];
            for (int i = 0; i < items.length; i++) items[i] = value(api, array.type(), node.get(i));
            return items;
        }
        if (type instanceof Schema schema) return node.isObject() ? read(api, schema, node) : single(schema, node);
        if (type == Type.INT16) return (short) node.asInt();
        if (type == Type.INT32) return node.asInt();
        if (type == Type.INT64) return node.asLong();
        if (type == Type.BYTES || type == Type.NULLABLE_BYTES) return ByteBuffer.wrap(Base64.getDecoder().decode(node.asText()));
        return node.asText();
    }

    /** A partition that the later schema has as a bare number. */
    private static Struct single(Schema schema, JsonNode node) {
        Struct struct = new Struct(schema);
        struct.set(schema.get(0), node.asInt());
        return struct;
    }

    static ObjectNode write(String api, Struct struct) {
        ObjectNode node = JSON.objectNode();
        for (Field field : struct.schema().fields()) node.set(name(api, field.name), node(api, field.type, struct.get(field)));
        return node;
    }

    private static JsonNode node(String api, Type type, Object value) {
        if (value == null) return JSON.nullNode();
        if (type instanceof ArrayOf array) {
            ArrayNode items = JSON.arrayNode();
            for (Object item : (Object[]) value) items.add(node(api, array.type(), item));
            return items;
        }
        if (value instanceof Struct struct) return write(api, struct);
        if (value instanceof ByteBuffer bytes) return JSON.textNode(Bytes.base64(bytes));
        if (value instanceof Short number) return JSON.numberNode(number);
        if (value instanceof Integer number) return JSON.numberNode(number);
        if (value instanceof Long number) return JSON.numberNode(number);
        return JSON.textNode(value.toString());
    }
}
