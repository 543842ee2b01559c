package kafka.coordinator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.Record;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Records of `__consumer_offsets` as JSON of the later, generated converters. */
final class RecordJson {
    private static final int GROUP_KEY = 2;

    private RecordJson() { }

    static void write(ObjectNode out, Record record) {
        ByteBuffer key = record.key();
        int type = key.getShort();
        ObjectNode data = out.putObject("key").put("type", type).putObject("data").put("group", string(key));
        if (type != GROUP_KEY) data.put("topic", string(key)).put("partition", key.getInt());
        if (record.hasNullValue()) {
            out.putNull("value");
            return;
        }
        ByteBuffer value = record.value();
        int version = value.getShort();
        ObjectNode fields = out.putObject("value").put("version", version).putObject("data");
        if (type == GROUP_KEY) group(fields, value, version);
        else offset(fields, value, version);
    }

    private static void offset(ObjectNode out, ByteBuffer value, int version) {
        out.put("offset", value.getLong()).put("metadata", string(value)).put("commitTimestamp", value.getLong());
        if (version == 1) out.put("expireTimestamp", value.getLong());
    }

    private static void group(ObjectNode out, ByteBuffer value, int version) {
        out.put("protocolType", string(value)).put("generation", value.getInt()).put("protocol", string(value)).put("leader", string(value));
        ArrayNode members = out.putArray("members");
        for (int left = value.getInt(); left > 0; left--) {
            ObjectNode member = members.addObject().put("memberId", string(value)).put("clientId", string(value)).put("clientHost", string(value));
            if (version > 0) member.put("rebalanceTimeout", value.getInt());
            member.put("sessionTimeout", value.getInt()).put("subscription", bytes(value)).put("assignment", bytes(value));
        }
    }

    private static String string(ByteBuffer from) {
        int length = from.getShort();
        if (length < 0) return null;
        byte[] text = new byte[length];
        from.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }

    private static String bytes(ByteBuffer from) {
        byte[] data = new byte[from.getInt()];
        from.get(data);
        return Base64.getEncoder().encodeToString(data);
    }
}
