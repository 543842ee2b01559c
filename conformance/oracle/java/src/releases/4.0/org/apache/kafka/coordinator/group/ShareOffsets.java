package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.*;

import java.util.concurrent.CompletableFuture;

/** 4.0 takes no admin requests of share groups' offsets. */
final class ShareOffsets {
    private ShareOffsets() { }

    static CompletableFuture<AbstractResponse> handle(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        throw Errors.UNSUPPORTED_VERSION.exception("not a group coordinator api: " + request.apiKey());
    }
}
