package org.apache.kafka.coordinator.group;

import oracle.Lines;

/** The share coordinator behind the line protocol. */
final class ShareOracles {
    private ShareOracles() { }

    static Lines<?> oracle() { return new ShareOracle(); }
}
