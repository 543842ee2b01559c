package org.apache.kafka.coordinator.group;

import kafka.coordinator.group.DelayedHeartbeat;
import kafka.coordinator.group.DelayedRebalance;
import kafka.coordinator.group.GroupCoordinatorAdapter;
import kafka.coordinator.group.GroupMetadataManager;
import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaConfig;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.VirtualWheelTimer;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** The Scala GroupCoordinator of 3.9 (through its adapter) over virtual time and an in-memory log. */
final class World {
    static final class Clock implements Time {
        long ms;
        @Override public long milliseconds() { return ms; }
        @Override public long nanoseconds() { return ms * 1_000_000L; }
        @Override public void sleep(long d) { throw new IllegalStateException("sleep on the virtual clock"); }
        @Override public void waitObject(Object o, Supplier<Boolean> c, long d) { throw new IllegalStateException(); }
    }

    final Clock clock = new Clock();
    final VirtualWheelTimer timer;
    final MemoryLog log;
    final GroupCoordinator service;
    private final kafka.coordinator.group.GroupCoordinator coordinator;
    private final FakeBroker.Replicas replicas;
    private final int writeTimeoutMs;
    final FakeBroker.Scheduler scheduler = new FakeBroker.Scheduler(this);
    final int partitions;
    boolean holdBackground;
    final Map<String, Integer> topics = new TreeMap<>();

    World(Map<String, String> props, int partitions, long startMs, MemoryLog.Sink sink) throws Exception {
        this.partitions = partitions;
        kafka.server.KafkaRequestHandler.setBypassThreadCheck(true); // verified transactions go on in this thread
        clock.ms = startMs;
        timer = new VirtualWheelTimer(startMs, () -> clock.ms);
        log = new MemoryLog(sink);
        log.timer = timer;
        Properties p = new Properties();
        p.put("zookeeper.connect", "unused:1");
        p.put("broker.id", "1");
        p.putAll(props);
        replicas = FakeBroker.allocate(FakeBroker.Replicas.class);
        replicas.log = log;
        Metrics metrics = new Metrics(clock);
        var heartbeats = new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", timer, 1, 1000, false, true);
        var rebalances = new DelayedOperationPurgatory<DelayedRebalance>("Rebalance", timer, 1, 1000, false, true);
        KafkaConfig config = KafkaConfig.fromProps(p, false);
        writeTimeoutMs = config.groupCoordinatorConfig().offsetCommitTimeoutMs();
        coordinator = kafka.coordinator.group.GroupCoordinator$.MODULE$.apply(config, replicas, heartbeats, rebalances, clock, metrics);
        Field f = GroupMetadataManager.class.getDeclaredField("scheduler");
        f.setAccessible(true);
        f.set(coordinator.groupManager(), scheduler);
        service = new GroupCoordinatorAdapter(coordinator, clock);
        service.startup(() -> partitions);
        drain();
    }

    void drain() {
        do {
            // A broker's timer thread takes a bucket that is due at once, also while the wheel lags behind the clock.
            timer.runUntil(clock.ms, t -> clock.ms = t, () -> { });
            Runnable r = scheduler.ready.poll();
            if (r == null) return;
            r.run();
        } while (true);
    }

    void advanceTo(long target) {
        drain();
        timer.runUntil(target, t -> clock.ms = t, this::drainScheduler);
        drain();
    }

    private void drainScheduler() { Runnable r; while ((r = scheduler.ready.poll()) != null) r.run(); }

    /** What KafkaApis.handleWriteTxnMarkersRequest does: the marker goes into the log, then the coordinator hears of it. */
    void endTransaction(String group, long producerId, MemoryRecords marker, TransactionResult result, Consumer<Errors> done) {
        if (!coordinator.groupManager().isGroupLocal(group)) { done.accept(Errors.NOT_COORDINATOR); return; } // as the Java service calls it
        TopicPartition tp = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, service.partitionFor(group));
        replicas.append(tp, marker, writeTimeoutMs, error -> {
            if (error == Errors.NONE) service.onTransactionCompleted(producerId, List.of(tp), result);
            done.accept(error);
        });
        drain();
    }

    void elect(int partition, int epoch) { service.onElection(partition, epoch); drain(); }
    void resign(int partition, OptionalInt epoch) { service.onResignation(partition, epoch); drain(); }
    Uuid topicId(String name) { return topics.containsKey(name) ? new Uuid(1, 1) : Uuid.ZERO_UUID; }
    boolean hasPartition(String topic, int p) { return p >= 0 && p < topics.getOrDefault(topic, 0); }
}
