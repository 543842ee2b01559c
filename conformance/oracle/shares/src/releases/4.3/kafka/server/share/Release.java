package kafka.server.share;

import kafka.server.ReplicaManager;

import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.Optional;

import scala.Option;

/** How Kafka 4.3 makes a share partition. */
final class Release {
    private Release() { }

    /** Settings of which the offset reset is Kafka's own. */
    static final class ReleaseSettings extends Settings {
        final String reset;
        ReleaseSettings(String reset) { this.reset = reset; }
    }

    /** The log's offsets by what is looked for; null has none. */
    record Offsets(JsonNode found) { }

    /** There is no queue for dead letters. */
    static final class Letters {
        ArrayNode taken;
        void set(boolean enabled, boolean held) { throw new UnsupportedOperationException(); }
        void answer(int index, boolean fails) { throw new UnsupportedOperationException(); }
        int waiting() { return 0; }
    }

    private static final class Replicas extends ReplicaManager {
        private Offsets offsets;
        private Runnable fetchable;
        private Replicas() {
            super(null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null, null, null, null, null);
        }

        @Override public OffsetResultHolder fetchOffsetForTimestamp(TopicPartition place, long timestamp, Option<IsolationLevel> isolation, Optional<Integer> epoch, boolean fromLeader) {
            JsonNode offset = offsets.found.get(timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP ? "earliest" : timestamp == ListOffsetsRequest.LATEST_TIMESTAMP ? "latest" : "timestamp");
            return new OffsetResultHolder(offset.isNull() ? Optional.empty() : Optional.of(new TimestampAndOffset(0, offset.asLong(), Optional.empty())));
        }

        @Override public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) { fetchable.run(); }
    }

    private static final class Configs extends GroupConfigManager {
        private GroupConfig config;
        private Configs() { super(null, null, null); }
        @Override public Optional<GroupConfig> groupConfig(String groupId) { return Optional.of(config); }
    }

    static SharePartition partition(String groupId, TopicIdPartition place, int leaderEpoch, Timer timer, Time time, Persister persister,
            Offsets offsets, Settings settings, Letters letters, Runnable fetchable) throws Exception {
        Replicas replicas = unbuilt(Replicas.class);
        replicas.offsets = offsets;
        replicas.fetchable = fetchable;
        Configs configs = unbuilt(Configs.class);
        configs.config = new GroupConfig(Map.of(GroupConfig.SHARE_AUTO_OFFSET_RESET_CONFIG, ((ReleaseSettings) settings).reset));
        SharePartition partition = new SharePartition(groupId, place, leaderEpoch, 0, 0, 0, timer, time, persister, replicas, configs, null);
        Field provider = SharePartition.class.getDeclaredField("configProvider");
        provider.setAccessible(true);
        provider.set(partition, settings);
        return partition;
    }

    /** An object whose constructor did not run. */
    @SuppressWarnings("unchecked")
    static <T> T unbuilt(Class<T> type) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return (T) unsafe.getMethod("allocateInstance", Class.class).invoke(field.get(null), type);
    }
}
