package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.requests.*;

import java.util.concurrent.CompletableFuture;

/** The admin requests of share groups' offsets, as the coordinator takes them since 4.1. */
final class ShareOffsets {
    private ShareOffsets() { }

    static CompletableFuture<AbstractResponse> handle(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        if (request instanceof AlterShareGroupOffsetsRequest alter)
            return service.alterShareGroupOffsets(ctx, alter.data().groupId(), alter.data()).thenApply(AlterShareGroupOffsetsResponse::new);
        return service.deleteShareGroupOffsets(ctx, ((DeleteShareGroupOffsetsRequest) request).data()).thenApply(DeleteShareGroupOffsetsResponse::new);
    }
}
