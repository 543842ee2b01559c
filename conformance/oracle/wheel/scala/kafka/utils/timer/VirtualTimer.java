package kafka.utils.timer;

import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

import scala.runtime.BoxedUnit;

/** Kafka's own timing wheel (1 ms tick, 20 slots) over a virtual clock: exact ties, no threads. */
public final class VirtualTimer implements Timer {
    /** The wheel only offers buckets; they are taken out here by expiration, ties as the heap of a DelayQueue has them. */
    private static final class Buckets extends DelayQueue<TimerTaskList> {
        private record Entry(long expiration, TimerTaskList bucket) { }

        private final PriorityQueue<Entry> heap =
            new PriorityQueue<>(Comparator.comparingLong(Entry::expiration));

        @Override public boolean offer(TimerTaskList bucket) {
            return heap.add(new Entry(bucket.getExpiration(), bucket));
        }
    }

    private final Buckets buckets = new Buckets();
    private final ArrayDeque<TimerTask> ready = new ArrayDeque<>();
    private final AtomicInteger count = new AtomicInteger();
    private final TimingWheel wheel;
    private final LongSupplier now;
    private boolean isShut;
    private long fired;
    public long lost;

    public VirtualTimer(long startMs, LongSupplier now) {
        this.now = now;
        this.wheel = new TimingWheel(1, 20, startMs, count, buckets);
    }

    @Override public void add(TimerTask task) {
        insert(new TimerTaskEntry(task, task.delayMs() + now.getAsLong()));
    }

    private void insert(TimerTaskEntry entry) {
        if (isShut) return;
        if (!wheel.add(entry) && !entry.cancelled()) ready.add(entry.timerTask());
    }

    /** Runs everything due up to target, each at its own time; drain runs after each task. */
    public void runUntil(long target, LongConsumer setClock, Runnable drain) {
        runReady(drain);
        Buckets.Entry next;
        while ((next = buckets.heap.peek()) != null && next.expiration() <= target) {
            buckets.heap.poll();
            setClock.accept(Math.max(next.expiration(), now.getAsLong()));
            wheel.advanceClock(next.expiration());
            next.bucket().flush(entry -> { insert(entry); return BoxedUnit.UNIT; });
            runReady(drain);
        }
        setClock.accept(target);
    }

    public void runReady(Runnable drain) {
        TimerTask task;
        while ((task = ready.poll()) != null) {
            fired++;
            // A broker's timer executor loses a task that throws, and goes on.
            try { task.run(); } catch (RuntimeException e) { lost++; }
            drain.run();
        }
    }

    public long fired() { return fired; }
    @Override public boolean advanceClock(long ms) { throw new UnsupportedOperationException(); }
    @Override public int size() { return count.get(); }

    /** A timer that is shut down runs nothing more; a broker's reaper no longer turns its wheel. */
    @Override public void shutdown() {
        isShut = true;
        buckets.heap.clear();
        ready.clear();
    }
}
