package kafka.coordinator.group;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.internals.generated.GroupMetadataValue;
import kafka.internals.generated.OffsetCommitValue;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Records of `__consumer_offsets` as JSON of the later, generated converters. */
final class RecordJson {
    private static final int GROUP_KEY = 2;

    private RecordJson() { }

    static void write(ObjectNode out, MutableRecordBatch batch, Record record) {
        if (batch.producerId() >= 0) out.put("producerId", batch.producerId()).put("producerEpoch", batch.producerEpoch());
        if (batch.isControlBatch()) {
            out.put("control", ControlRecordType.parse(record.key()).name());
            return;
        }
        ByteBuffer key = record.key().duplicate();
        int type = key.getShort();
        ObjectNode data = out.putObject("key").put("type", type).putObject("data").put("group", string(key));
        if (type != GROUP_KEY) data.put("topic", string(key)).put("partition", key.getInt());
        if (!record.hasValue()) {
            out.putNull("value");
            return;
        }
        ByteBuffer value = record.value().duplicate();
        short version = value.getShort();
        ObjectNode fields = out.putObject("value").put("version", version).putObject("data");
        if (type == GROUP_KEY) group(fields, new GroupMetadataValue(new ByteBufferAccessor(value), version), version);
        else offset(fields, new OffsetCommitValue(new ByteBufferAccessor(value), version), version);
    }

    private static void offset(ObjectNode out, OffsetCommitValue value, int version) {
        out.put("offset", value.offset());
        if (version >= 3) out.put("leaderEpoch", value.leaderEpoch());
        out.put("metadata", value.metadata()).put("commitTimestamp", value.commitTimestamp());
        if (version == 1) out.put("expireTimestamp", value.expireTimestamp());
    }

    private static void group(ObjectNode out, GroupMetadataValue value, int version) {
        out.put("protocolType", value.protocolType()).put("generation", value.generation()).put("protocol", value.protocol()).put("leader", value.leader());
        if (version >= 2) out.put("currentStateTimestamp", value.currentStateTimestamp());
        ArrayNode members = out.putArray("members");
        for (GroupMetadataValue.MemberMetadata member : value.members()) {
            ObjectNode node = members.addObject().put("memberId", member.memberId());
            if (version >= 3) node.put("groupInstanceId", member.groupInstanceId());
            node.put("clientId", member.clientId()).put("clientHost", member.clientHost());
            if (version >= 1) node.put("rebalanceTimeout", member.rebalanceTimeout());
            node.put("sessionTimeout", member.sessionTimeout()).put("subscription", base64(member.subscription())).put("assignment", base64(member.assignment()));
        }
    }

    private static String string(ByteBuffer from) {
        byte[] text = new byte[from.getShort()];
        from.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }

    private static String base64(byte[] bytes) { return Base64.getEncoder().encodeToString(bytes); }
}
