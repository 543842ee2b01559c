package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorService;
import org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import oracle.Bytes;
import oracle.Lines;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The operations of a world of share partitions. */
final class ShareOracle extends Lines<ShareWorld> {
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();

    @Override protected void run(JsonNode cmd, ObjectNode answer) throws Throwable {
        switch (cmd.get("op").asText()) {
            case "call" -> call(cmd);
            case "topics" -> Oracle.topics(world, cmd);
            case "features" -> {
                var d = world.delta();
                d.replay(new FeatureLevelRecord().setName("share.version").setFeatureLevel((short) cmd.get("share").asInt()));
                world.publish(d);
            }
            case "hold" -> { world.log.hold = cmd.get("hw").asBoolean(); world.drain(); }
            case "commit" -> each(cmd, p -> { world.log.commit(tp(p), cmd.has("offset") ? cmd.get("offset").asLong() : world.log.part(p).end); world.drain(); });
            case "fail" -> {
                if (cmd.has("append")) { world.log.fail = Errors.valueOf(cmd.get("append").asText()); world.log.failCount = cmd.path("count").asInt(1); }
                if (cmd.has("deletions")) world.log.failDeletions = cmd.get("deletions").asInt();
            }
            default -> super.run(cmd, answer);
        }
        if (world.log.deletions.isEmpty()) return;
        ArrayNode deleted = answer.putArray("deleted");
        for (long[] each : world.log.deletions) deleted.addObject().put("partition", each[0]).put("before", each[1]);
        world.log.deletions.clear();
    }

    @Override protected ShareWorld begin(JsonNode cmd, Map<String, String> config, int partitions, long startMs) throws Exception {
        return new ShareWorld(config, partitions, startMs, this::appended);
    }

    private static TopicPartition tp(int p) { return new TopicPartition(Topic.SHARE_GROUP_STATE_TOPIC_NAME, p); }

    private void call(JsonNode cmd) throws Throwable {
        ShareCoordinatorService s = world.service;
        short v = (short) cmd.get("v").asInt();
        JsonNode data = cmd.get("data");
        switch (cmd.get("api").asText()) {
            case "InitializeShareGroupState" -> reply(cmd, v, s.initializeState(null, (InitializeShareGroupStateRequestData) Oracle.read(InitializeShareGroupStateRequestData.class, data, v)));
            case "ReadShareGroupState" -> reply(cmd, v, s.readState(null, (ReadShareGroupStateRequestData) Oracle.read(ReadShareGroupStateRequestData.class, data, v)));
            case "WriteShareGroupState" -> reply(cmd, v, s.writeState(null, (WriteShareGroupStateRequestData) Oracle.read(WriteShareGroupStateRequestData.class, data, v)));
            case "DeleteShareGroupState" -> reply(cmd, v, s.deleteState(null, (DeleteShareGroupStateRequestData) Oracle.read(DeleteShareGroupStateRequestData.class, data, v)));
            case "ReadShareGroupStateSummary" -> reply(cmd, v, s.readStateSummary(null, (ReadShareGroupStateSummaryRequestData) Oracle.read(ReadShareGroupStateSummaryRequestData.class, data, v)));
            default -> throw new IllegalArgumentException("not a share coordinator api: " + cmd.get("api"));
        }
        world.drain();
    }

    private void reply(JsonNode cmd, short v, CompletableFuture<? extends ApiMessage> answer) {
        JsonNode id = cmd.get("id");
        answer.whenComplete((data, e) -> {
            ObjectNode r = reply(id).put("api", cmd.get("api").asText()).put("v", v);
            try {
                if (e != null) r.put("error", e.toString());
                else r.set("data", Oracle.write(data, v));
            } catch (Throwable t) { r.put("error", t.toString()); }
            replies.add(r);
        });
    }

    private void appended(int partition, MutableRecordBatch batch, Record record) {
        ObjectNode r = JSON.objectNode().put("partition", partition).put("offset", record.offset()).put("base", batch.baseOffset()).put("ts", record.timestamp());
        CoordinatorRecord c = serde.deserialize(record.key().duplicate(), record.hasValue() ? record.value().duplicate() : null);
        ObjectNode key = r.putObject("key").put("type", c.key().apiKey());
        key.set("data", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(c.key()));
        if (c.value() == null) r.putNull("value");
        else r.putObject("value").put("version", c.value().version())
            .set("data", CoordinatorRecordJsonConverters.writeRecordValueAsJson(c.value().message(), c.value().version()));
        r.put("keyBytes", Bytes.base64(record.key()));
        r.put("valueBytes", record.hasValue() ? Bytes.base64(record.value()) : null);
        records.add(r);
    }
}
