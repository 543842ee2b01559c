package kafka.server.share;

import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.${records}.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.VirtualWheelTimer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/** Kafka's own share partition in virtual time: a command a line, an answer a line. */
public final class ShareOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicIdPartition PLACE = new TopicIdPartition(new Uuid(1, 2), new TopicPartition("t", 0));
    private static final Runnable NOTHING = () -> { };

    private final VirtualTime time = new VirtualTime();
    private HeldPersister persister;
    private VirtualWheelTimer timer;
    private Settings settings;
    private Release.Offsets offsets;
    private Release.Letters letters;
    private SharePartition partition;
    private ArrayNode done;
    private int fetchable;

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        ShareOracle oracle = new ShareOracle();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(oracle.answer(JSON.readTree(line)));
            out.flush();
        }
    }

    private ObjectNode answer(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        done = answer.putArray("done");
        fetchable = 0;
        try {
            if (command.get("op").asText().equals("open")) open(command);
            persister.writes = answer.putArray("writes");
            letters.taken = answer.putArray("letters");
            carryOut(command, answer);
            timer.runReady(NOTHING);
        } catch (Throwable e) {
            answer.put("threw", Errors.forException(e).name());
            answer.put("why", e.toString());
        }
        answer.put("fetchable", fetchable);
        putState(answer.putObject("state"), command.path("whole").asBoolean());
        return answer;
    }

    private void open(JsonNode command) throws Exception {
        time.now = command.get("now").asLong();
        persister = new HeldPersister();
        persister.stored = command.get("stored");
        timer = new VirtualWheelTimer(time.now, () -> time.now, Runnable::run);
        settings = new Release.ReleaseSettings(command.get("reset").asText());
        settings.set(command.get("settings"));
        letters = new Release.Letters();
        settings.letters = letters;
        offsets = new Release.Offsets(command.get("offsets"));
        partition = Release.partition("g", PLACE, command.get("leaderEpoch").asInt(), timer, time, persister, offsets, settings, letters, () -> fetchable++);
    }

    private void carryOut(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("op").asText()) {
            case "open" -> { }
            case "advance" -> timer.runUntil(time.now + command.get("ms").asLong(), ms -> time.now = ms, NOTHING);
            case "settings" -> settings.set(command.get("settings"));
            case "persister" -> persister.error = command.get("error").isNull() ? null : Errors.valueOf(command.get("error").asText());
            case "answer" -> persister.answer(command.get("index").asInt(), Errors.valueOf(command.get("error").asText()));
            case "letters" -> letters.set(command.get("enabled").asBoolean(), command.get("held").asBoolean());
            case "letter" -> letters.answer(command.get("index").asInt(), command.get("fails").asBoolean());
            case "initialize" -> tell(command, partition.maybeInitialize());
            case "lock" -> answer.put("locked", partition.maybeAcquireFetchLock(new Uuid(0, command.get("fetch").asLong())));
            case "unlock" -> partition.releaseFetchLock(new Uuid(0, command.get("fetch").asLong()));
            case "acquire" -> acquire(command, answer);
            case "acknowledge" -> tell(command, partition.acknowledge(command.get("member").asText(), acknowledgements(command)));
            case "release" -> tell(command, partition.releaseAcquiredRecords(command.get("member").asText()));
            case "logStart" -> partition.updateCacheAndOffsets(command.get("offset").asLong());
            case "fence" -> partition.markFenced();
            default -> throw new IllegalArgumentException(command.toString());
        }
    }

    private void tell(JsonNode command, CompletableFuture<Void> call) {
        int id = command.get("id").asInt();
        ArrayNode told = done;
        call.whenComplete((nothing, e) -> {
            ArrayNode one = done.addArray().add(id);
            if (e == null) { one.add("NONE"); return; }
            Throwable cause = e instanceof CompletionException ? e.getCause() : e;
            Errors error = Errors.forException(cause);
            one.add(error.name());
            if (error != Errors.UNKNOWN_SERVER_ERROR) one.add(cause.getMessage());
        });
    }

    private void acquire(JsonNode command, ObjectNode answer) {
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        for (JsonNode each : command.get("aborted"))
            aborted.add(new FetchResponseData.AbortedTransaction().setProducerId(each.get(0).asLong()).setFirstOffset(each.get(1).asLong()));
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(command.get("records").asText())));
        ShareAcquiredRecords acquired = partition.acquire(command.get("member").asText(),
            ShareAcquireMode.forId((byte) command.get("mode").asInt()), command.get("batchSize").asInt(),
            command.get("maxRecords").asInt(), command.get("offset").asLong(),
            new FetchPartitionData(Errors.NONE, 0, 0, records, Optional.empty(), OptionalLong.empty(), Optional.of(aborted), OptionalInt.empty(), false),
            command.get("committed").asBoolean() ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK);
        ArrayNode told = answer.putArray("acquired");
        for (AcquiredRecords each : acquired.acquiredRecords())
            told.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryCount());
        answer.put("count", acquired.count());
    }

    private static List<ShareAcknowledgementBatch> acknowledgements(JsonNode command) {
        List<ShareAcknowledgementBatch> batches = new ArrayList<>();
        for (JsonNode each : command.get("batches")) {
            List<Byte> types = new ArrayList<>();
            for (JsonNode type : each.get(2)) types.add((byte) type.asInt());
            batches.add(new ShareAcknowledgementBatch(each.get(0).asLong(), each.get(1).asLong(), types));
        }
        return batches;
    }

    private void putState(ObjectNode told, boolean whole) {
        told.put("state", partition.partitionState().name());
        told.put("next", partition.nextFetchOffset());
        told.put("can", partition.canAcquireRecords());
        told.put("start", partition.startOffset()).put("end", partition.endOffset());
        told.put("complete", partition.deliveryCompleteCount());
        told.put("epochs", partition.stateEpoch() + " " + partition.leaderEpoch());
        told.put("waiting", persister.waiting()).put("posting", letters.waiting());
        told.put("batches", partition.cachedState().size());
        if (!whole) return;
        told.put("find", partition.findNextFetchOffset());
        SharePartition.GapWindow gap = partition.persisterReadResultGapWindow();
        told.put("gap", gap == null ? null : gap.gapStartOffset() + "-" + gap.endOffset());
        ArrayNode cached = told.putArray("cached");
        for (InFlightBatch batch : partition.cachedState().values()) {
            ArrayNode one = cached.addArray().add(batch.firstOffset()).add(batch.lastOffset());
            if (batch.offsetState() == null) {
                one.add(batch.batchState().name() + " " + batch.batchDeliveryCount() + " " + batch.batchMemberId() + " "
                    + batch.batchHasOngoingStateTransition() + " "
                    + (batch.batchAcquisitionLockTimeoutTask() == null ? "-" : lock(batch.batchAcquisitionLockTimeoutTask().expirationMs(), batch.batchAcquisitionLockTimeoutTask().hasExpired())));
                continue;
            }
            for (Map.Entry<Long, InFlightState> each : batch.offsetState().entrySet()) {
                InFlightState state = each.getValue();
                one.add(each.getKey() + ": " + state.state().name() + " " + state.deliveryCount() + " " + state.memberId() + " "
                    + state.hasOngoingStateTransition() + " "
                    + (state.acquisitionLockTimeoutTask() == null ? "-" : lock(state.acquisitionLockTimeoutTask().expirationMs(), state.acquisitionLockTimeoutTask().hasExpired())));
            }
        }
    }

    private static String lock(long expirationMs, boolean hasExpired) { return expirationMs + (hasExpired ? " over" : ""); }

    static final class VirtualTime implements Time {
        long now;
        @Override public long milliseconds() { return now; }
        @Override public long hiResClockMs() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { throw new IllegalStateException(); }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { throw new IllegalStateException(); }
    }
}
