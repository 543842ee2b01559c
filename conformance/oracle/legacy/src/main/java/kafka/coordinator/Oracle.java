package kafka.coordinator;

import kafka.network.RequestChannel;
import kafka.utils.timer.SeededRandomProvider;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
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

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.GatheringByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.UUID;

/** One JSON command per line in, one JSON answer per line out; the operations are those of the other oracles. */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
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
    private World world;
    private ArrayNode replies;
    private ArrayNode records;

    public static void main(String[] args) throws IOException {
        SeededRandomProvider.install();
        for (ApiKeys key : ApiKeys.values()) APIS.put(key.name, key);
        Oracle oracle = new Oracle();
        OutputStream out = new BufferedOutputStream(System.out, 1 << 16);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isBlank()) continue;
            out.write(MAPPER.writeValueAsBytes(oracle.step(line)));
            out.write('\n');
            if (!in.ready()) out.flush(); // pipelined input is answered in large writes
        }
        out.flush();
    }

    private ObjectNode step(String line) {
        replies = JSON.arrayNode();
        records = JSON.arrayNode();
        ObjectNode answer = JSON.objectNode();
        try {
            JsonNode command = MAPPER.readTree(line);
            if (command.has("id")) answer.set("id", command.get("id"));
            run(command, answer);
        } catch (Throwable t) { // the driver is told, whatever it was
            answer.put("error", t.toString());
        }
        if (world != null) answer.put("now", world.clock.ms);
        if (!replies.isEmpty()) answer.set("replies", replies);
        if (!records.isEmpty()) answer.set("records", records);
        return answer;
    }

    private void run(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("op").asText()) {
            case "init" -> init(command);
            case "call" -> call(command);
            case "wire" -> submit(command, ByteBuffer.wrap(Base64.getDecoder().decode(command.get("frame").asText())), true);
            case "advance" -> world.advanceTo(world.clock.ms + command.get("ms").asLong());
            case "topics" -> topics(command);
            case "elect" -> each(command, world::elect);
            case "resign" -> each(command, world::resign);
            case "hold" -> { if (command.has("hw")) world.log.hold = command.get("hw").asBoolean(); world.drain(); }
            case "commit" -> each(command, p -> { world.log.commit(p); world.drain(); });
            case "fail" -> fail(command);
            case "append" -> append(command);
            case "partitionFor" -> answer.put("partition", world.coordinator.partitionFor(command.get("group").asText()));
            case "uuids" -> { for (JsonNode uuid : command.get("next")) SeededRandomProvider.script(UUID.fromString(uuid.asText())); }
            case "encode" -> answer.put("frame", StructJson.base64(frame(command)));
            case "decode" -> decode(command, answer);
            case "stats" -> answer.put("timers", world.timer.size()).put("fired", world.timer.fired()).put("lost", world.timer.lost);
            default -> throw new IllegalArgumentException("unknown op " + command.get("op"));
        }
    }

    private void init(JsonNode command) throws Exception {
        Map<String, String> config = new HashMap<>();
        command.path("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        SeededRandomProvider.seed(command.path("seed").asLong(0));
        open.clear();
        world = new World(config, command.path("partitions").asInt(50), command.path("startMs").asLong(1_000_000),
            this::appended, this::answered);
        if (command.path("elect").asBoolean(true)) for (int p = 0; p < world.partitions; p++) world.elect(p);
    }

    private interface OnPartition { void on(int partition); }

    private void each(JsonNode command, OnPartition action) {
        if (command.has("group")) action.on(world.coordinator.partitionFor(command.get("group").asText()));
        else if (command.has("partition")) action.on(command.get("partition").asInt());
        else for (int p = 0; p < world.partitions; p++) action.on(p);
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
        ObjectNode reply = JSON.objectNode();
        if (asked.id() != null) reply.set("id", asked.id());
        reply.put("at", world.clock.ms).put("api", asked.key().name).put("v", asked.version());
        try {
            ByteBuffer frame = bytes(response.responseSend());
            if (asked.isWire()) reply.put("frame", StructJson.base64(frame));
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
        ByteBuffer frame = ByteBuffer.wrap(Base64.getDecoder().decode(command.get("frame").asText()));
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
        int partition = command.has("group") ? world.coordinator.partitionFor(command.get("group").asText()) : command.get("partition").asInt();
        long timestamp = command.path("timestamp").asLong(world.clock.ms);
        for (JsonNode record : command.get("records"))
            world.log.write(partition, MemoryRecords.withRecords(TimestampType.CREATE_TIME, CompressionType.NONE,
                Record.create((byte) 1, TimestampType.CREATE_TIME, timestamp, RecordJson.raw(record.get("key")), RecordJson.raw(record.get("value")))));
    }

    private void appended(int partition, long offset, Record record) {
        ObjectNode out = JSON.objectNode().put("partition", partition).put("offset", offset).put("ts", record.timestamp());
        RecordJson.write(out, record);
        records.add(out);
    }

    /** A response frame without its length. */
    private static ByteBuffer bytes(Send send) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        GatheringByteChannel channel = new GatheringByteChannel() {
            @Override public long write(ByteBuffer[] sources, int offset, int length) {
                long count = 0;
                for (int i = offset; i < offset + length; i++) count += write(sources[i]);
                return count;
            }
            @Override public long write(ByteBuffer[] sources) { return write(sources, 0, sources.length); }
            @Override public int write(ByteBuffer source) {
                byte[] copy = new byte[source.remaining()];
                source.get(copy);
                out.writeBytes(copy);
                return copy.length;
            }
            @Override public boolean isOpen() { return true; }
            @Override public void close() { }
        };
        while (!send.completed()) send.writeTo(channel);
        ByteBuffer all = ByteBuffer.wrap(out.toByteArray());
        all.getInt();
        return all.slice();
    }
}
