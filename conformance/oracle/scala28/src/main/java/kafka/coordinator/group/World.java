package kafka.coordinator.group;

import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.QuotaFactory;
import kafka.server.SimpleApiVersionManager;
import kafka.server.ZkSupport;
import kafka.utils.timer.Alarm;
import kafka.utils.timer.VirtualTimer;

import oracle.MemoryLog;
import oracle.ScheduledWorld;
import oracle.Unbuilt;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.TransactionResult;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The coordinator of 2.8, and KafkaApis in front of it, over virtual time and a log in memory. */
final class World extends ScheduledWorld {
    final VirtualTimer timer;
    final MemoryLog log;
    final GroupCoordinator coordinator;
    final KafkaApis apis;
    private final long writeTimeoutMs;
    private final Map<String, Integer> topics = new TreeMap<>();

    World(Map<String, String> config, int partitions, long startMs, MemoryLog.Sink records, FakeBroker.Channel.Sink responses)
            throws ReflectiveOperationException {
        super(partitions, startMs);
        timer = new VirtualTimer(startMs, () -> clock.ms);
        log = new MemoryLog(records, this::alarm);
        Properties properties = new Properties();
        properties.put("zookeeper.connect", "unused:1");
        properties.put("broker.id", "1");
        properties.putAll(config);
        KafkaConfig kafka = KafkaConfig.fromProps(properties, false);
        writeTimeoutMs = kafka.offsetCommitTimeoutMs();
        FakeBroker.Replicas replicas = Unbuilt.of(FakeBroker.Replicas.class);
        replicas.log = log;
        Metrics metrics = new Metrics(clock);
        var heartbeats = new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", timer, 1, 1000, false, true);
        var rebalances = new DelayedOperationPurgatory<DelayedRebalance>("Rebalance", timer, 1, 1000, false, true);
        coordinator = GroupCoordinator$.MODULE$.apply(kafka, replicas, heartbeats, rebalances, clock, metrics);
        Field field = GroupMetadataManager.class.getDeclaredField("scheduler");
        field.setAccessible(true);
        field.set(coordinator.groupManager(), new FakeBroker.Scheduler(this));
        FakeBroker.Topics cache = FakeBroker.Topics.of(topics);
        var quotas = new QuotaFactory.QuotaManagers(null, null, Unbuilt.of(FakeBroker.NoQuota.class), null, null, null, null, Option.empty());
        FakeBroker.Zookeeper zookeeper = Unbuilt.of(FakeBroker.Zookeeper.class);
        zookeeper.offsets = new TreeMap<>();
        apis = new KafkaApis(FakeBroker.Channel.to(responses), new ZkSupport(null, null, zookeeper, Option.empty(), cache), replicas, coordinator, null, null,
            1, kafka, null, cache, metrics, Option.empty(), quotas, null, null, "cluster", clock, null, new SimpleApiVersionManager(ListenerType.ZK_BROKER));
    }

    private Runnable alarm(long delayMs, Runnable task) {
        Alarm alarm = new Alarm(delayMs, task);
        timer.add(alarm);
        return alarm::cancel;
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

    /** What KafkaApis.handleWriteTxnMarkersRequest does, for one partition of the coordinator's own. */
    void endTransaction(String group, long producerId, MemoryRecords marker, TransactionResult result, Consumer<Errors> done) {
        if (!coordinator.groupManager().isGroupLocal(group)) {
            done.accept(Errors.NOT_COORDINATOR);
            return;
        }
        TopicPartition tp = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, coordinator.partitionFor(group));
        log.append(tp.partition(), marker, writeTimeoutMs, response -> {
            if (response.error == Errors.NONE) coordinator.scheduleHandleTxnCompletion(producerId, CollectionConverters.asScala(List.of(tp)), result);
            done.accept(response.error);
        });
        drain();
    }

    @Override public int partitionFor(String group) { return coordinator.partitionFor(group); }
    @Override public void startup() { coordinator.startup(() -> partitions, true); }
    @Override public void shutdown() { coordinator.shutdown(); }
    @Override public void elect(int partition, int epoch) { coordinator.onElection(partition, epoch); drain(); }
    @Override public void resign(int partition, OptionalInt epoch) {
        coordinator.onResignation(partition, epoch.isPresent() ? Option.apply(epoch.getAsInt()) : Option.empty());
        drain();
    }
    void setTopic(String name, int count) { topics.put(name, count); }

    void removeTopic(String name) {
        Integer count = topics.remove(name);
        if (count == null) return;
        List<TopicPartition> gone = new ArrayList<>();
        for (int p = 0; p < count; p++) gone.add(new TopicPartition(name, p));
        coordinator.handleDeletedPartitions(CollectionConverters.asScala(gone));
        drain();
    }
}
