package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.*;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What KafkaApis of 4.0 does around OffsetCommit and OffsetFetch: topics have names alone. */
final class Offsets {
    private Offsets() { }

    static CompletableFuture<AbstractResponse> commit(World world, RequestContext ctx, OffsetCommitRequestData data, short v) {
        OffsetCommitResponse.Builder out = new OffsetCommitResponse.Builder();
        List<OffsetCommitRequestData.OffsetCommitRequestTopic> valid = new ArrayList<>();
        for (var topic : data.topics()) {
            if (world.topicId(topic.name()).equals(Uuid.ZERO_UUID)) {
                out.addPartitions(topic.name(), topic.partitions(), p -> p.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                continue;
            }
            var kept = new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(topic.name());
            for (var p : topic.partitions()) {
                if (world.hasPartition(topic.name(), p.partitionIndex())) kept.partitions().add(p);
                else out.addPartition(topic.name(), p.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
            }
            if (!kept.partitions().isEmpty()) valid.add(kept);
        }
        if (valid.isEmpty()) return CompletableFuture.completedFuture(out.build());
        return world.service.commitOffsets(ctx, new OffsetCommitRequestData().setGroupId(data.groupId()).setMemberId(data.memberId())
            .setGenerationIdOrMemberEpoch(data.generationIdOrMemberEpoch()).setRetentionTimeMs(data.retentionTimeMs())
            .setGroupInstanceId(data.groupInstanceId()).setTopics(valid), null).thenApply(d -> out.merge(d).build());
    }

    static CompletableFuture<AbstractResponse> fetch(World world, RequestContext ctx, OffsetFetchRequest request, short v) {
        List<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>> parts = new ArrayList<>();
        for (var group : request.groups()) {
            parts.add(Release.fetch(world.service, ctx, group, request.requireStable())
                .exceptionally(e -> OffsetFetchResponse.groupError(group, Errors.forException(e), v)));
        }
        return CompletableFuture.allOf(parts.toArray(new CompletableFuture[0]))
            .thenApply(x -> new OffsetFetchResponse(parts.stream().map(CompletableFuture::join).toList(), v));
    }
}
