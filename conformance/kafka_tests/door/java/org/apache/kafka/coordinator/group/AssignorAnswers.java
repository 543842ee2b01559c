package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.*;

/** Assignors of a test, asked by Kafka's manager: what they answer is prepared for the other coordinator. */
final class AssignorAnswers {
    /** The commands that prepare what was answered since they were last sent. */
    final List<ObjectNode> answers = new ArrayList<>();

    private interface Asking<T> { T ask(); }

    private <T> T answered(ObjectNode command, Asking<T> asking) {
        answers.add(command);
        try {
            T answer = asking.ask();
            if (answer == null) command.put("fails", "nothing is prepared");
            return answer;
        } catch (RuntimeException e) {
            command.put("fails", String.valueOf(e.getMessage()));
            throw e;
        }
    }

    private GroupAssignment assign(String protocol, PartitionAssignor assignor, GroupSpec spec, SubscribedTopicDescriber topics) {
        ObjectNode command = Lines.command("prepare").put("protocol", protocol);
        GroupAssignment answer = answered(command, () -> assignor.assign(spec, topics));
        if (answer == null) return null;
        ObjectNode members = command.putObject("members");
        answer.members().forEach((member, target) -> {
            ObjectNode written = members.putObject(member);
            for (Map.Entry<Uuid, Set<Integer>> topic : target.partitions().entrySet())
                topic.getValue().forEach(written.putArray(topic.getKey().toString())::add);
        });
        return answer;
    }

    ConsumerGroupPartitionAssignor consumer(ConsumerGroupPartitionAssignor assignor) {
        return new ConsumerGroupPartitionAssignor() {
            @Override public String name() { return assignor.name(); }
            @Override public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { return AssignorAnswers.this.assign("consumer", assignor, spec, topics); }
        };
    }

    ShareGroupPartitionAssignor share(ShareGroupPartitionAssignor assignor) {
        return new ShareGroupPartitionAssignor() {
            @Override public String name() { return assignor.name(); }
            @Override public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { return AssignorAnswers.this.assign("share", assignor, spec, topics); }
        };
    }

    TaskAssignor streams(TaskAssignor assignor) {
        return new TaskAssignor() {
            @Override public String name() { return assignor.name(); }

            @Override public org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment assign(
                org.apache.kafka.coordinator.group.streams.assignor.GroupSpec spec, TopologyDescriber topology
            ) {
                ObjectNode command = Lines.command("prepare").put("protocol", "streams");
                var answer = answered(command, () -> assignor.assign(spec, topology));
                if (answer == null) return null;
                ObjectNode members = command.putObject("members");
                answer.members().forEach((member, target) -> {
                    ObjectNode roles = members.putObject(member);
                    tasks(roles.putObject("active"), target.activeTasks());
                    tasks(roles.putObject("standby"), target.standbyTasks());
                    tasks(roles.putObject("warmup"), target.warmupTasks());
                });
                return answer;
            }
        };
    }

    private static void tasks(ObjectNode written, Map<String, Set<Integer>> tasks) {
        tasks.forEach((subtopology, numbers) -> numbers.forEach(written.putArray(subtopology)::add));
    }
}
