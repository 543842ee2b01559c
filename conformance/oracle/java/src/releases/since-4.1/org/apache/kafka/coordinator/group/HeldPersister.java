package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionIdData;
import org.apache.kafka.server.share.persister.PartitionInfoData;
import org.apache.kafka.server.share.persister.PartitionStateData;
import org.apache.kafka.server.share.persister.TopicData;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/** A share coordinator that does what it is asked at once, or when the program says so, or not at all. */
final class HeldPersister extends NoOpStatePersister {
    private interface Held { void finish(Errors error, boolean thrown); }

    private final ArrayDeque<Held> held = new ArrayDeque<>();
    private boolean holds;
    private ArrayNode calls = JsonNodeFactory.instance.arrayNode();

    /** {"hold": bool} for the calls to come; {"answer": error, "count": n, "throws": bool} for the oldest that are held. */
    void run(JsonNode command) {
        if (command.has("hold")) holds = command.get("hold").asBoolean();
        if (!command.has("answer")) return;
        Errors error = Errors.valueOf(command.get("answer").asText());
        for (int left = command.path("count").asInt(1); left > 0 && !held.isEmpty(); left--) held.poll().finish(error, command.path("throws").asBoolean(false));
    }

    /** What was asked for since the last time. */
    ArrayNode take() {
        ArrayNode taken = calls;
        calls = JsonNodeFactory.instance.arrayNode();
        return taken;
    }

    @Override public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
        var data = request.groupTopicPartitionData();
        say("initialize", data.groupId(), data.topicsData(), PartitionStateData::partition,
            (node, p) -> node.put("stateEpoch", p.stateEpoch()).put("startOffset", p.startOffset()));
        return asked(error -> new InitializeShareGroupStateResult.Builder().setTopicsData(outcomes(data.topicsData(), PartitionStateData::partition, error)).build());
    }

    @Override public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        var data = request.groupTopicPartitionData();
        say("delete", data.groupId(), data.topicsData(), PartitionIdData::partition, (node, p) -> { });
        return asked(error -> new DeleteShareGroupStateResult.Builder().setTopicsData(outcomes(data.topicsData(), PartitionIdData::partition, error)).build());
    }

    private <R> CompletableFuture<R> asked(Function<Errors, R> result) {
        CompletableFuture<R> future = new CompletableFuture<>();
        Held call = (error, thrown) -> {
            if (thrown) future.completeExceptionally(error.exception());
            else future.complete(result.apply(error));
        };
        if (holds) held.add(call);
        else call.finish(Errors.NONE, false);
        return future;
    }

    private static <P extends PartitionInfoData> List<TopicData<PartitionErrorData>> outcomes(List<TopicData<P>> topics, ToIntFunction<P> index, Errors error) {
        String message = error == Errors.NONE ? null : error.message();
        return topics.stream().map(t -> new TopicData<>(t.topicId(),
            t.partitions().stream().map(p -> PartitionFactory.newPartitionErrorData(index.applyAsInt(p), error.code(), message)).toList())).toList();
    }

    private interface More<P> { void put(ObjectNode node, P partition); }

    private <P extends PartitionInfoData> void say(String what, String group, List<TopicData<P>> topics, ToIntFunction<P> index, More<P> more) {
        ObjectNode call = calls.addObject().put("call", what).put("group", group);
        ArrayNode said = call.putArray("topics");
        topics.stream().sorted(Comparator.comparing((TopicData<P> t) -> text(t.topicId()))).forEach(t -> {
            ArrayNode partitions = said.addObject().put("topicId", text(t.topicId())).putArray("partitions");
            t.partitions().stream().sorted(Comparator.comparingInt(index)).forEach(p -> more.put(partitions.addObject().put("partition", index.applyAsInt(p)), p));
        });
    }

    private static String text(Uuid id) { return id.toString(); }
}
