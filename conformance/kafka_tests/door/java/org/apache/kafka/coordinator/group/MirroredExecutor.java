package org.apache.kafka.coordinator.group;

import org.apache.kafka.coordinator.common.runtime.*;

import java.util.function.BiFunction;

/** The executor of a test: a task that is done there is done in the other coordinator too. */
record MirroredExecutor(
    CoordinatorExecutor<CoordinatorRecord> mocked,
    BiFunction<String, MirroredTimer.Work, CoordinatorResult<Void, CoordinatorRecord>> ran
) implements CoordinatorExecutor<CoordinatorRecord> {
    @Override public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
        return mocked.schedule(key, task, (result, failure) -> ran.apply(key, () -> operation.onComplete(result, failure)));
    }

    @Override public boolean isScheduled(String key) { return mocked.isScheduled(key); }
    @Override public void cancel(String key) { mocked.cancel(key); }
}
