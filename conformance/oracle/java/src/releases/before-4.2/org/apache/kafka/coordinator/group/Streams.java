package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestContext;

import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.concurrent.CompletableFuture;

/** Streams groups are no stable part of these releases. */
final class Streams {
    private Streams() { }

    static CompletableFuture<AbstractResponse> heartbeat(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        throw Errors.UNSUPPORTED_VERSION.exception("streams groups are stable since 4.2");
    }

    static CompletableFuture<AbstractResponse> describe(GroupCoordinatorService service, RequestContext ctx, AbstractRequest request) {
        throw Errors.UNSUPPORTED_VERSION.exception("streams groups are stable since 4.2");
    }

    static void tell(ObjectNode reply, AbstractResponse response) { }
}
