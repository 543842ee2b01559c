package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

/** The coordinator of 4.0 asks no share coordinator for anything. */
final class HeldPersister {
    void run(JsonNode command) { throw new IllegalArgumentException("4.0 has no share coordinator to hold"); }
    ArrayNode take() { return JsonNodeFactory.instance.arrayNode(); }
}
