package kafka.coordinator;

import kafka.utils.timer.VirtualTimer;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.CompressionType;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** `__consumer_offsets` in memory: answers at once unless the high watermark is held. */
final class MemoryLog {
    interface Sink { void appended(int partition, long offset, Record record); }

    static final class Part {
        final List<LogEntry> entries = new ArrayList<>();
        final ArrayDeque<Runnable> parked = new ArrayDeque<>();
        long committed;
    }

    private final Map<Integer, Part> parts = new TreeMap<>();
    private final Sink sink;
    VirtualTimer timer;
    boolean hold;
    Errors fail;
    int failCount;
    /** Counted down by a reader that then stays; null lets readers through. */
    CountDownLatch reached;

    MemoryLog(Sink sink) { this.sink = sink; }

    Part part(int partition) { return parts.computeIfAbsent(partition, k -> new Part()); }
    long end(int partition) { return part(partition).entries.size(); }

    /** Appends the (uncompressed) records and returns the first one's offset. */
    long write(int partition, MemoryRecords records) {
        Part part = part(partition);
        long base = end(partition);
        for (LogEntry entry : records.deepEntries()) {
            long offset = end(partition);
            part.entries.add(LogEntry.create(offset, entry.record()));
            sink.appended(partition, offset, entry.record());
        }
        if (!hold) part.committed = end(partition);
        return base;
    }

    boolean isCommitted(int partition) { return part(partition).committed == end(partition); }

    void commit(int partition) {
        part(partition).committed = end(partition);
        Runnable parked;
        while ((parked = part(partition).parked.poll()) != null) parked.run();
    }

    /** Everything from an offset on, as the bytes of a segment. */
    ByteBuffer read(int partition, long offset) {
        if (reached != null) {
            reached.countDown();
            while (true) LockSupport.park(); // its thread is a daemon's
        }
        List<LogEntry> entries = part(partition).entries;
        List<LogEntry> rest = entries.subList((int) Math.min(offset, entries.size()), entries.size());
        if (rest.isEmpty()) return ByteBuffer.allocate(0);
        return MemoryRecords.withLogEntries(CompressionType.NONE, rest).buffer();
    }
}
