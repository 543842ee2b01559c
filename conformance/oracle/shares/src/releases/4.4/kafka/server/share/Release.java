package kafka.server.share;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.OffsetNotAvailableException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.ShareGroupAutoOffsetResetStrategy;
import org.apache.kafka.server.partition.PartitionListener;
import org.apache.kafka.server.share.PartitionMetadataProvider;
import org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.Optional;

/** How Kafka 4.4 makes a share partition. */
final class Release {
    private Release() { }

    /** Settings with an offset reset, and no queue for what is archived. */
    static final class ReleaseSettings extends Settings {
        final String reset;
        ReleaseSettings(String reset) { this.reset = reset; }
        @Override public ShareGroupAutoOffsetResetStrategy autoOffsetReset(String groupId) { return ShareGroupAutoOffsetResetStrategy.fromString(reset); }
        @Override public Optional<String> errorsDLQTopicName(String groupId) { return Optional.empty(); }
    }

    /** The log's offsets by what is looked for; null has none. The words are ReplicaManagerPartitionMetadataProvider's. */
    record Offsets(JsonNode found) implements PartitionMetadataProvider {
        private long of(String what, String words, TopicIdPartition place) {
            JsonNode offset = found.get(what);
            if (offset.isNull()) throw new OffsetNotAvailableException("Offset for " + words + " not found for topic partition: " + place);
            return offset.asLong();
        }

        @Override public long offsetForEarliestTimestamp(TopicIdPartition place, int epoch) { return of("earliest", "earliest timestamp", place); }
        @Override public long offsetForLatestTimestamp(TopicIdPartition place, int epoch) { return of("latest", "latest timestamp", place); }
        @Override public long offsetForTimestamp(TopicIdPartition place, long timestamp, int epoch) { return of("timestamp", "timestamp " + timestamp, place); }
        @Override public LogOffsetMetadata endOffsetMetadata(TopicIdPartition place, FetchIsolation isolation) { throw new UnsupportedOperationException(); }
        @Override public int leaderEpoch(TopicIdPartition place) { throw new UnsupportedOperationException(); }
        @Override public boolean addPartitionListener(TopicIdPartition place, PartitionListener listener) { throw new UnsupportedOperationException(); }
        @Override public void removePartitionListener(TopicIdPartition place, PartitionListener listener) { throw new UnsupportedOperationException(); }
    }

    static SharePartition partition(String groupId, TopicIdPartition place, int leaderEpoch, Timer timer, Time time, Persister persister,
            Offsets offsets, Settings settings, Runnable fetchable) {
        return new SharePartition(groupId, place, leaderEpoch, 0, 0, 0, timer, time, persister, offsets, key -> fetchable.run(), settings, null,
            () -> false, new NoOpShareGroupDLQManager());
    }
}
