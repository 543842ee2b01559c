package kafka.coordinator.group;

import kafka.network.RequestChannel;

import oracle.Bytes;
import oracle.Gathered;
import oracle.Lines;

import com.fasterxml.jackson.databind.JsonNode;
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

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

import scala.Option;

/** One JSON command per line in, one JSON answer per line out; the operations are those of the other oracles. */
public final class Oracle extends Lines<World> {
    private static final Map<String, ApiKeys> APIS = new HashMap<>();

    /** What is known of a request that is not answered yet. */
    private record Asked(JsonNode id, RequestHeader header, boolean isWire) { }

    private final Map<RequestChannel.Request, Asked> open = new IdentityHashMap<>();

    public static void main(String[] args) throws IOException {
        for (ApiKeys key : ApiKeys.values()) APIS.put(key.name, key);
        new Oracle().serve();
    }

    @Override protected void run(JsonNode command, ObjectNode answer) throws Throwable {
        switch (command.get("op").asText()) {
            case "call" -> submit(command, frame(command), false);
            case "wire" -> submit(command, Bytes.frame(command), true);
            case "topics" -> topics(command);
            case "hold" -> { if (command.has("hw")) world.log.hold = command.get("hw").asBoolean(); world.drain(); }
            case "commit" -> each(command, p -> { world.log.commit(p); world.drain(); });
            case "fail" -> fail(command);
            case "append" -> append(command);
            case "endTxn" -> endTransaction(command);
            case "encode" -> answer.put("frame", Bytes.base64(frame(command)));
            case "decode" -> answer.set("data", body(header(command), Bytes.frame(command)));
            case "stats" -> answer.put("timers", world.timer.size()).put("fired", world.timer.fired()).put("lost", world.timer.lost);
            default -> super.run(command, answer);
        }
    }

    @Override protected World begin(JsonNode command, Map<String, String> config, int partitions, long startMs) throws ReflectiveOperationException {
        open.clear();
        return new World(config, partitions, startMs, this::appended, this::answered);
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
        ObjectNode reply = reply(asked.id()).put("api", asked.header().apiKey().name).put("v", asked.header().apiVersion());
        try {
            Send send = ((RequestChannel.SendResponse) response).responseSend();
            Channel bytes = new Channel();
            while (!send.completed()) send.writeTo(bytes);
            ByteBuffer frame = bytes.frame();
            if (asked.isWire()) reply.put("frame", Bytes.base64(frame));
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
            replies.add(reply(id).put("api", "EndTxnMarker").put("error", error == Errors.NONE ? null : error.name()));
        });
    }

    /** Puts records, as base64, into a log behind the coordinator's back. */
    private void append(JsonNode command) {
        long timestamp = command.path("timestamp").asLong(world.clock.ms);
        List<SimpleRecord> list = new ArrayList<>();
        for (JsonNode record : command.get("records")) list.add(new SimpleRecord(timestamp, Bytes.raw(record.get("key")), Bytes.raw(record.get("value"))));
        world.log.write(partition(command), MemoryRecords.withRecords(CompressionType.NONE, list.toArray(new SimpleRecord[0])));
    }

    private void appended(int partition, MutableRecordBatch batch, Record record) {
        ObjectNode out = JSON.objectNode().put("partition", partition).put("offset", record.offset()).put("ts", record.timestamp());
        RecordJson.write(out, batch, record);
        records.add(out);
    }

    private static final class Channel extends Gathered implements TransferableChannel {
        @Override public boolean hasPendingWrites() { return false; }
        @Override public long transferFrom(FileChannel file, long position, long count) { throw new UnsupportedOperationException(); }
    }
}
