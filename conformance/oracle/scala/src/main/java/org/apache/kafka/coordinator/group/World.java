package org.apache.kafka.coordinator.group;

import kafka.coordinator.group.DelayedHeartbeat;
import kafka.coordinator.group.DelayedRebalance;
import kafka.coordinator.group.GroupCoordinator$;
import kafka.coordinator.group.GroupCoordinatorAdapter;
import kafka.coordinator.group.GroupMetadataManager;
import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRequestHandler;

import oracle.MemoryLog;
import oracle.ScheduledWorld;
import oracle.Unbuilt;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.VirtualWheelTimer;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

/** The Scala coordinator of 3.9, through its adapter, over virtual time and a log in memory. */
final class World extends ScheduledWorld {
    final VirtualWheelTimer timer;
    final MemoryLog log;
    final FakeBroker.Replicas replicas;
    final GroupCoordinator service;
    long lost;
    private final kafka.coordinator.group.GroupCoordinator coordinator;
    private final int writeTimeoutMs;
    private final Map<String, Integer> topics = new TreeMap<>();

    World(Map<String, String> config, int partitions, long startMs, MemoryLog.Sink records) throws ReflectiveOperationException {
        super(partitions, startMs);
        // A transaction that is verified goes on in this thread.
        KafkaRequestHandler.setBypassThreadCheck(true);
        timer = new VirtualWheelTimer(startMs, () -> clock.ms, this::runTimed);
        log = new MemoryLog(records, this::alarm);
        replicas = Unbuilt.of(FakeBroker.Replicas.class);
        replicas.log = log;
        Properties properties = new Properties();
        properties.put("zookeeper.connect", "unused:1");
        properties.put("broker.id", "1");
        properties.putAll(config);
        KafkaConfig kafka = KafkaConfig.fromProps(properties, false);
        writeTimeoutMs = kafka.groupCoordinatorConfig().offsetCommitTimeoutMs();
        var heartbeats = new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", timer, 1, 1000, false, true);
        var rebalances = new DelayedOperationPurgatory<DelayedRebalance>("Rebalance", timer, 1, 1000, false, true);
        coordinator = GroupCoordinator$.MODULE$.apply(kafka, replicas, heartbeats, rebalances, clock, new Metrics(clock));
        Field field = GroupMetadataManager.class.getDeclaredField("scheduler");
        field.setAccessible(true);
        field.set(coordinator.groupManager(), new FakeBroker.Scheduler(this));
        service = new GroupCoordinatorAdapter(coordinator, clock);
    }

    Runnable alarm(long delayMs, Runnable task) {
        TimerTask alarm = new TimerTask(delayMs) { @Override public void run() { task.run(); } };
        timer.add(alarm);
        return alarm::cancel;
    }

    /** A broker's timer executor loses a task that throws, and goes on. */
    private void runTimed(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            lost++;
        }
    }

    @Override protected void runTimer(long target, Runnable after) { timer.runUntil(target, t -> clock.ms = t, after); }

    @Override protected void runTask(Runnable task) { task.run(); }

    /** What KafkaApis.handleWriteTxnMarkersRequest does, for one partition of the coordinator's own. */
    void endTransaction(String group, long producerId, MemoryRecords marker, TransactionResult result, Consumer<Errors> done) {
        if (!coordinator.groupManager().isGroupLocal(group)) {
            done.accept(Errors.NOT_COORDINATOR);
            return;
        }
        TopicPartition tp = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, service.partitionFor(group));
        log.append(tp.partition(), marker, writeTimeoutMs, response -> {
            if (response.error == Errors.NONE) service.onTransactionCompleted(producerId, List.of(tp), result);
            done.accept(response.error);
        });
        drain();
    }

    @Override public int partitionFor(String group) { return service.partitionFor(group); }
    @Override public void startup() { service.startup(() -> partitions); }
    @Override public void shutdown() { service.shutdown(); }
    @Override public void elect(int partition, int epoch) { service.onElection(partition, epoch); drain(); }
    @Override public void resign(int partition, OptionalInt epoch) { service.onResignation(partition, epoch); drain(); }
    void setTopic(String name, int count) { topics.merge(name, count, Math::max); }
    boolean hasTopic(String name) { return topics.containsKey(name); }
    boolean hasPartition(String topic, int p) { return p >= 0 && p < topics.getOrDefault(topic, 0); }

    /** Topics go together, as in one change of the metadata. */
    void removeTopics(List<String> names) {
        List<TopicPartition> gone = new ArrayList<>();
        for (String name : names) {
            Integer count = topics.remove(name);
            for (int p = 0; count != null && p < count; p++) gone.add(new TopicPartition(name, p));
        }
        if (gone.isEmpty()) return;
        try {
            service.onPartitionsDeleted(gone, BufferSupplier.NO_CACHING);
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
        drain();
    }
}
