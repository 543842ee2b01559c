package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShardBuilder;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** What World, Apis and Oracle call otherwise in one release than in another: here 4.3 and 4.4. */
final class Release {
    private Release() { }

    static Object shareGroupConfig(Map<String, String> props) { return ShareGroupConfig.fromProps(props); }

    static CoordinatorShardBuilder<GroupCoordinatorShard, CoordinatorRecord> withoutAuthorizer(GroupCoordinatorShard.Builder builder) {
        return builder.withAuthorizerPlugin(Optional.empty());
    }

    static CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> withTimeouts(
        CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> builder, GroupCoordinatorConfig config) {
        Duration timeout = Duration.ofMillis(config.offsetCommitTimeoutMs());
        return builder.withWriteTimeout(timeout).withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes);
    }

    static void publish(World world, MetadataDelta delta, MetadataImage image) {
        world.service.onMetadataUpdate(delta, image);
    }

    static CompletableFuture<Void> completeTransaction(World world, TopicPartition tp, long producerId, short producerEpoch, int coordinatorEpoch,
                                                       TransactionResult result, short transactionVersion) {
        return world.service.completeTransaction(tp, producerId, producerEpoch, coordinatorEpoch, result, transactionVersion);
    }

    static CompletableFuture<OffsetFetchResponseGroup> fetch(GroupCoordinatorService service, RequestContext ctx, OffsetFetchRequestGroup group, boolean stable) {
        return service.fetchOffsets(ctx, group, stable);
    }
}
