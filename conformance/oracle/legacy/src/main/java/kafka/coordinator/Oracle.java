package kafka.coordinator;

import kafka.network.RequestChannel;

import oracle.Bytes;
import oracle.Gathered;
import oracle.Lines;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ProtoUtils;
import org.apache.kafka.common.protocol.SecurityProtocol;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

/** One JSON command per line in, one JSON answer per line out; the operations are those of the other oracles. */
public final class Oracle extends Lines<World> {
    private static final Map<String, ApiKeys> APIS = new HashMap<>();
    private static final Map<String, String> OLD_ERRORS = Map.of(
        "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION",
        "COORDINATOR_NOT_AVAILABLE", "GROUP_COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR", "NOT_COORDINATOR_FOR_GROUP",
        "COORDINATOR_LOAD_IN_PROGRESS", "GROUP_LOAD_IN_PROGRESS",
        "UNKNOWN_SERVER_ERROR", "UNKNOWN");

    /** What is known of a request that is not answered yet. */
    private record Asked(JsonNode id, ApiKeys key, short version, boolean isWire) { }

    private final Map<RequestChannel.Request, Asked> open = new IdentityHashMap<>();

    public static void main(String[] args) throws IOException {
        for (ApiKeys key : ApiKeys.values()) APIS.put(key.name, key);
        new Oracle().serve();
    }

    @Override protected void run(JsonNode command, ObjectNode answer) throws Throwable {
        switch (command.get("op").asText()) {
            case "call" -> call(command);
            case "wire" -> submit(command, Bytes.frame(command), true);
            case "topics" -> topics(command);
            case "hold" -> { if (command.has("hw")) world.log.hold = command.get("hw").asBoolean(); world.drain(); }
            case "commit" -> each(command, p -> { world.log.commit(p); world.drain(); });
            case "fail" -> fail(command);
            case "append" -> append(command);
            case "beginLoad" -> each(command, world::beginLoad);
            case "encode" -> answer.put("frame", Bytes.base64(frame(command)));
            case "decode" -> decode(command, answer);
            case "stats" -> answer.put("timers", world.timer.size()).put("fired", world.timer.fired()).put("lost", world.timer.lost);
            default -> super.run(command, answer);
        }
    }

    @Override protected World begin(JsonNode command, Map<String, String> config, int partitions, long startMs) throws ReflectiveOperationException {
        open.clear();
        return new World(config, partitions, startMs, this::appended, this::answered);
    }

    private void call(JsonNode command) throws Exception { submit(command, frame(command), false); }

    private static ApiKeys key(JsonNode command) {
        ApiKeys key = APIS.get(command.get("api").asText());
        if (key == null) throw new IllegalArgumentException("0.10.2 has no " + command.get("api"));
        return key;
    }

    private static short version(JsonNode command, ApiKeys key) {
        return (short) command.path("v").asInt(ProtoUtils.latestVersion(key.id));
    }

    private static ByteBuffer frame(JsonNode command) {
        ApiKeys key = key(command);
        short version = version(command, key);
        var header = new RequestHeader(key.id, version, command.path("clientId").asText("client"), command.path("correlation").asInt(0));
        var body = StructJson.read(key.name, ProtoUtils.requestSchema(key.id, version), command.path("data"));
        ByteBuffer frame = ByteBuffer.allocate(header.sizeOf() + body.sizeOf());
        header.writeTo(frame);
        body.writeTo(frame);
        frame.flip();
        return frame;
    }

    private void submit(JsonNode command, ByteBuffer frame, boolean isWire) throws Exception {
        InetAddress host = InetAddress.getByName(command.path("host").asText("127.0.0.1"));
        var session = new RequestChannel.Session(KafkaPrincipal.ANONYMOUS, host);
        var request = new RequestChannel.Request(0, "1", session, frame, world.clock.ms,
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT);
        open.put(request, new Asked(command.get("id"), ApiKeys.forId(request.requestId()), request.header().apiVersion(), isWire));
        world.apis.handle(request);
        world.drain();
    }

    private void answered(RequestChannel.Response response) {
        Asked asked = open.remove(response.request());
        if (asked == null) return; // a second answer, after one that broke off
        ObjectNode reply = reply(asked.id()).put("api", asked.key().name).put("v", asked.version());
        try {
            Send send = response.responseSend();
            Gathered bytes = new Gathered();
            while (!send.completed()) send.writeTo(bytes);
            ByteBuffer frame = bytes.frame();
            if (asked.isWire()) reply.put("frame", Bytes.base64(frame));
            else reply.set("data", body(asked.key(), asked.version(), frame));
        } catch (IOException e) {
            reply.put("error", e.toString());
        }
        replies.add(reply);
    }

    private static ObjectNode body(ApiKeys key, int version, ByteBuffer frame) {
        ResponseHeader.parse(frame);
        return StructJson.write(key.name, ProtoUtils.parseResponse(key.id, version, frame));
    }

    private static void decode(JsonNode command, ObjectNode answer) {
        ApiKeys key = key(command);
        ByteBuffer frame = Bytes.frame(command);
        answer.set("data", body(key, version(command, key), frame));
    }

    private void topics(JsonNode command) {
        for (JsonNode topic : command.path("set")) world.setTopic(topic.get("name").asText(), topic.path("partitions").asInt(1));
        for (JsonNode name : command.path("remove")) world.removeTopic(name.asText());
    }

    private void fail(JsonNode command) {
        String name = command.get("append").asText();
        world.log.fail = Errors.valueOf(OLD_ERRORS.getOrDefault(name, name));
        world.log.failCount = command.path("count").asInt(1);
    }

    /** Puts records, as base64, into a log behind the coordinator's back. */
    private void append(JsonNode command) {
        int partition = partition(command);
        long timestamp = command.path("timestamp").asLong(world.clock.ms);
        for (JsonNode record : command.get("records"))
            world.log.write(partition, MemoryRecords.withRecords(TimestampType.CREATE_TIME, CompressionType.NONE,
                Record.create((byte) 1, TimestampType.CREATE_TIME, timestamp, Bytes.raw(record.get("key")), Bytes.raw(record.get("value")))));
    }

    private void appended(int partition, long offset, Record record) {
        ObjectNode out = JSON.objectNode().put("partition", partition).put("offset", offset).put("ts", record.timestamp());
        RecordJson.write(out, record);
        records.add(out);
    }
}
