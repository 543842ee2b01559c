package kafka.coordinator;

import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.utils.timer.VirtualTimer;

import oracle.ScheduledWorld;
import oracle.Unbuilt;

import org.apache.kafka.common.TopicPartition;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;

import scala.Option;
import scala.collection.JavaConverters;

/** The coordinator of 0.10.2, and KafkaApis in front of it, over virtual time and a log in memory. */
final class World extends ScheduledWorld {
    final VirtualTimer timer;
    final MemoryLog log;
    final GroupCoordinator coordinator;
    final KafkaApis apis;
    private final Map<String, Integer> topics = new TreeMap<>();

    World(Map<String, String> config, int partitions, long startMs, MemoryLog.Sink records, FakeBroker.Channel.Sink responses)
            throws ReflectiveOperationException {
        super(partitions, startMs);
        timer = new VirtualTimer(startMs, () -> clock.ms);
        log = new MemoryLog(records);
        log.timer = timer;
        Properties properties = new Properties();
        properties.put("zookeeper.connect", "unused:1");
        properties.put("broker.id", "1");
        properties.put("offsets.topic.num.partitions", Integer.toString(partitions));
        properties.putAll(config);
        KafkaConfig kafka = KafkaConfig.fromProps(properties, false);
        FakeBroker.Replicas replicas = Unbuilt.of(FakeBroker.Replicas.class);
        replicas.log = log;
        FakeBroker.Zookeeper zookeeper = Unbuilt.of(FakeBroker.Zookeeper.class);
        zookeeper.nodes = new TreeMap<>();
        var heartbeats = new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", timer, 1, 1000, false);
        var joins = new DelayedOperationPurgatory<DelayedJoin>("Rebalance", timer, 1, 1000, false);
        coordinator = GroupCoordinator$.MODULE$.apply(kafka, zookeeper, replicas, heartbeats, joins, clock);
        Field field = GroupMetadataManager.class.getDeclaredField("scheduler");
        field.setAccessible(true);
        field.set(coordinator.groupManager(), new FakeBroker.Scheduler(this));
        apis = new KafkaApis(FakeBroker.Channel.to(responses), replicas, null, coordinator, null, zookeeper, 1, kafka,
            FakeBroker.Topics.of(topics), null, Option.empty(), null, "cluster", clock);
    }

    @Override protected void runTimer(long target, Runnable after) { timer.runUntil(target, t -> clock.ms = t, after); }

    /** KafkaScheduler logs what a task throws, and goes on. */
    @Override protected void runTask(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            timer.lost++;
        }
    }

    @Override public int partitionFor(String group) { return coordinator.partitionFor(group); }
    @Override public void startup() { coordinator.startup(true); }
    @Override public void shutdown() { coordinator.shutdown(); }
    @Override public void elect(int partition, int epoch) { coordinator.handleGroupImmigration(partition); drain(); }
    @Override public void resign(int partition, OptionalInt epoch) { coordinator.handleGroupEmigration(partition); drain(); }

    /** A load that has begun to read the log, in a thread of its own, and does not come to its end. */
    void beginLoad(int partition) throws InterruptedException {
        log.reached = new CountDownLatch(1);
        coordinator.handleGroupImmigration(partition);
        Thread loader = new Thread(scheduled.remove(), "loader");
        loader.setDaemon(true);
        loader.start();
        log.reached.await();
        log.reached = null;
    }

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
