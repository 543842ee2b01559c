package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

import java.nio.ByteBuffer;

/** Records of `__consumer_offsets` as JSON of Kafka's generated converters. */
final class RecordJson {
    private static final short GROUP_KEY = 2;
    private static final short OFFSET_KEY = 1;

    private RecordJson() { }

    static ObjectNode of(int partition, MutableRecordBatch batch, Record record) {
        ObjectNode out = JsonNodeFactory.instance.objectNode();
        out.put("partition", partition).put("offset", record.offset()).put("ts", record.timestamp());
        if (batch.producerId() >= 0) out.put("producerId", batch.producerId()).put("producerEpoch", batch.producerEpoch());
        if (batch.isControlBatch()) {
            out.put("control", ControlRecordType.parse(record.key()).name());
            return out;
        }
        try {
            keyAndValue(out, record);
        } catch (RuntimeException e) { // a record of another kind, put there by hand
            out.put("undecoded", e.toString());
        }
        return out;
    }

    private static void keyAndValue(ObjectNode out, Record record) {
        ByteBuffer key = record.key().duplicate();
        short type = key.getShort();
        boolean isGroup = type == GROUP_KEY;
        // Offsets have two key versions of one form.
        ObjectNode written = out.putObject("key").put("type", isGroup ? GROUP_KEY : OFFSET_KEY);
        written.set("data", Messages.write(key(new ByteBufferAccessor(key), type), isGroup ? GROUP_KEY : OFFSET_KEY));
        if (!record.hasValue()) {
            out.putNull("value");
            return;
        }
        ByteBuffer value = record.value().duplicate();
        short version = value.getShort();
        ByteBufferAccessor fields = new ByteBufferAccessor(value);
        ApiMessage message = isGroup ? new GroupMetadataValue(fields, version) : new OffsetCommitValue(fields, version);
        out.putObject("value").put("version", version).set("data", Messages.write(message, version));
    }

    private static ApiMessage key(ByteBufferAccessor fields, short type) {
        return type == GROUP_KEY ? new GroupMetadataKey(fields, type) : new OffsetCommitKey(fields, type);
    }
}
