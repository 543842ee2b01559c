package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.*;

import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;

/** The timer of a test: what fires in it fires in the other coordinator too. */
final class MirroredTimer implements CoordinatorTimer<CoordinatorRecord> {
    /** What a timer, or a task, does. */
    interface Work { CoordinatorResult<Void, CoordinatorRecord> run(); }

    private final MockCoordinatorTimer<CoordinatorRecord> mocked;
    private final BiFunction<String, Work, CoordinatorResult<Void, CoordinatorRecord>> fired;
    private final Time time;
    private final Set<String> keys = new HashSet<>();

    MirroredTimer(MockCoordinatorTimer<CoordinatorRecord> mocked, BiFunction<String, Work, CoordinatorResult<Void, CoordinatorRecord>> fired) {
        this.mocked = mocked;
        this.fired = fired;
        this.time = Door.get(mocked, "time");
    }

    /** What is armed, and in how many milliseconds it is due. */
    Map<String, Long> armed() {
        Map<String, Long> armed = new HashMap<>();
        keys.removeIf(key -> !mocked.contains(key));
        keys.forEach(key -> armed.put(key, mocked.timeout(key).deadlineMs() - time.milliseconds()));
        return armed;
    }

    private TimeoutOperation<CoordinatorRecord> mirrored(String key, TimeoutOperation<CoordinatorRecord> operation) {
        keys.add(key);
        return () -> fired.apply(key, operation::generateRecords);
    }

    @Override public void schedule(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
        mocked.schedule(key, delay, unit, retry, mirrored(key, operation));
    }

    @Override public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation) {
        mocked.schedule(key, delay, unit, retry, backoff, mirrored(key, operation));
    }

    @Override public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
        mocked.scheduleIfAbsent(key, delay, unit, retry, mirrored(key, operation));
    }

    @Override public void cancel(String key) { mocked.cancel(key); }
    @Override public boolean isScheduled(String key) { return mocked.isScheduled(key); }
}
