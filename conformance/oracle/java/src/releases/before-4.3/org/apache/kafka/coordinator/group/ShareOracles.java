package org.apache.kafka.coordinator.group;

import oracle.Lines;

/** The share coordinator is asked of 4.3 and later. */
final class ShareOracles {
    private ShareOracles() { }

    static Lines<?> oracle() { throw new IllegalArgumentException("the share coordinator of this release is not built"); }
}
