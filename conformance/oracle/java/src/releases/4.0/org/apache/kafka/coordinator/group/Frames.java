package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;

import java.nio.ByteBuffer;

/** Messages and their bytes, as buffers in 4.0. */
final class Frames {
    private Frames() { }

    static ByteBuffer bytes(ApiMessage message, short v) { return MessageUtil.toByteBuffer(message, v); }
    static AbstractRequest request(ApiKeys key, short v, ByteBuffer bytes) { return AbstractRequest.parseRequest(key, v, bytes).request; }
}
