package kafka.coordinator;

import kafka.log.Log;
import kafka.log.LogAppendInfo;
import kafka.network.RequestChannel;
import kafka.server.FetchDataInfo;
import kafka.server.LogOffsetMetadata;
import kafka.server.MetadataCache;
import kafka.server.ReplicaManager;
import kafka.utils.KafkaScheduler;
import kafka.utils.ZkUtils;
import kafka.utils.timer.Alarm;

import oracle.Unbuilt;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.zookeeper.common.PathUtils;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

import scala.Function0;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.Map;
import scala.collection.Seq;
import scala.runtime.BoxedUnit;

/** Stand-ins for the broker parts around the coordinator. Their constructors never run. */
final class FakeBroker {
    private FakeBroker() { }

    static final class Replicas extends ReplicaManager {
        MemoryLog log;
        private Replicas() { super(null, null, null, null, null, null, null, null, null); }

        @Override public Option<Object> getMagic(TopicPartition tp) { return new Some<>((byte) 1); }
        @Override public Option<Object> getHighWatermark(TopicPartition tp) { return new Some<>(log.end(tp.partition())); }
        @Override public Option<Log> getLog(TopicPartition tp) {
            Reader reader = Unbuilt.of(Reader.class);
            reader.log = log;
            reader.partition = tp.partition();
            return new Some<>(reader);
        }
        @Override public Option<kafka.cluster.Partition> getPartition(TopicPartition tp) {
            Tombstones tombstones = Unbuilt.of(Tombstones.class);
            tombstones.log = log;
            tombstones.partition = tp.partition();
            return new Some<>(tombstones);
        }

        @Override public void appendRecords(long timeout, short acks, boolean internal, Map<TopicPartition, MemoryRecords> entries,
                Function1<Map<TopicPartition, PartitionResponse>, BoxedUnit> callback) {
            Tuple2<TopicPartition, MemoryRecords> only = entries.iterator().next();
            TopicPartition tp = only._1();
            if (log.failCount > 0) {
                log.failCount--;
                callback.apply(status(tp, new PartitionResponse(log.fail)));
                return;
            }
            long base = log.write(tp.partition(), only._2());
            Runnable committed = () -> callback.apply(status(tp, new PartitionResponse(Errors.NONE, base, -1L)));
            boolean isEmpty = base == log.end(tp.partition());
            if (!log.hold || isEmpty && log.isCommitted(tp.partition())) {
                committed.run();
                return;
            }
            boolean[] isDone = {false};
            Alarm late = new Alarm(timeout, () -> {
                isDone[0] = true;
                callback.apply(status(tp, new PartitionResponse(Errors.REQUEST_TIMED_OUT)));
            });
            log.part(tp.partition()).parked.add(() -> {
                if (isDone[0]) return;
                late.cancel();
                committed.run();
            });
            log.timer.add(late);
        }

        private static Map<TopicPartition, PartitionResponse> status(TopicPartition tp, PartitionResponse response) {
            return new scala.collection.immutable.Map.Map1<>(tp, response);
        }
    }

    static final class Tombstones extends kafka.cluster.Partition {
        MemoryLog log;
        int partition;
        private Tombstones() { super(null, 0, null, null); }
        @Override public int appendRecordsToLeader$default$2() { return 0; }
        @Override public LogAppendInfo appendRecordsToLeader(MemoryRecords records, int acks) {
            log.write(partition, records);
            return null;
        }
    }

    static final class Reader extends Log {
        MemoryLog log;
        int partition;
        private Reader() { super(null, null, 0, null, null); }
        @Override public long logStartOffset() { return 0; }
        @Override public Option<Object> read$default$3() { return Option.empty(); }
        @Override public boolean read$default$4() { return false; }
        @Override public FetchDataInfo read(long offset, int max, Option<Object> maxOffset, boolean minOne) {
            Segment segment = Unbuilt.of(Segment.class);
            segment.bytes = log.read(partition, offset);
            return new FetchDataInfo(new LogOffsetMetadata(offset, 0, 0), segment, false);
        }
    }

    static final class Segment extends FileRecords {
        ByteBuffer bytes;
        private Segment() throws java.io.IOException { super(null, null, 0, 0, true); }
        @Override public ByteBuffer readInto(ByteBuffer buffer, int position) { return bytes; }
    }

    static final class Zookeeper extends ZkUtils {
        /** Data of the nodes that hold offsets, by path. */
        java.util.Map<String, String> nodes;
        private Zookeeper() { super(null, null, false); }
        @Override public void updatePersistentPath(String path, String data, java.util.List<ACL> acls) {
            PathUtils.validatePath(path);
            nodes.put(path, data);
        }
        @Override public java.util.List<ACL> updatePersistentPath$default$3() { return null; }
        @Override public Tuple2<Option<String>, Stat> readDataMaybeNull(String path) {
            PathUtils.validatePath(path);
            return new Tuple2<>(Option.apply(nodes.get(path)), null);
        }
        @Override public scala.collection.mutable.Map<String, Map<Object, Seq<Object>>> getPartitionAssignmentForTopics(Seq<String> topics) {
            var found = new scala.collection.mutable.HashMap<String, Map<Object, Seq<Object>>>();
            found.put(topics.head(), new scala.collection.mutable.HashMap<>());
            return found;
        }
    }

    static final class Topics extends MetadataCache {
        private java.util.Map<String, Integer> topics;
        private Topics() { super(0); }
        static Topics of(java.util.Map<String, Integer> topics) {
            Topics cache = Unbuilt.of(Topics.class);
            cache.topics = topics;
            return cache;
        }
        @Override public boolean contains(String topic) { return topics.containsKey(topic); }
    }

    static final class Channel extends RequestChannel {
        interface Sink { void send(RequestChannel.Response response); }
        private Sink sink;
        private Channel() { super(0, 0); }
        static Channel to(Sink sink) {
            Channel channel = Unbuilt.of(Channel.class);
            channel.sink = sink;
            return channel;
        }
        @Override public void sendResponse(RequestChannel.Response response) { sink.send(response); }
    }

    static final class Scheduler extends KafkaScheduler {
        private final World world;
        Scheduler(World world) { super(1, "unused-", true); this.world = world; }
        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public void schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            Runnable run = task::apply;
            if (period >= 0) run = () -> { task.apply(); schedule(name, task, period, period, unit); };
            if (delay <= 0) world.scheduled.add(run);
            else world.timer.add(new Alarm(unit.toMillis(delay), run));
        }
    }
}
