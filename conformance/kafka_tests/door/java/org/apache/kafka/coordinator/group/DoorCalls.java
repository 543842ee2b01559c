package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfig;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfigCollection;
import org.apache.kafka.common.network.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.coordinator.common.runtime.*;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard.DeletedTopic;
import org.apache.kafka.coordinator.group.api.assignor.ShareGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.streams.StreamsCoordinatorRecordHelpers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.*;
import java.util.concurrent.CompletableFuture;

/** Which method of a manager is which request; what is neither a request nor a change is Kafka's manager's alone. */
@SuppressWarnings("unchecked") record DoorCalls(Door door, Object manager) {
    private static final RequestContext NEWEST = new RequestContext(
        new RequestHeader(ApiKeys.DESCRIBE_GROUPS, ApiKeys.DESCRIBE_GROUPS.latestVersion(), "client", 0), "1", InetAddress.getLoopbackAddress(),
        KafkaPrincipal.ANONYMOUS, new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);

    Object call(Method method, Object[] args) throws Throwable {
        if (Door.isInside()) return Door.invoke(manager, method, args);
        return switch (method.getName()) {
            case "classicGroupJoin", "classicGroupJoinToClassicGroup" -> door.request(manager, method, args, ApiKeys.JOIN_GROUP, (CompletableFuture<Object>) args[2]);
            case "classicGroupSync" -> door.request(manager, method, args, ApiKeys.SYNC_GROUP, (CompletableFuture<Object>) args[2]);
            case "classicGroupHeartbeat" -> door.request(manager, method, args, ApiKeys.HEARTBEAT, null);
            case "classicGroupLeave" -> door.request(manager, method, args, ApiKeys.LEAVE_GROUP, null);
            case "consumerGroupHeartbeat" -> door.request(manager, method, args, ApiKeys.CONSUMER_GROUP_HEARTBEAT, null);
            case "shareGroupHeartbeat" -> door.request(manager, method, args, ApiKeys.SHARE_GROUP_HEARTBEAT, null);
            case "streamsGroupHeartbeat" -> door.request(manager, method, args, ApiKeys.STREAMS_GROUP_HEARTBEAT, null);
            case "describeGroups" -> read(method, args, ApiKeys.DESCRIBE_GROUPS, "groups", (Collection<String>) args[1]);
            case "consumerGroupDescribe" -> read(method, args, ApiKeys.CONSUMER_GROUP_DESCRIBE, "groupIds", (Collection<String>) args[0]);
            case "shareGroupDescribe" -> read(method, args, ApiKeys.SHARE_GROUP_DESCRIBE, "groupIds", (Collection<String>) args[0]);
            case "streamsGroupDescribe" -> read(method, args, ApiKeys.STREAMS_GROUP_DESCRIBE, "groupIds", (Collection<String>) args[0]);
            case "listGroups" -> read(method, args, ApiKeys.LIST_GROUPS, "statesFilter", (Collection<String>) args[0]);
            case "getOrMaybeCreateClassicGroup", "getOrMaybeCreatePersistedConsumerGroup", "getOrMaybeCreateConsumerGroup", "getOrMaybeCreatePersistedStreamsGroup" -> created(method, args);
            case "commitOffset" -> door.request(manager, method, args, ApiKeys.OFFSET_COMMIT, null);
            case "commitTransactionalOffset" -> door.request(manager, method, args, ApiKeys.TXN_OFFSET_COMMIT, null);
            case "deleteOffsets" -> door.request(manager, method, args, ApiKeys.OFFSET_DELETE, null);
            case "fetchOffsets", "fetchAllOffsets" -> fetch(method, args);
            case "deleteAllOffsets" -> change(method, args, deletion(args[0]), true);
            case "cleanupExpiredOffsets" -> change(method, args, Lines.command("expire"), true);
            case "onTopicsDeleted" -> change(method, args, topics((List<DeletedTopic>) args[0]), true);
            case "replayEndTransactionMarker" -> {
                Object done = Door.invoke(manager, method, args);
                door.load((long) args[0], args[1]);
                yield done;
            }
            case "replay" -> replay(method, args);
            case "onMetadataUpdate" -> metadata(method, args);
            case "onLoaded" -> step(method, args, Lines.command("open"));
            case "onUnloaded" -> step(method, args, Lines.command("resign"));
            case "maybeDeleteGroup", "createGroupTombstoneRecordsAndCancelTimers" -> change(method, args, deletion(args[0]), false);
            case "initializeShareGroupState", "uninitializeShareGroupState" -> door.persisted(manager, method, args);
            case "prepareRebalance", "updateGroupSizeCounter", "shareGroupBuildPartitionDeleteRequest", "sharePartitionsEligibleForOffsetDeletion",
                 "completeDeleteShareGroupOffsets", "maybeCleanupShareGroupState", "initializedShareGroupPartitions", "subscribedTopicsChangeMap",
                 "addInitializingTopicsRecords", "initializedAssignmentPending", "createGroupTombstoneRecords", "shareGroupStatePartitionMetadata" -> {
                Door.alone(method.getName());
                yield Door.invoke(manager, method, args);
            }
            default -> Door.invoke(manager, method, args);
        };
    }

    private Object replay(Method method, Object[] args) throws Throwable {
        door.changed();
        Object done = Door.invoke(manager, method, args);
        door.replayed(args.length == 4 ? (long) args[1] : -1, (ApiMessage) args[args.length - 2], (ApiMessage) args[args.length - 1]);
        return done;
    }

    /** Whether Kafka's manager can describe a group: not one that a test has loaded or changed by halves. */
    boolean isDescribable(Group group) {
        return switch (group.type()) {
            case STREAMS -> ((org.apache.kafka.coordinator.group.streams.StreamsGroup) group).topology().isPresent();
            case CLASSIC -> ((ClassicGroup) group).protocolName().isPresent() || !group.stateAsString().equals("Stable");
            default -> true;
        };
    }

    /** List the groups in both. */
    void compareList() throws Throwable {
        read(method("listGroups"), new Object[] {Set.of(), Set.of(), Long.MAX_VALUE}, ApiKeys.LIST_GROUPS, "statesFilter", List.of());
    }

    /** Describe a group in both. */
    void compare(Group group) throws Throwable {
        List<String> id = List.of(group.groupId());
        switch (group.type()) {
            case CLASSIC -> read(method("describeGroups"), new Object[] {NEWEST, id, Long.MAX_VALUE}, ApiKeys.DESCRIBE_GROUPS, "groups", id);
            case CONSUMER -> read(method("consumerGroupDescribe"), new Object[] {id, Long.MAX_VALUE}, ApiKeys.CONSUMER_GROUP_DESCRIBE, "groupIds", id);
            case SHARE -> read(method("shareGroupDescribe"), new Object[] {id, Long.MAX_VALUE}, ApiKeys.SHARE_GROUP_DESCRIBE, "groupIds", id);
            default -> read(method("streamsGroupDescribe"), new Object[] {id, Long.MAX_VALUE}, ApiKeys.STREAMS_GROUP_DESCRIBE, "groupIds", id);
        }
    }

    private static Method method(String name) {
        return java.util.Arrays.stream(GroupMetadataManager.class.getMethods()).filter(each -> each.getName().equals(name)).findFirst().orElseThrow();
    }

    /** A test makes a group by hand: the other coordinator reads of it. */
    private Object created(Method method, Object[] args) throws Throwable {
        boolean isNew = ((GroupMetadataManager) manager).groupIds().stream().noneMatch(args[0]::equals);
        Object group = Door.invoke(manager, method, args);
        if (isNew) door.made(group instanceof ClassicGroup classic ? GroupCoordinatorRecordHelpers.newEmptyGroupMetadataRecord(classic)
            : ((Group) group).type() == Group.GroupType.CONSUMER ? GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord((String) args[0], 0, 0)
            : StreamsCoordinatorRecordHelpers.newStreamsGroupMetadataRecord((String) args[0], 0, 0, -1, Map.of()));
        return group;
    }

    private Object metadata(Method method, Object[] args) throws Throwable {
        Object done = Door.invoke(manager, method, args);
        door.catchUp(null);
        door.topics(door.image(), (CoordinatorMetadataImage) args[1]);
        return done;
    }

    private Object step(Method method, Object[] args, ObjectNode command) throws Throwable {
        door.catchUp(null);
        Object done = Door.invoke(manager, method, args);
        door.follow(command);
        door.settle(false);
        return done;
    }

    /** A change that no request makes: both write its records, of offsets alone or all, and the test gets the other's. */
    private Object change(Method method, Object[] args, ObjectNode command, boolean isOfOffsets) throws Throwable {
        door.catchUp(null);
        List<CoordinatorRecord> kafkas = new ArrayList<>();
        Object[] asked = args.length == 2 ? new Object[] {args[0], kafkas} : args;
        Object done = Door.invoke(manager, method, asked);
        List<CoordinatorRecord> all = door.follow(command).records();
        List<CoordinatorRecord> others = all.stream().filter(record -> !isOfOffsets || record.key() instanceof OffsetCommitKey).toList();
        Door.compare(args.length == 2 ? kafkas : (List<CoordinatorRecord>) done, others);
        door.awaits(all);
        door.commit();
        if (args.length == 1) return others;
        ((List<CoordinatorRecord>) args[1]).addAll(others);
        return done;
    }

    private static ObjectNode deletion(Object group) {
        ObjectNode command = Lines.command("call").put("api", "DeleteGroups");
        command.putObject("data").putArray("groupsNames").add(String.valueOf(group));
        return command;
    }

    private static ObjectNode topics(List<DeletedTopic> topics) {
        ObjectNode command = Lines.command("topicsDeleted");
        ArrayNode deleted = command.putArray("topics");
        topics.forEach(topic -> deleted.addObject().put("name", topic.name()).put("id", topic.id().toString()));
        return command;
    }

    void compareOffsets(String group) throws Throwable {
        Method all = OffsetMetadataManager.class.getMethod("fetchAllOffsets", OffsetFetchRequestData.OffsetFetchRequestGroup.class, long.class);
        fetch(all, new Object[] {new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(group).setMemberId(null).setMemberEpoch(-1), Long.MAX_VALUE});
    }

    private Object fetch(Method method, Object[] args) throws Throwable {
        OffsetFetchRequestData.OffsetFetchRequestGroup group = (OffsetFetchRequestData.OffsetFetchRequestGroup) args[0];
        boolean isByName = group.topics() == null || group.topics().stream().allMatch(topic -> topic.topicId().equals(Uuid.ZERO_UUID));
        short form = (short) (isByName ? 9 : 10);
        Object kafkas = null;
        Throwable thrown = null;
        try {
            kafkas = Door.invoke(manager, method, args);
        } catch (ApiException e) {
            thrown = e;
        }
        door.changed();
        door.load((long) args[1]);
        if (method.getName().equals("fetchAllOffsets")) group = group.duplicate().setTopics(null);
        OffsetFetchRequestData data = new OffsetFetchRequestData().setGroups(List.of(group)).setRequireStable((long) args[1] == Long.MAX_VALUE);
        ObjectNode command = Lines.command("call").put("api", "OffsetFetch").put("form", form).put("v", form);
        command.set("data", Lines.write(data, form));
        OffsetFetchResponseData answer = (OffsetFetchResponseData) Lines.read("OffsetFetchResponseData", door.reply(command).get("data"), form);
        var others = answer.groups().get(0);
        if (thrown != null) {
            if (Errors.forException(thrown).code() != others.errorCode()) Door.differ("the refusal of a fetch", thrown, others);
            throw Errors.forCode(others.errorCode()).exception(thrown.getMessage());
        }
        Door.same("the fetched offsets", answer.duplicate().setGroups(List.of((OffsetFetchResponseData.OffsetFetchResponseGroup) kafkas)), answer, form);
        return others;
    }

    /** A question that changes nothing: what is listed in the other's answer, compared with Kafka's list. */
    private Object read(Method method, Object[] args, ApiKeys api, String field, Collection<String> asked) throws Throwable {
        List<?> kafkas = (List<?>) Door.invoke(manager, method, args);
        door.load((long) args[args.length - 1]);
        short form = api.latestVersion(true);
        String name = api.name;
        ObjectNode command = Lines.command("call").put("api", name).put("form", form);
        command.put("v", args[0] instanceof RequestContext context ? context.requestVersion() : form);
        ObjectNode data = command.putObject("data");
        ArrayNode names = data.putArray(field);
        asked.forEach(names::add);
        if (api == ApiKeys.LIST_GROUPS) ((Collection<String>) args[1]).forEach(data.putArray("typesFilter")::add);
        JsonNode reply = door.reply(command).get("data");
        // The other's share assignor has one name; the test's answers in its place.
        if (api == ApiKeys.SHARE_GROUP_DESCRIBE) reply.get("groups").forEach(group -> {
            if (group.get("assignorName").asText().equals("simple")) ((ObjectNode) group).put("assignorName", Door.<ShareGroupPartitionAssignor>get(manager, "shareGroupAssignor").name());
        });
        ApiMessage answer = Lines.read(name + "ResponseData", reply, form);
        List<?> others = (List<?>) Door.invoke(answer, answer.getClass().getMethod("groups"), new Object[0]);
        ApiMessage theirs = (ApiMessage) answer.duplicate();
        theirs.getClass().getMethod("setGroups", List.class).invoke(theirs, kafkas);
        Door.same("the answer of " + name, theirs, answer, form);
        return others;
    }

    static Map<String, CreatableTopic> creatable(JsonNode reply) {
        Map<String, CreatableTopic> topics = new HashMap<>();
        for (JsonNode topic : reply.path("internalTopics")) {
            CreatableTopicConfigCollection configs = new CreatableTopicConfigCollection();
            topic.get("configs").fields().forEachRemaining(each -> configs.add(new CreatableTopicConfig().setName(each.getKey()).setValue(each.getValue().asText())));
            String name = topic.get("name").asText();
            topics.put(name, new CreatableTopic().setName(name).setNumPartitions(topic.get("partitions").asInt())
                .setReplicationFactor((short) topic.get("replicationFactor").asInt()).setConfigs(configs));
        }
        return topics;
    }
}
