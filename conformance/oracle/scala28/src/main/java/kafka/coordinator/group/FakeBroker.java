package kafka.coordinator.group;

import kafka.log.AppendOrigin;
import kafka.log.Log;
import kafka.log.LogAppendInfo;
import kafka.network.RequestChannel;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.FetchDataInfo;
import kafka.server.FetchIsolation;
import kafka.server.LogOffsetMetadata;
import kafka.server.ReplicaManager;
import kafka.server.ZkMetadataCache;
import kafka.utils.KafkaScheduler;
import kafka.utils.timer.Alarm;

import oracle.MemoryLog;
import oracle.Unbuilt;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordConversionStats;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;

import scala.Function0;
import scala.Function1;
import kafka.zk.ConsumerOffset;
import kafka.zk.KafkaZkClient;

import org.apache.zookeeper.common.PathUtils;

import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.Map;
import scala.runtime.BoxedUnit;

/** Stand-ins for the broker parts around the coordinator. Their constructors never run. */
final class FakeBroker {
    private FakeBroker() { }

    static final class Replicas extends ReplicaManager {
        MemoryLog log;
        private Replicas() { super(null, null, null, null, null, null, null, null, null, null, null, null, null, null); }

        @Override public Option<Object> getMagic(TopicPartition tp) { return new Some<>((byte) 2); }
        @Override public Option<Object> getLogEndOffset(TopicPartition tp) { return new Some<>(log.end(tp.partition())); }
        @Override public void tryCompleteActions() { }
        @Override public Option<Log> getLog(TopicPartition tp) {
            Reader reader = Unbuilt.of(Reader.class);
            reader.log = log;
            reader.partition = tp.partition();
            return new Some<>(reader);
        }
        @Override public Option<kafka.cluster.Partition> onlinePartition(TopicPartition tp) {
            Tombstones tombstones = Unbuilt.of(Tombstones.class);
            tombstones.log = log;
            tombstones.partition = tp.partition();
            return new Some<>(tombstones);
        }

        @Override public void appendRecords(long timeout, short acks, boolean internal, AppendOrigin origin, Map<TopicPartition, MemoryRecords> entries,
                Function1<Map<TopicPartition, PartitionResponse>, BoxedUnit> callback, Option<Lock> lock,
                Function1<Map<TopicPartition, RecordConversionStats>, BoxedUnit> stats) {
            Tuple2<TopicPartition, MemoryRecords> only = entries.iterator().next();
            TopicPartition tp = only._1();
            log.append(tp.partition(), only._2(), timeout, response -> callback.apply(new scala.collection.immutable.Map.Map1<>(tp, response)));
        }
    }

    static final class Tombstones extends kafka.cluster.Partition {
        MemoryLog log;
        int partition;
        private Tombstones() { super(null, 0, null, 0, null, null, null, null, null, null); }
        @Override public LogAppendInfo appendRecordsToLeader(MemoryRecords records, AppendOrigin origin, int acks) {
            log.write(partition, records);
            return null;
        }
    }

    static final class Reader extends Log {
        MemoryLog log;
        int partition;
        private Reader() { super(null, null, 0, 0, null, null, null, 0, 0, null, null, null, false, false); }
        @Override public long logStartOffset() { return 0; }
        @Override public FetchDataInfo read(long offset, int max, FetchIsolation isolation, boolean minOne) {
            return new FetchDataInfo(new LogOffsetMetadata(offset, 0, 0), offset == 0 ? log.all(partition) : MemoryRecords.EMPTY, false, Option.empty());
        }
    }

    /** Offsets of version 0. */
    static final class Zookeeper extends KafkaZkClient {
        java.util.Map<String, Long> offsets;
        private Zookeeper() { super(null, false, null); }
        @Override public void setOrCreateConsumerOffset(String group, TopicPartition tp, long offset) {
            String path = ConsumerOffset.path(group, tp.topic(), tp.partition());
            PathUtils.validatePath(path);
            offsets.put(path, offset);
        }
        @Override public Option<Object> getConsumerOffset(String group, TopicPartition tp) {
            String path = ConsumerOffset.path(group, tp.topic(), tp.partition());
            PathUtils.validatePath(path);
            return Option.apply(offsets.get(path));
        }
    }

    static final class Topics extends ZkMetadataCache {
        private java.util.Map<String, Integer> topics;
        private Topics() { super(0); }
        static Topics of(java.util.Map<String, Integer> topics) {
            Topics cache = Unbuilt.of(Topics.class);
            cache.topics = topics;
            return cache;
        }
        @Override public boolean contains(String topic) { return topics.containsKey(topic); }
        @Override public boolean contains(TopicPartition tp) { return tp.partition() >= 0 && tp.partition() < topics.getOrDefault(tp.topic(), 0); }
    }

    static final class Channel extends RequestChannel {
        interface Sink { void send(RequestChannel.Response response); }
        private Sink sink;
        private Channel() { super(0, null, null, null); }
        static Channel to(Sink sink) {
            Channel channel = Unbuilt.of(Channel.class);
            channel.sink = sink;
            return channel;
        }
        @Override public void sendResponse(RequestChannel.Response response) { sink.send(response); }
        @Override public void updateErrorMetrics(ApiKeys key, Map<Errors, Integer> errors) { }
    }

    static final class NoQuota extends ClientRequestQuotaManager {
        private NoQuota() { super(null, null, null, null, null); }
        @Override public int maybeRecordAndGetThrottleTimeMs(RequestChannel.Request request, long now) { return 0; }
        @Override public void maybeRecordExempt(RequestChannel.Request request) { }
        @Override public void throttle(RequestChannel.Request request, int ms, Function1<RequestChannel.Response, BoxedUnit> send) { }
    }

    static final class Scheduler extends KafkaScheduler {
        private final World world;
        Scheduler(World world) { super(1, "unused-", true); this.world = world; }
        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public ScheduledFuture<?> schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            Runnable run = period < 0 ? task::apply : () -> { task.apply(); schedule(name, task, period, period, unit); };
            if (delay <= 0) world.scheduled.add(run);
            else world.timer.add(new Alarm(unit.toMillis(delay), run));
            return null;
        }
    }
}
