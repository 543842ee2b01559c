package kafka.server.share;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.OffsetNotAvailableException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.ShareGroupAutoOffsetResetStrategy;
import org.apache.kafka.server.partition.PartitionListener;
import org.apache.kafka.server.share.PartitionMetadataProvider;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** How Kafka 4.4 makes a share partition. */
final class Release {
    private Release() { }

    /** A queue for dead letters that takes them at once, or when it is told to. */
    static final class Letters implements ShareGroupDLQManager {
        ArrayNode taken;
        private boolean enabled;
        private boolean isHeld;
        private final List<CompletableFuture<Void>> held = new ArrayList<>();

        void set(boolean enabled, boolean held) { this.enabled = enabled; isHeld = held; }
        void answer(int index, boolean fails) {
            CompletableFuture<Void> one = held.remove(index);
            if (fails) one.completeExceptionally(new IllegalStateException("full")); else one.complete(null);
        }
        int waiting() { return held.size(); }

        @Override public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter letters) {
            taken.addArray().add(letters.firstOffset()).add(letters.lastOffset()).add(letters.deliveryCount().orElseThrow())
                .add(letters.cause().orElseThrow() == CLIENT_REJECT ? "CLIENT_REJECT" : "DELIVERY_COUNT_EXCEEDED");
            if (!isHeld) return CompletableFuture.completedFuture(null);
            CompletableFuture<Void> later = new CompletableFuture<>();
            held.add(later);
            return later;
        }
        @Override public void stop() { }
    }

    /** Settings with an offset reset, and with a queue for dead letters when that is on. */
    static final class ReleaseSettings extends Settings {
        final String reset;
        ReleaseSettings(String reset) { this.reset = reset; }
        @Override public ShareGroupAutoOffsetResetStrategy autoOffsetReset(String groupId) { return ShareGroupAutoOffsetResetStrategy.fromString(reset); }
        @Override public Optional<String> errorsDLQTopicName(String groupId) { return letters.enabled ? Optional.of("dlq") : Optional.empty(); }
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
            Offsets offsets, Settings settings, Letters letters, Runnable fetchable) {
        return new SharePartition(groupId, place, leaderEpoch, 0, 0, 0, timer, time, persister, offsets, key -> fetchable.run(), settings, null,
            () -> true, letters);
    }
}
