package kafka.coordinator.group;

import kafka.network.RequestChannel;
import kafka.utils.timer.SeededRandomProvider;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.network.TransferableChannel;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

import scala.Option;

/** One JSON command per line in, one JSON answer per line out; the operations are those of the other oracles. */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final Map<String, ApiKeys> APIS = new HashMap<>();

    /** What is known of a request that is not answered yet. */
    private record Asked(JsonNode id, RequestHeader header, boolean isWire) { }

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
            case "call" -> submit(command, frame(command), false);
            case "wire" -> submit(command, ByteBuffer.wrap(Base64.getDecoder().decode(command.get("frame").asText())), true);
            case "advance" -> world.advanceTo(world.clock.ms + command.get("ms").asLong());
            case "topics" -> topics(command);
            case "elect" -> each(command, p -> world.elect(p, command.path("epoch").asInt(1)));
            case "resign" -> each(command, p -> world.resign(p, command.has("epoch") ? Option.apply(command.get("epoch").asInt()) : Option.empty()));
            case "hold" -> { if (command.has("hw")) world.log.hold = command.get("hw").asBoolean(); world.drain(); }
            case "commit" -> each(command, p -> { world.log.commit(p); world.drain(); });
            case "fail" -> fail(command);
            case "append" -> append(command);
            case "endTxn" -> endTransaction(command);
            case "partitionFor" -> answer.put("partition", world.coordinator.partitionFor(command.get("group").asText()));
            case "uuids" -> { for (JsonNode uuid : command.get("next")) SeededRandomProvider.script(UUID.fromString(uuid.asText())); }
            case "encode" -> answer.put("frame", base64(frame(command)));
            case "decode" -> answer.set("data", body(header(command), ByteBuffer.wrap(Base64.getDecoder().decode(command.get("frame").asText()))));
            case "stats" -> answer.put("timers", world.timer.size()).put("fired", world.timer.fired()).put("lost", world.timer.lost);
            default -> throw new IllegalArgumentException("unknown op " + command.get("op"));
        }
    }

    private void init(JsonNode command) throws ReflectiveOperationException {
        Map<String, String> config = new HashMap<>();
        command.path("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        SeededRandomProvider.seed(command.path("seed").asLong(0));
        open.clear();
        world = new World(config, command.path("partitions").asInt(50), command.path("startMs").asLong(1_000_000),
            this::appended, this::answered);
        if (command.path("elect").asBoolean(true)) for (int p = 0; p < world.partitions; p++) world.elect(p, 1);
    }

    private interface OnPartition { void on(int partition); }

    private void each(JsonNode command, OnPartition action) {
        if (command.has("group")) action.on(world.coordinator.partitionFor(command.get("group").asText()));
        else if (command.has("partition")) action.on(command.get("partition").asInt());
        else for (int p = 0; p < world.partitions; p++) action.on(p);
    }

    private static RequestHeader header(JsonNode command) {
        ApiKeys key = APIS.get(command.get("api").asText());
        if (key == null) throw new IllegalArgumentException("2.8 has no " + command.get("api"));
        return new RequestHeader(key, (short) command.path("v").asInt(key.latestVersion()), command.path("clientId").asText("client"),
            command.path("correlation").asInt(0));
    }

    private static ByteBuffer frame(JsonNode command) {
        RequestHeader header = header(command);
        var body = Messages.request(header.apiKey(), header.apiVersion(), command.path("data"));
        return RequestUtils.serialize(header.data(), header.headerVersion(), body, header.apiVersion());
    }

    private void submit(JsonNode command, ByteBuffer frame, boolean isWire) throws Exception {
        RequestHeader header = RequestHeader.parse(frame);
        InetAddress host = InetAddress.getByName(command.path("host").asText("127.0.0.1"));
        var context = new RequestContext(header, "1", host, KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        var request = new RequestChannel.Request(0, context, world.clock.nanoseconds(), MemoryPool.NONE, frame, null, Option.empty());
        open.put(request, new Asked(command.get("id"), header, isWire));
        world.apis.handle(request);
        world.drain();
    }

    private void answered(RequestChannel.Response response) {
        Asked asked = open.remove(response.request());
        if (asked == null) return; // a second answer, after one that broke off
        ObjectNode reply = JSON.objectNode();
        if (asked.id() != null) reply.set("id", asked.id());
        reply.put("at", world.clock.ms).put("api", asked.header().apiKey().name).put("v", asked.header().apiVersion());
        try {
            ByteBuffer frame = bytes(((RequestChannel.SendResponse) response).responseSend());
            if (asked.isWire()) reply.put("frame", base64(frame));
            else reply.set("data", body(asked.header(), frame));
        } catch (IOException e) {
            reply.put("error", e.toString());
        }
        replies.add(reply);
    }

    private static JsonNode body(RequestHeader header, ByteBuffer frame) {
        return Messages.write(AbstractResponse.parseResponse(frame, header).data(), header.apiVersion());
    }

    private void topics(JsonNode command) {
        for (JsonNode topic : command.path("set")) world.setTopic(topic.get("name").asText(), topic.path("partitions").asInt(1));
        for (JsonNode name : command.path("remove")) world.removeTopic(name.asText());
    }

    private void fail(JsonNode command) {
        world.log.fail = Errors.valueOf(command.get("append").asText());
        world.log.failCount = command.path("count").asInt(1);
    }

    /** The marker goes into the log, then the coordinator hears of it, as KafkaApis does it. */
    private void endTransaction(JsonNode command) {
        JsonNode id = command.get("id");
        boolean isCommit = command.get("commit").asBoolean();
        long producer = command.get("producerId").asLong();
        MemoryRecords marker = MemoryRecords.withEndTransactionMarker(world.clock.ms, producer, (short) command.path("producerEpoch").asInt(0),
            new EndTransactionMarker(isCommit ? ControlRecordType.COMMIT : ControlRecordType.ABORT, command.path("coordinatorEpoch").asInt(0)));
        world.endTransaction(command.get("group").asText(), producer, marker, isCommit ? TransactionResult.COMMIT : TransactionResult.ABORT, error -> {
            ObjectNode reply = JSON.objectNode();
            if (id != null) reply.set("id", id);
            replies.add(reply.put("at", world.clock.ms).put("api", "EndTxnMarker").put("error", error == Errors.NONE ? null : error.name()));
        });
    }

    /** Puts records, as base64, into a log behind the coordinator's back. */
    private void append(JsonNode command) {
        int partition = command.has("group") ? world.coordinator.partitionFor(command.get("group").asText()) : command.get("partition").asInt();
        long timestamp = command.path("timestamp").asLong(world.clock.ms);
        List<SimpleRecord> list = new ArrayList<>();
        for (JsonNode record : command.get("records")) list.add(new SimpleRecord(timestamp, raw(record.get("key")), raw(record.get("value"))));
        world.log.write(partition, MemoryRecords.withRecords(CompressionType.NONE, list.toArray(new SimpleRecord[0])));
    }

    private static byte[] raw(JsonNode node) { return node != null && node.isTextual() ? Base64.getDecoder().decode(node.asText()) : null; }

    private void appended(int partition, MutableRecordBatch batch, Record record) {
        ObjectNode out = JSON.objectNode().put("partition", partition).put("offset", record.offset()).put("ts", record.timestamp());
        RecordJson.write(out, batch, record);
        records.add(out);
    }

    /** A response frame without its length. */
    private static ByteBuffer bytes(Send send) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        TransferableChannel channel = new TransferableChannel() {
            @Override public boolean hasPendingWrites() { return false; }
            @Override public long transferFrom(FileChannel file, long position, long count) { throw new UnsupportedOperationException(); }
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

    private static String base64(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
    }
}
