package oracle;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/** `__consumer_offsets` in memory: answers at once unless the high watermark is held. */
public final class MemoryLog {
    public interface Sink { void appended(int partition, MutableRecordBatch batch, Record record); }

    /** Sets a task on the broker's timer, and returns what takes it off. */
    public interface Alarms { Runnable set(long delayMs, Runnable task); }

    private static final class Part {
        final List<MemoryRecords> batches = new ArrayList<>();
        final ArrayDeque<Runnable> parked = new ArrayDeque<>();
        long end;
    }

    private final Map<Integer, Part> parts = new TreeMap<>();
    private final Sink sink;
    private final Alarms alarms;
    public boolean hold;
    public Errors fail;
    public int failCount;

    public MemoryLog(Sink sink, Alarms alarms) {
        this.sink = sink;
        this.alarms = alarms;
    }

    private Part part(int partition) { return parts.computeIfAbsent(partition, k -> new Part()); }

    public long end(int partition) { return part(partition).end; }

    /** Refused, done at once, or done when the log is committed or the time is up, as DelayedProduce has it. */
    public void append(int partition, MemoryRecords records, long timeoutMs, Consumer<PartitionResponse> done) {
        if (failCount > 0) {
            failCount--;
            done.accept(new PartitionResponse(fail));
            return;
        }
        long base = write(partition, records);
        if (!hold) {
            done.accept(new PartitionResponse(Errors.NONE, base, -1L, 0L));
            return;
        }
        boolean[] isDone = {false};
        Runnable cancel = alarms.set(timeoutMs, () -> {
            isDone[0] = true;
            done.accept(new PartitionResponse(Errors.REQUEST_TIMED_OUT));
        });
        part(partition).parked.add(() -> {
            if (isDone[0]) return;
            cancel.run();
            done.accept(new PartitionResponse(Errors.NONE, base, -1L, 0L));
        });
    }

    /** Appends a copy and returns its first offset. */
    public long write(int partition, MemoryRecords records) {
        Part part = part(partition);
        long base = part.end;
        ByteBuffer copy = ByteBuffer.allocate(records.sizeInBytes());
        copy.put(records.buffer().duplicate()).flip();
        MemoryRecords stored = MemoryRecords.readableRecords(copy);
        for (MutableRecordBatch batch : stored.batches()) {
            long count = batch.lastOffset() - batch.baseOffset() + 1;
            batch.setLastOffset(part.end + count - 1);
            part.end += count;
            for (Record record : batch) sink.appended(partition, batch, record);
        }
        part.batches.add(stored);
        return base;
    }

    public void commit(int partition) {
        Runnable parked;
        while ((parked = part(partition).parked.poll()) != null) parked.run();
    }

    public MemoryRecords all(int partition) {
        List<MemoryRecords> batches = part(partition).batches;
        ByteBuffer bytes = ByteBuffer.allocate(batches.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
        for (MemoryRecords records : batches) bytes.put(records.buffer().duplicate());
        bytes.flip();
        return MemoryRecords.readableRecords(bytes);
    }
}
