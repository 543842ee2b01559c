package oracle;

import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** Kafka's Time as it stands until somebody sets it. No method overrides by name: Kafkas differ in which they have. */
public final class VirtualClock implements Time {
    public long ms;

    VirtualClock(long startMs) { ms = startMs; }

    public long milliseconds() { return ms; }
    public long hiResClockMs() { return ms; }
    public long nanoseconds() { return ms * 1_000_000L; }
    public void sleep(long duration) { throw new IllegalStateException("sleep on the virtual clock"); }
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { throw new IllegalStateException(); }
}
