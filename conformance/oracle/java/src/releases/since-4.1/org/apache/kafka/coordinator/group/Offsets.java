package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.*;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What KafkaApis does around OffsetCommit and OffsetFetch since topics have ids there, 4.1. */
final class Offsets {
    private Offsets() { }

    static CompletableFuture<AbstractResponse> commit(World world, RequestContext ctx, OffsetCommitRequestData data, short v) {
        boolean ids = OffsetCommitResponse.useTopicIds(v);
        OffsetCommitResponse.Builder out = OffsetCommitResponse.newBuilder(ids);
        List<OffsetCommitRequestData.OffsetCommitRequestTopic> valid = new ArrayList<>();
        for (var topic : data.topics()) {
            if (ids) { String n = world.topicName(topic.topicId()); if (n != null) topic.setName(n); }
            if (ids && topic.name().isEmpty()) {
                out.addPartitions(topic.topicId(), topic.name(), topic.partitions(), p -> p.partitionIndex(), Errors.UNKNOWN_TOPIC_ID);
                continue;
            }
            if (!ids) topic.setTopicId(world.topicId(topic.name()));
            if (topic.topicId().equals(Uuid.ZERO_UUID)) {
                out.addPartitions(Uuid.ZERO_UUID, topic.name(), topic.partitions(), p -> p.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                continue;
            }
            var kept = new OffsetCommitRequestData.OffsetCommitRequestTopic().setTopicId(topic.topicId()).setName(topic.name());
            for (var p : topic.partitions()) {
                if (world.hasPartition(topic.name(), p.partitionIndex())) kept.partitions().add(p);
                else out.addPartition(topic.topicId(), topic.name(), p.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
            }
            if (!kept.partitions().isEmpty()) valid.add(kept);
        }
        if (valid.isEmpty()) return CompletableFuture.completedFuture(out.build());
        return world.service.commitOffsets(ctx, new OffsetCommitRequestData().setGroupId(data.groupId()).setMemberId(data.memberId())
            .setGenerationIdOrMemberEpoch(data.generationIdOrMemberEpoch()).setRetentionTimeMs(data.retentionTimeMs())
            .setGroupInstanceId(data.groupInstanceId()).setTopics(valid), null).thenApply(d -> out.merge(d).build());
    }

    static CompletableFuture<AbstractResponse> fetch(World world, RequestContext ctx, OffsetFetchRequest request, short v) {
        boolean ids = OffsetFetchRequest.useTopicIds(v);
        List<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>> parts = new ArrayList<>();
        for (var group : request.groups()) {
            List<OffsetFetchResponseData.OffsetFetchResponseTopics> errors = new ArrayList<>();
            boolean all = group.topics() == null;
            var ask = group;
            if (!all) {
                ask = new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(group.groupId()).setMemberId(group.memberId())
                    .setMemberEpoch(group.memberEpoch()).setTopics(new ArrayList<>());
                for (var t : group.topics()) {
                    if (ids && !t.topicId().equals(Uuid.ZERO_UUID)) { String n = world.topicName(t.topicId()); if (n != null) t.setName(n); }
                    if (ids && t.name().isEmpty()) {
                        var e = new OffsetFetchResponseData.OffsetFetchResponseTopics().setTopicId(t.topicId()).setName(t.name());
                        for (int p : t.partitionIndexes()) e.partitions().add(new OffsetFetchResponseData.OffsetFetchResponsePartitions()
                            .setPartitionIndex(p).setCommittedOffset(-1).setErrorCode(Errors.UNKNOWN_TOPIC_ID.code()));
                        errors.add(e);
                    } else ask.topics().add(t);
                }
            }
            parts.add(Release.fetch(world.service, ctx, ask, request.requireStable()).handle((r, e) -> {
                if (e != null) return OffsetFetchResponse.groupError(group, Errors.forException(e), v);
                if (r.errorCode() != 0) return r;
                var topics = new ArrayList<>(r.topics());
                if (all && ids) {
                    for (var t : topics) if (t.topicId().equals(Uuid.ZERO_UUID)) t.setTopicId(world.topicId(t.name()));
                    topics.removeIf(t -> t.topicId().equals(Uuid.ZERO_UUID));
                }
                topics.addAll(errors);
                return r.setTopics(topics);
            }));
        }
        return CompletableFuture.allOf(parts.toArray(new CompletableFuture[0]))
            .thenApply(x -> new OffsetFetchResponse.Builder(parts.stream().map(CompletableFuture::join).toList()).build(v));
    }
}
