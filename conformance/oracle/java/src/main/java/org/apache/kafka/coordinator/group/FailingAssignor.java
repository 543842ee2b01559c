package org.apache.kafka.coordinator.group;

import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** An assignor that cannot assign. */
public final class FailingAssignor implements ConsumerGroupPartitionAssignor {
    static final String NAME = "failing";

    @Override public String name() { return NAME; }

    @Override public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        throw new PartitionAssignorException("asked for " + group.memberIds().size() + " members");
    }
}
