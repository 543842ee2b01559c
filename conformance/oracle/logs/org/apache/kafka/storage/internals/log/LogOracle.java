package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.RecordVersion;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Kafka's own log of one partition in virtual time: a command a line, an answer a line. */
public final class LogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final Path root;
    private final VirtualTime time = new VirtualTime();
    private int opened;
    private File dir;
    private LogConfig config;
    private UnifiedLog log;
    private long held = Long.MAX_VALUE;
    private Optional<Long> lastClean = Optional.empty();

    private LogOracle(Path root) { this.root = root; }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Path root = Files.createTempDirectory(Path.of(args[0]), "log-oracle");
        LogOracle oracle = new LogOracle(root);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(oracle.answer(JSON.readTree(line)));
            out.flush();
        }
        try (var files = Files.walk(root)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }

    private ObjectNode answer(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        time.now = command.path("now").asLong(time.now);
        try {
            carryOut(command, answer);
        } catch (RecordValidationException e) {
            answer.put("error", Errors.forException(e.invalidException()).name());
            answer.put("message", e.invalidException().getMessage());
            ArrayNode errors = answer.putArray("records");
            e.recordErrors().forEach(each -> errors.addArray().add(each.batchIndex).add(each.message));
        } catch (Throwable e) {
            answer.put("error", Errors.forException(e).name());
            if (Errors.forException(e) == Errors.UNKNOWN_SERVER_ERROR) answer.put("why", e.toString());
        }
        if (log != null) putState(answer.putObject("state"));
        return answer;
    }

    private void carryOut(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("op").asText()) {
            case "open" -> open(command);
            case "append" -> append(command, answer);
            case "marker" -> marker(command, answer);
            case "read" -> read(command, answer);
            case "offset" -> offset(command, answer);
            case "epoch_end" -> epochEnd(command, answer);
            case "delete" -> delete(command.get("offset").asLong());
            case "hold" -> held = command.get("offset").asLong();
            case "lead" -> log.assignEpochStartOffset(command.get("epoch").asInt(), log.logEndOffset());
            case "retain" -> log.deleteOldSegments();
            case "expire" -> log.removeExpiredProducers(time.now);
            case "clean" -> clean();
            case "truncate" -> truncate(command.get("offset").asLong());
            case "reopen" -> reopen();
            default -> throw new IllegalArgumentException(command.toString());
        }
        if (log != null) log.updateHighWatermark(Math.max(log.highWatermark(), Math.min(held, log.logEndOffset())));
    }

    private void open(JsonNode command) throws Exception {
        if (log != null) log.close();
        held = Long.MAX_VALUE;
        lastClean = Optional.empty();
        dir = root.resolve(Integer.toString(opened++)).resolve("t-0").toFile();
        dir.mkdirs();
        Map<String, String> settings = new HashMap<>();
        command.get("config").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        config = new LogConfig(settings);
        log = create(0L, 0L);
    }

    private void truncate(long offset) throws Exception {
        held = Long.MAX_VALUE;
        log.updateHighWatermark(log.logEndOffset());
        log.truncateTo(offset);
    }

    private void reopen() throws Exception {
        long start = log.logStartOffset();
        long end = log.logEndOffset();
        held = Long.MAX_VALUE;
        lastClean = Optional.empty();
        log.close();
        log = create(start, end);
    }

    private UnifiedLog create(long start, long recoveryPoint) throws Exception {
        return UnifiedLog.create(dir, config, start, recoveryPoint, new NoScheduler(), new BrokerTopicStats(), time,
            300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    private void append(JsonNode command, ObjectNode answer) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(command.get("records").asText())));
        int epoch = command.get("epoch").asInt();
        int magic = command.path("magic").asInt(2);
        LogAppendInfo info = magic == 2
            ? log.appendAsLeader(records, epoch)
            : log.appendAsLeaderWithRecordVersion(records, epoch, RecordVersion.lookup((byte) magic));
        putInfo(info, answer);
    }

    private void marker(JsonNode command, ObjectNode answer) throws Exception {
        EndTransactionMarker marker = new EndTransactionMarker(
            command.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT,
            command.get("coordinator_epoch").asInt());
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(time.now, command.get("pid").asLong(),
            (short) command.get("pepoch").asInt(), marker);
        short version = (short) command.path("transaction_version").asInt(0);
        putInfo(log.appendAsLeader(records, command.get("epoch").asInt(), AppendOrigin.COORDINATOR,
            RequestLocal.noCaching(), VerificationGuard.SENTINEL, version), answer);
    }

    private void putInfo(LogAppendInfo info, ObjectNode answer) {
        answer.put("first", info.firstOffset());
        answer.put("last", info.lastOffset());
        answer.put("time", info.logAppendTime());
    }

    private void read(JsonNode command, ObjectNode answer) throws Exception {
        FetchIsolation isolation = command.get("committed").asBoolean() ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK;
        FetchDataInfo info = log.read(command.get("offset").asLong(), command.get("max").asInt(), isolation,
            command.get("min_one").asBoolean());
        Records records = info.records;
        ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
        if (records instanceof FileRecords file) file.readInto(buffer, 0);
        else buffer.flip();
        int whole = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(buffer.duplicate()).batches()) whole += batch.sizeInBytes();
        answer.put("bytes", HEX.formatHex(buffer.array(), 0, whole));
        ArrayNode aborted = answer.putArray("aborted");
        info.abortedTransactions.ifPresent(all -> all.forEach(each -> aborted.addArray().add(each.producerId()).add(each.firstOffset())));
    }

    /** As Partition.fetchOffsetForTimestamp, for readers of uncommitted records. */
    private void offset(JsonNode command, ObjectNode answer) {
        long wanted = command.get("time").asLong();
        ArrayNode found = answer.putArray("found");
        if (wanted == ListOffsetsRequest.LATEST_TIMESTAMP) {
            found.add(-1).add(log.highWatermark()).add(log.latestEpoch().orElse(-1));
            return;
        }
        boolean isStart = wanted == ListOffsetsRequest.EARLIEST_TIMESTAMP || wanted == ListOffsetsRequest.EARLIEST_LOCAL_TIMESTAMP;
        log.fetchOffsetByTimestamp(wanted, Optional.empty()).timestampAndOffsetOpt()
            .filter(each -> isStart || each.offset < log.highWatermark()).ifPresent(
                each -> found.add(each.timestamp).add(each.offset).add(each.leaderEpoch.orElse(-1)));
    }

    private void epochEnd(JsonNode command, ObjectNode answer) {
        OffsetAndEpoch end = log.endOffsetForEpoch(command.get("epoch").asInt()).orElse(new OffsetAndEpoch(-1, -1));
        answer.putArray("found").add(end.epoch()).add(end.offset());
    }

    private void delete(long offset) throws Exception {
        // As Partition.deleteRecordsOnLeader.
        if (config.compact && !config.delete) throw new PolicyViolationException("compacted");
        if (offset < -1) throw new OffsetOutOfRangeException("negative");
        log.maybeIncrementLogStartOffset(offset == -1 ? log.highWatermark() : offset,
            LogStartOffsetIncrementReason.ClientRecordDeletion);
        log.deleteOldSegments();
    }

    private void clean() throws Exception {
        if (!config.compact) return;
        var offsets = LogCleanerManager.cleanableOffsets(log, lastClean, time.now);
        LogToClean toClean = new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
        if (toClean.cleanableBytes() == 0) return;
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20), 1 << 16, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", time), time, partition -> { });
        lastClean = Optional.of(cleaner.doClean(toClean, time.now).getKey());
    }

    private void putState(ObjectNode state) {
        state.put("start", log.logStartOffset());
        state.put("end", log.logEndOffset());
        state.put("high_watermark", log.highWatermark());
        state.put("stable", log.lastStableOffset());
        ArrayNode segments = state.putArray("segments");
        log.logSegments().forEach(each -> segments.addArray().add(each.baseOffset()).add(each.size()));
        ArrayNode epochs = state.putArray("epochs");
        log.leaderEpochCache().epochEntries().forEach(each -> epochs.addArray().add(each.epoch()).add(each.startOffset()));
        ArrayNode producers = state.putArray("producers");
        log.activeProducers().stream().sorted(Comparator.comparing(each -> each.producerId())).forEach(
            each -> producers.addArray().add(each.producerId()).add(each.producerEpoch()).add(each.lastSequence())
                .add(each.lastTimestamp()).add(each.coordinatorEpoch()).add(each.currentTxnStartOffset()));
    }

    private static final class VirtualTime implements Time {
        long now;

        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000L; }
        @Override public void sleep(long ms) { now += ms; }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Checkpoints of epochs are written at once; nothing else that would run behind ever does. */
    private static final class NoScheduler implements Scheduler {
        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.startsWith("leader-epoch-cache-flush")) task.run();
            return new Never();
        }
        @Override public void resizeThreadPool(int size) { }
    }

    private static final class Never extends FutureTask<Void> implements ScheduledFuture<Void> {
        Never() { super(() -> null); }

        @Override public long getDelay(TimeUnit unit) { return Long.MAX_VALUE; }
        @Override public int compareTo(Delayed other) { return 0; }
    }
}
