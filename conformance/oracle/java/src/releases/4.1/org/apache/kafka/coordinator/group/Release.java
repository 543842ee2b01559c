package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShardBuilder;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** What World, Apis and Oracle call otherwise in one release than in another: here 4.1. */
final class Release {
    private Release() { }

    static Object shareGroupConfig(Map<String, String> props) { return null; }

    static CoordinatorShardBuilder<GroupCoordinatorShard, CoordinatorRecord> withoutAuthorizer(GroupCoordinatorShard.Builder builder) {
        return builder.withAuthorizerPlugin(Optional.empty());
    }

    static CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> withTimeouts(
        CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> builder, GroupCoordinatorConfig config) {
        Duration timeout = Duration.ofMillis(config.offsetCommitTimeoutMs());
        return builder.withDefaultWriteTimeOut(timeout);
    }

    /** As BrokerMetadataPublisher; onPartitionsDeleted itself would wait for its writes, and stop the virtual clock. */
    static void publish(World world, MetadataDelta delta, MetadataImage image) {
        List<TopicPartition> deleted = World.deletedPartitions(delta);
        if (!deleted.isEmpty()) world.runtime.scheduleWriteAllOperation("on-partition-deleted", Duration.ofMillis(world.timeoutMs), shard -> shard.onPartitionsDeleted(deleted));
        world.service.onNewMetadataImage(image, delta);
    }

    static CompletableFuture<Void> completeTransaction(World world, TopicPartition tp, long producerId, short producerEpoch, int coordinatorEpoch,
                                                       TransactionResult result, short transactionVersion) {
        return world.service.completeTransaction(tp, producerId, producerEpoch, coordinatorEpoch, result, Duration.ofMillis(world.timeoutMs));
    }

    static CompletableFuture<OffsetFetchResponseGroup> fetch(GroupCoordinatorService service, RequestContext ctx, OffsetFetchRequestGroup group, boolean stable) {
        return group.topics() == null ? service.fetchAllOffsets(ctx, group, stable) : service.fetchOffsets(ctx, group, stable);
    }
}
