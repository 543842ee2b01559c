package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;

import java.nio.ByteBuffer;

/** Messages and their bytes, as accessors wrap them since 4.1. */
final class Frames {
    private Frames() { }

    static ByteBuffer bytes(ApiMessage message, short v) { return MessageUtil.toByteBufferAccessor(message, v).buffer(); }
    static AbstractRequest request(ApiKeys key, short v, ByteBuffer bytes) { return AbstractRequest.parseRequest(key, v, new ByteBufferAccessor(bytes)).request; }
}
