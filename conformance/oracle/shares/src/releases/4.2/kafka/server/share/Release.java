package kafka.server.share;

import kafka.server.ReplicaManager;

import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.FileRecords.TimestampAndOffset;
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

/** How Kafka 4.2 makes a share partition. */
final class Release {
    private Release() { }

    /** The broker's settings, set in the partition's fields; the group's are the lock's duration and the offset reset. */
    static final class ReleaseSettings extends Settings {
        private final String reset;
        private final Configs configs;
        private JsonNode now;
        private SharePartition partition;

        ReleaseSettings(String reset) throws Exception {
            this.reset = reset;
            configs = unbuilt(Configs.class);
        }

        @Override void set(JsonNode settings) throws Exception {
            now = settings;
            configs.config = new GroupConfig(Map.of(GroupConfig.SHARE_AUTO_OFFSET_RESET_CONFIG, reset,
                GroupConfig.SHARE_RECORD_LOCK_DURATION_MS_CONFIG, now.get("lockMs").asText()));
            if (partition == null) return;
            int deliveries = now.get("deliveries").asInt();
            setField("maxInFlightRecords", now.get("locks").asInt());
            setField("maxDeliveryCount", deliveries);
            setField("throttleRecordsDeliveryLimit", Math.max(2, (int) Math.ceil((double) deliveries / 2)));
        }

        private void setField(String name, int value) throws Exception {
            Field field = SharePartition.class.getDeclaredField(name);
            field.setAccessible(true);
            field.set(partition, value);
        }
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
        private Configs() { super(null); }
        @Override public Optional<GroupConfig> groupConfig(String groupId) { return Optional.of(config); }
    }

    static SharePartition partition(String groupId, TopicIdPartition place, int leaderEpoch, Timer timer, Time time, Persister persister,
            Offsets offsets, Settings settings, Letters letters, Runnable fetchable) throws Exception {
        Replicas replicas = unbuilt(Replicas.class);
        replicas.offsets = offsets;
        replicas.fetchable = fetchable;
        ReleaseSettings own = (ReleaseSettings) settings;
        SharePartition partition = new SharePartition(groupId, place, leaderEpoch, own.now.get("locks").asInt(), own.now.get("deliveries").asInt(), 0,
            timer, time, persister, replicas, own.configs, null);
        own.partition = partition;
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
