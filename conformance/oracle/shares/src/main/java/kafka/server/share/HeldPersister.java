package kafka.server.share;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A share coordinator that answers at once, or when it is told to, and remembers nothing. */
final class HeldPersister implements Persister {
    /** Error of the answers that come at once; null holds them back. */
    Errors error = Errors.NONE;
    /** What a read answers, unless it fails. */
    JsonNode stored;
    /** What is written during a command. */
    ArrayNode writes;

    private final List<CompletableFuture<Errors>> held = new ArrayList<>();

    /** Answer one of those that wait. */
    void answer(int index, Errors error) { held.remove(index).complete(error); }

    int waiting() { return held.size(); }

    private CompletableFuture<Errors> next() {
        if (error != null) return CompletableFuture.completedFuture(error);
        CompletableFuture<Errors> later = new CompletableFuture<>();
        held.add(later);
        return later;
    }

    @Override public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        TopicData<?> topic = request.groupTopicPartitionData().topicsData().get(0);
        return next().thenApply(error -> new ReadShareGroupStateResult.Builder()
            .setTopicsData(List.of(new TopicData<>(topic.topicId(), List.of(read(error))))).build());
    }

    private PartitionAllData read(Errors error) {
        if (error != Errors.NONE) return PartitionFactory.newPartitionAllData(0, 0, -1, error.code(), "no " + error, List.of());
        List<PersisterStateBatch> batches = new ArrayList<>();
        for (JsonNode each : stored.get("batches"))
            batches.add(new PersisterStateBatch(each.get(0).asLong(), each.get(1).asLong(), (byte) each.get(2).asInt(), (short) each.get(3).asInt()));
        return PartitionFactory.newPartitionAllData(0, stored.get("stateEpoch").asInt(), stored.get("start").asLong(), (short) 0, null, batches);
    }

    @Override public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        TopicData<PartitionStateBatchData> topic = request.groupTopicPartitionData().topicsData().get(0);
        PartitionStateBatchData partition = topic.partitions().get(0);
        ArrayNode write = writes.addArray();
        write.add(partition.stateEpoch()).add(partition.leaderEpoch()).add(partition.startOffset()).add(partition.deliveryCompleteCount());
        ArrayNode batches = write.addArray();
        for (PersisterStateBatch batch : partition.stateBatches())
            batches.addArray().add(batch.firstOffset()).add(batch.lastOffset()).add(batch.deliveryState()).add(batch.deliveryCount());
        return next().thenApply(error -> new WriteShareGroupStateResult.Builder()
            .setTopicsData(List.of(new TopicData<>(topic.topicId(), List.of(
                PartitionFactory.newPartitionErrorData(0, error.code(), error == Errors.NONE ? null : "no " + error))))).build());
    }

    @Override public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) { throw new UnsupportedOperationException(); }
    @Override public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) { throw new UnsupportedOperationException(); }
    @Override public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) { throw new UnsupportedOperationException(); }
    @Override public void stop() { }
}
