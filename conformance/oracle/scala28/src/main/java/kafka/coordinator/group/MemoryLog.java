package kafka.coordinator.group;

import kafka.utils.timer.VirtualTimer;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** `__consumer_offsets` in memory: answers at once unless the high watermark is held. */
final class MemoryLog {
    interface Sink { void appended(int partition, MutableRecordBatch batch, Record record); }

    static final class Part {
        final List<MemoryRecords> batches = new ArrayList<>();
        final ArrayDeque<Runnable> parked = new ArrayDeque<>();
        long end;
    }

    private final Map<Integer, Part> parts = new TreeMap<>();
    private final Sink sink;
    VirtualTimer timer;
    boolean hold;
    Errors fail;
    int failCount;

    MemoryLog(Sink sink) { this.sink = sink; }

    Part part(int partition) { return parts.computeIfAbsent(partition, k -> new Part()); }

    /** Appends a copy and returns its first offset. */
    long write(int partition, MemoryRecords records) {
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

    void commit(int partition) {
        Runnable parked;
        while ((parked = part(partition).parked.poll()) != null) parked.run();
    }

    MemoryRecords all(int partition) {
        List<MemoryRecords> batches = part(partition).batches;
        ByteBuffer bytes = ByteBuffer.allocate(batches.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
        for (MemoryRecords records : batches) bytes.put(records.buffer().duplicate());
        bytes.flip();
        return MemoryRecords.readableRecords(bytes);
    }
}
