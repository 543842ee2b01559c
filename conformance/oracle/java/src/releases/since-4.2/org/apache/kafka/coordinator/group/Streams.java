package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.StreamsGroupDescribeRequest;
import org.apache.kafka.common.requests.StreamsGroupDescribeResponse;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Requests of streams groups (KIP-1071), stable since 4.2. */
final class Streams {
    private Streams() { }

    /** An answer, and the topics that a broker would create now. */
    static final class Told extends StreamsGroupHeartbeatResponse {
        final Map<String, CreatableTopic> topics;
        Told(StreamsGroupHeartbeatResponseData data, Map<String, CreatableTopic> topics) {
            super(data);
            this.topics = topics;
        }
    }

    static CompletableFuture<AbstractResponse> heartbeat(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        return service.streamsGroupHeartbeat(ctx, ((StreamsGroupHeartbeatRequest) request).data())
            .thenApply(result -> new Told(result.data(), result.creatableTopics()));
    }

    @SuppressWarnings("unchecked")
    static CompletableFuture<AbstractResponse> describe(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        List<String> ids = ((StreamsGroupDescribeRequest) request).data().groupIds();
        Method method = Arrays.stream(GroupCoordinatorService.class.getMethods()).filter(m -> m.getName().equals("streamsGroupDescribe")).findFirst().get();
        try { // since 4.4 it is told whether to ask a plugin, too
            Object found = method.getParameterCount() == 3 ? method.invoke(service, ctx, ids, false) : method.invoke(service, ctx, ids);
            return ((CompletableFuture<List<StreamsGroupDescribeResponseData.DescribedGroup>>) found)
                .thenApply(g -> new StreamsGroupDescribeResponse(new StreamsGroupDescribeResponseData().setGroups(g)));
        } catch (ReflectiveOperationException e) { throw new IllegalStateException(e); }
    }

    /** Adds the topics to a reply, in the order in which they are created. */
    static void tell(ObjectNode reply, AbstractResponse response) {
        if (!(response instanceof Told told) || told.topics.isEmpty()) return;
        ArrayNode topics = reply.putArray("internalTopics");
        told.topics.values().forEach(t -> {
            ObjectNode topic = topics.addObject().put("name", t.name()).put("partitions", t.numPartitions()).put("replicationFactor", t.replicationFactor());
            ObjectNode configs = topic.putObject("configs");
            t.configs().forEach(c -> configs.put(c.name(), c.value()));
        });
    }
}
