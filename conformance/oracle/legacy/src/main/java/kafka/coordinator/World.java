package kafka.coordinator;

import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.utils.timer.VirtualTimer;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import scala.Option;
import scala.collection.JavaConverters;

/** The coordinator of 0.10.2, and KafkaApis in front of it, over virtual time and a log in memory. */
final class World {
    static final class Clock implements Time {
        long ms;
        @Override public long milliseconds() { return ms; }
        @Override public long hiResClockMs() { return ms; }
        @Override public long nanoseconds() { return ms * 1_000_000L; }
        @Override public void sleep(long d) { throw new IllegalStateException("sleep on the virtual clock"); }
    }

    final Clock clock = new Clock();
    final VirtualTimer timer;
    final MemoryLog log;
    final GroupCoordinator coordinator;
    final KafkaApis apis;
    final int partitions;
    private final FakeBroker.Scheduler scheduler = new FakeBroker.Scheduler(this);
    private final Map<String, Integer> topics = new TreeMap<>();

    World(Map<String, String> config, int partitions, long startMs, MemoryLog.Sink records, FakeBroker.Channel.Sink responses)
            throws ReflectiveOperationException {
        this.partitions = partitions;
        clock.ms = startMs;
        timer = new VirtualTimer(startMs, () -> clock.ms);
        log = new MemoryLog(records);
        log.timer = timer;
        Properties properties = new Properties();
        properties.put("zookeeper.connect", "unused:1");
        properties.put("broker.id", "1");
        properties.put("offsets.topic.num.partitions", Integer.toString(partitions));
        properties.putAll(config);
        KafkaConfig kafka = KafkaConfig.fromProps(properties, false);
        FakeBroker.Replicas replicas = FakeBroker.allocate(FakeBroker.Replicas.class);
        replicas.log = log;
        FakeBroker.Zookeeper zookeeper = FakeBroker.allocate(FakeBroker.Zookeeper.class);
        var heartbeats = new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", timer, 1, 1000, false);
        var joins = new DelayedOperationPurgatory<DelayedJoin>("Rebalance", timer, 1, 1000, false);
        coordinator = GroupCoordinator$.MODULE$.apply(kafka, zookeeper, replicas, heartbeats, joins, clock);
        Field field = GroupMetadataManager.class.getDeclaredField("scheduler");
        field.setAccessible(true);
        field.set(coordinator.groupManager(), scheduler);
        apis = new KafkaApis(FakeBroker.Channel.to(responses), replicas, null, coordinator, null, zookeeper, 1, kafka,
            FakeBroker.Topics.of(topics), null, Option.empty(), null, "cluster", clock);
        coordinator.startup(true);
        drain();
    }

    void drain() {
        Runnable task;
        do {
            // A broker's timer thread takes a bucket that is due at once, also while the wheel lags behind the clock.
            timer.runUntil(clock.ms, t -> clock.ms = t, () -> { });
            task = scheduler.ready.poll();
            if (task != null) runScheduled(task);
        } while (task != null);
    }

    void advanceTo(long target) {
        drain();
        timer.runUntil(target, t -> clock.ms = t, this::runScheduled);
        drain();
    }

    private void runScheduled() {
        Runnable task;
        while ((task = scheduler.ready.poll()) != null) runScheduled(task);
    }

    /** KafkaScheduler logs what a task throws, and goes on. */
    private void runScheduled(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            timer.lost++;
        }
    }

    void elect(int partition) { coordinator.handleGroupImmigration(partition); drain(); }
    void resign(int partition) { coordinator.handleGroupEmigration(partition); drain(); }
    void setTopic(String name, int count) { topics.put(name, count); }

    void removeTopic(String name) {
        Integer count = topics.remove(name);
        if (count == null) return;
        List<TopicPartition> gone = new ArrayList<>();
        for (int p = 0; p < count; p++) gone.add(new TopicPartition(name, p));
        coordinator.handleDeletedPartitions(JavaConverters.asScalaBufferConverter(gone).asScala());
        drain();
    }
}
