package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.*;
import org.apache.kafka.coordinator.group.classic.*;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.group.modern.consumer.*;
import org.apache.kafka.coordinator.group.streams.*;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;

import java.lang.reflect.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import static org.mockito.Mockito.*;

/**
 * Stands before the managers that a test has built, with `coordinator-sim lines` beside them.
 *
 * What a test asks a manager is asked of both. Kafka's manager goes first: it draws the ids and asks the assignors, and
 * the other coordinator draws and is answered alike. The test gets the other's reply, records and exceptions; Kafka's
 * manager replays those records, so that what the test finds in it is theirs. Replies, records and timers of the two are
 * compared at every step besides.
 */
final class Door {
    private static final Map<Object, Door> DOORS = new IdentityHashMap<>();
    private static final List<String> DIFFERENCES = new ArrayList<>();
    private static final Set<String> ALONE = new TreeSet<>();
    private static Door current;
    private static int answered;
    private static int depth;

    private final Lines lines = Lines.running();
    private final AssignorAnswers assignors = new AssignorAnswers();
    private final Set<Object> ours = Collections.newSetFromMap(new IdentityHashMap<>());
    private final List<Loaded> loaded = new ArrayList<>();
    private final List<Parked> parked = new ArrayList<>();
    private final Map<Integer, JsonNode> replies = new HashMap<>();
    private final Map<String, Map<String, Object>> groupConfigs = new HashMap<>();
    private final Time time;
    private final GroupConfigManager configs;
    private final MirroredTimer timer;
    private CoordinatorMetadataImage image;
    private Object groups;
    private long now = -1;
    private int calls;
    private final Set<String> seen = new HashSet<>();
    private int holds;
    private long written;
    private boolean isResigned;
    private OffsetMetadataManager offsets;
    private final Set<String> ofOffsets = new TreeSet<>();

    /** A JoinGroup or SyncGroup whose answer both coordinators owe. */
    private record Parked(int id, String response, short form, CompletableFuture<Object> kafkas, CompletableFuture<Object> tests) { }

    /** A record that a test loads, and its offset. */
    private record Loaded(long offset, long producerId, Object content) { }

    /** What the other coordinator did in one step. */
    record Step(JsonNode answer, List<CoordinatorRecord> records, JsonNode reply) { }

    // -- a test's life ---------------------------------------------------------------------

    static void forget() {
        DOORS.clear();
        current = null;
        DIFFERENCES.clear();
        ALONE.clear();
        answered = 0;
    }

    /** Whether a manager is being asked: what it asks of another manager is its own affair. */
    static boolean isInside() { return depth > 0; }

    /** Kafka's manager alone is asked something that counts. */
    static void alone(String method) { ALONE.add(method); }

    static String differences() { return String.join("\n", DIFFERENCES); }

    static void verify() {
        if (current != null) current.compareGroups();
        if (!DIFFERENCES.isEmpty()) throw new AssertionError(String.join("\n", DIFFERENCES));
        if (!ALONE.isEmpty()) throw new AssertionError("asked of Kafka's manager alone: " + ALONE);
        if (answered == 0) throw new AssertionError("the coordinator was not asked");
    }

    /** What is described of the groups at the end of a test, after all that was loaded and answered. */
    private void compareGroups() {
        load(Long.MAX_VALUE);
        commit();
        GroupMetadataManager manager = (GroupMetadataManager) groups;
        // A test that does not replay an answer leaves Kafka's manager behind.
        if (written == 0 && answered == 0 || !ours.isEmpty() || isResigned) return;
        if (offsets != null) {
            compareOffsets(manager);
            return;
        }
        DoorCalls calls = new DoorCalls(this, manager);
        check(calls::compareList);
        for (String group : manager.groupIds())
            if (calls.isDescribable(manager.group(group))) check(() -> calls.compare(manager.group(group)));
    }

    private interface Check { void run() throws Throwable; }

    private static void check(Check check) {
        try {
            check.run();
        } catch (Throwable e) {
            if (DIFFERENCES.isEmpty()) DIFFERENCES.add(String.valueOf(e));
        }
    }

    /** All offsets at the end of a test. */
    private void compareOffsets(GroupMetadataManager manager) {
        ofOffsets.addAll(manager.groupIds());
        for (String group : ofOffsets) check(() -> new DoorCalls(this, offsets).compareOffsets(group));
    }

    static void differ(String what, Object kafkas, Object others) {
        DIFFERENCES.add(what + " differs:\n  kafka " + kafkas + "\n  ours  " + others);
        throw new AssertionError(DIFFERENCES.get(DIFFERENCES.size() - 1));
    }

    // -- building --------------------------------------------------------------------------

    static Object before(Object builder) {
        if (!(builder instanceof GroupMetadataManager.Builder)) {
            Door door = DOORS.get(Door.<Object>get(builder, "groupMetadataManager"));
            if (door != null) door.begin(get(builder, "config"));
            return door;
        }
        return new Door(builder);
    }

    static Object around(Object door, Object manager) { return door == null ? manager : ((Door) door).stand(manager); }

    private Door(Object builder) {
        time = get(builder, "time");
        configs = get(builder, "groupConfigManager");
        timer = new MirroredTimer(get(builder, "timer"), this::fired);
        set(builder, "timer", timer);
        set(builder, "executor", new MirroredExecutor(get(builder, "executor"), this::ran));
        image = get(builder, "metadataImage");
        begin(get(builder, "config"));
    }

    private void begin(GroupCoordinatorConfig config) {
        // One world at a time: that of a context that a test has built before is over.
        if (current != null && current != this) current.compareGroups();
        current = this;
        now = time.milliseconds();
        ObjectNode init = Lines.command("init").put("stepped", true).put("partitions", 1).put("startMs", now);
        ObjectNode settings = init.putObject("config")
            .put("group.min.session.timeout.ms", 0).put("group.max.session.timeout.ms", Integer.MAX_VALUE)
            .put("group.coordinator.append.linger.ms", 0).put("offsets.commit.timeout.ms", Integer.MAX_VALUE)
            .put("group.initial.rebalance.delay.ms", config.classicGroupInitialRebalanceDelayMs())
            .put("group.max.size", config.classicGroupMaxSize())
            .put("offset.metadata.max.bytes", config.offsetMetadataMaxSize())
            .put("offsets.retention.minutes", config.offsetsRetentionMs() / 60_000)
            .put("group.consumer.regex.refresh.interval.ms", config.consumerGroupRegexRefreshIntervalMs())
            .put("group.consumer.migration.policy", config.consumerGroupMigrationPolicy().toString())
            .put("group.share.initialize.retry.interval.ms", config.shareGroupInitializeRetryIntervalMs())
            .put("group.streams.num.standby.replicas", config.streamsGroupNumStandbyReplicas())
            .put("group.streams.initial.rebalance.delay.ms", config.streamsGroupInitialRebalanceDelayMs());
        for (String kind : List.of("consumer", "share", "streams"))
            for (String name : List.of("SessionTimeoutMs", "HeartbeatIntervalMs", "MaxSize", "AssignmentIntervalMs"))
                settings.put("group." + kind + name.replaceAll("([A-Z])", ".$1").toLowerCase(Locale.ROOT), String.valueOf(ask(config, kind + "Group" + name)));
        lines.send(init);
        ObjectNode names = Lines.command("assignors");
        ArrayNode listed = names.putArray("names");
        config.consumerGroupAssignors().forEach(assignor -> listed.add(assignor.name()));
        lines.send(names);
        lines.send(Lines.command("hold").put("hw", true));
        lines.send(Lines.command("persister").put("hold", true));
        if (image != null) topics(CoordinatorMetadataImage.EMPTY, image);
    }

    private Object stand(Object manager) {
        if (manager instanceof GroupMetadataManager) {
            groups = manager;
            Map<String, org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor> consumer = get(manager, "consumerGroupAssignors");
            set(manager, "consumerGroupAssignors", consumer.values().stream().map(assignors::consumer).collect(Collectors.toMap(a -> a.name(), a -> a)));
            set(manager, "shareGroupAssignor", assignors.share(get(manager, "shareGroupAssignor")));
            Map<String, org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor> streams = get(manager, "streamsGroupAssignors");
            set(manager, "streamsGroupAssignors", streams.values().stream().map(assignors::streams).collect(Collectors.toMap(a -> a.name(), a -> a)));
        }
        if (manager instanceof OffsetMetadataManager made) offsets = made;
        DoorCalls door = new DoorCalls(this, manager);
        Object standing = mock(manager.getClass(), withSettings().stubOnly().defaultAnswer(call -> door.call(call.getMethod(), call.getRawArguments())));
        DOORS.put(standing, this);
        return standing;
    }

    // -- one step of both ------------------------------------------------------------------

    /** Bring the other coordinator to where Kafka's is: the time, the group's settings, records that were replayed. */
    void catchUp(String groupId) {
        changed();
        load(Long.MAX_VALUE);
        if (groupId != null) configure(groupId);
    }

    /** Load what the test has put into groups by hand. */
    void changed() {
        changes().forEach((name, records) -> {
            if (seen.add(name)) records.get().forEach(this::made);
        });
    }

    /** Replay what the test has loaded before an offset, at the present. */
    void load(long committed) {
        if (now != time.milliseconds()) lines.send(Lines.command("clock").put("at", now = time.milliseconds()));
        for (Loaded each : loaded) {
            if (each.offset >= committed) continue;
            ObjectNode replay = Lines.command("replay").put("producerId", each.producerId);
            if (each.content instanceof CoordinatorRecord record) replay.putArray("records").add(Lines.write(record));
            else replay.put("control", String.valueOf(each.content));
            lines.send(replay);
        }
        loaded.removeIf(each -> each.offset < committed);
    }

    private void configure(String groupId) {
        Optional<GroupConfig> config = configs.groupConfig(groupId);
        if (config == null || groupConfigs.getOrDefault(groupId, Map.of()).equals(config.map(GroupConfig::originals).orElse(Map.of()))) return;
        groupConfigs.put(groupId, config.map(GroupConfig::originals).orElse(Map.of()));
        ObjectNode command = Lines.command("groupConfig").put("group", groupId);
        ObjectNode own = command.putObject("config");
        groupConfigs.get(groupId).forEach((name, value) -> own.put(name, String.valueOf(value)));
        lines.send(command);
    }

    /** Begin a step: ids that Kafka's manager draws and answers of its assignors are noted from here on. */
    void note() {
        if (current != this) throw new AssertionError("a context is asked after another one was built");
        DrawnIds.take();
        assignors.answers.clear();
    }

    /** Let the other coordinator draw and be answered alike, and take the step. */
    Step follow(ObjectNode command) {
        List<UUID> drawn = DrawnIds.take();
        if (!drawn.isEmpty()) {
            ObjectNode ids = Lines.command("uuids");
            ArrayNode next = ids.putArray("next");
            drawn.forEach(id -> next.add(id.toString()));
            lines.send(ids);
        }
        assignors.answers.forEach(lines::send);
        assignors.answers.clear();
        JsonNode answer = take(lines.send(command));
        answered++;
        List<CoordinatorRecord> records = Lines.records(answer);
        isResigned |= command.get("op").asText().equals("resign");
        return new Step(answer, records, null);
    }

    private JsonNode take(JsonNode answer) {
        for (JsonNode reply : answer.path("replies")) replies.put(reply.path("id").asInt(-1), reply);
        return answer;
    }

    /** Commit what was appended, and compare what both know. */
    void settle(boolean isHeld) {
        if (!isHeld) commit();
        for (Parked each : List.copyOf(parked)) {
            JsonNode reply = replies.get(each.id);
            if (!each.kafkas.isDone()) {
                if (reply != null && holds == 0) differ("an answer that comes too early", "nothing", reply);
                continue;
            }
            parked.remove(each);
            if (reply == null) differ("an answer that does not come", each.kafkas.getNow(null), "nothing");
            replies.remove(each.id);
            ApiMessage theirs = (ApiMessage) each.kafkas.getNow(null);
            ApiMessage others = Lines.read(each.response, reply.get("data"), each.form);
            // KafkaApis makes "" null, from version 7 on.
            if (others instanceof JoinGroupResponseData join && "".equals(((JoinGroupResponseData) theirs).protocolName()) && join.protocolName() == null) join.setProtocolName("");
            same("an answer", theirs, others, each.form);
            each.tests.complete(theirs.equals(others) ? theirs : others); // some tests ask for the very same bytes
        }
        lookAt();
        // While Kafka's manager waits to hear of an append, the other has gone on.
        if (holds > 0 || isResigned) return;
        JsonNode state = lines.send(Lines.command("timers"));
        if (state.get("prepared").asInt() > 0) differ("the calls of assignors", "one more", "one less");
        Map<String, Long> armed = new HashMap<>();
        state.get("timers").fields().forEachRemaining(each -> armed.put(each.getKey(), each.getValue().asLong()));
        armed.replaceAll((name, deadline) -> deadline - now);
        if (!armed.equals(timer.armed())) differ("the timers", new TreeMap<>(timer.armed()), new TreeMap<>(armed));
    }

    /** Kafka's result with the other's records and reply in it. */
    <T> CoordinatorResult<T, CoordinatorRecord> result(CoordinatorResult<?, CoordinatorRecord> kafkas, Step step, T reply) {
        compare(kafkas.records(), step.records);
        if (kafkas.replayRecords()) awaits(step.records);
        CompletableFuture<Void> appended = null;
        if (kafkas.appendFuture() != null && kafkas.appendFuture().isDone()) {
            appended = kafkas.appendFuture();
        } else if (kafkas.appendFuture() != null) {
            holds++;
            appended = new CompletableFuture<>();
            appended.whenComplete((none, failure) -> appended(kafkas.appendFuture(), failure));
        }
        settle(appended != null && !appended.isDone());
        return new CoordinatorResult<>(step.records, reply, appended, kafkas.replayRecords(), kafkas.isAtomic());
    }

    /** What a test does not look at may differ in the order of its lists, as maps in Kafka's manager do from run to run. */
    static void same(String what, ApiMessage kafkas, ApiMessage others, short form) {
        String theirs = Lines.unordered(Lines.write(kafkas, form));
        String read = Lines.unordered(Lines.write(others, form));
        if (!theirs.equals(read)) differ(what, theirs, read);
    }

    static void compare(List<CoordinatorRecord> kafkas, List<CoordinatorRecord> others) {
        List<String> missing = new ArrayList<>(kafkas.stream().map(Lines::unordered).toList());
        List<String> surplus = new ArrayList<>(others.stream().map(Lines::unordered).toList());
        others.stream().map(Lines::unordered).forEach(missing::remove);
        kafkas.stream().map(Lines::unordered).forEach(surplus::remove);
        if (!missing.isEmpty() || !surplus.isEmpty()) differ("the records", missing, surplus);
    }

    /** The test says that what a step appended is replicated, or is not. */
    private void appended(CompletableFuture<Void> kafkas, Throwable failure) {
        holds--;
        try {
            if (failure == null) {
                kafkas.complete(null);
            } else {
                kafkas.completeExceptionally(failure);
                take(lines.send(Lines.command("refuse").put("error", Errors.forException(failure).name())));
            }
            settle(false);
        } catch (Throwable e) { // a future swallows what its listeners throw
            DIFFERENCES.add(String.valueOf(e.getMessage()));
        }
    }

    // -- what managers are asked -----------------------------------------------------------

    /** Ask both for a request's answer, which may come later, in `future`. */
    Object request(Object manager, Method method, Object[] args, ApiKeys api, CompletableFuture<Object> future) throws Throwable {
        RequestContext context = args[0] instanceof RequestContext given ? given : null;
        ApiMessage data = (ApiMessage) args[context == null ? 0 : 1];
        short form = form(api, data);
        String name = data.getClass().getSimpleName().replace("RequestData", "");
        JsonNode written = Lines.write(data, form);
        catchUp(written.path("groupId").asText(null));
        ObjectNode command = Lines.command("call").put("id", ++calls).put("api", name).put("form", form);
        command.put("v", context == null ? form : (short) context.requestVersion());
        if (context != null) command.put("clientId", context.clientId()).put("clientHost", context.clientAddress().toString());
        command.set("data", written);
        int id = calls;
        Object[] asked = args.clone();
        CompletableFuture<Object> kafkas = new CompletableFuture<>();
        if (future != null) asked[args.length - 1] = kafkas;
        note();
        CoordinatorResult<?, CoordinatorRecord> result = null;
        Throwable thrown = null;
        try {
            @SuppressWarnings("unchecked") var done = (CoordinatorResult<?, CoordinatorRecord>) invoke(manager, method, asked);
            result = done;
        } catch (Throwable e) {
            thrown = e;
        }
        Step step = follow(command);
        if (future != null && thrown == null) {
            parked.add(new Parked(id, name + "ResponseData", form, kafkas, future));
            return result(result, step, null);
        }
        commit();
        JsonNode reply = replies.remove(id);
        if (reply == null) differ("an answer that does not come", thrown == null ? result : thrown, "nothing");
        ApiMessage others = Lines.read(name + "ResponseData", reply.get("data"), form);
        step = new Step(step.answer, step.records, reply);
        if (thrown != null) throw refusal(thrown, step);
        return answer(result, step, others, form);
    }

    /** The version of the JSON forms: the newest that has the fields of the request. */
    private static short form(ApiKeys api, ApiMessage data) {
        if (!(data instanceof OffsetCommitRequestData commit)) return api.latestVersion(true);
        if (commit.retentionTimeMs() != -1) return 4;
        return (short) (commit.topics().stream().allMatch(topic -> topic.topicId().equals(Uuid.ZERO_UUID)) ? 9 : 10);
    }

    /** The exception that the other coordinator's answer stands for. */
    private Throwable refusal(Throwable kafkas, Step step) {
        JsonNode data = step.reply.get("data");
        // KafkaApis tells each partition of a commit.
        Errors error = Errors.forCode((short) (data.has("errorCode") || data.has("members") ? data.path("errorCode") : data.findPath("errorCode")).asInt());
        String message = data.path("errorMessage").asText(null);
        boolean isSame = error == Errors.forException(kafkas) && (!data.has("errorMessage") || Objects.equals(serviceText(kafkas), message));
        if (kafkas instanceof UnknownMemberIdException && data.has("members") && !data.has("generationId")) {
            // GroupCoordinatorService tells each member of a LeaveGroup.
            isSame = data.get("members").findValuesAsText("errorCode").stream().allMatch(String.valueOf(Errors.UNKNOWN_MEMBER_ID.code())::equals);
            error = Errors.UNKNOWN_MEMBER_ID;
        }
        if (!isSame || !step.records.isEmpty()) differ("the refusal", kafkas, data + " with " + step.records);
        settle(false);
        if (!(kafkas instanceof ApiException)) return kafkas;
        // The answers of the classic protocol have no message.
        return error.exception(data.has("errorMessage") && message != null ? message : kafkas.getMessage());
    }

    /** What GroupCoordinatorService tells of an exception: of one that it does not know, nothing. */
    private static String serviceText(Throwable kafkas) {
        return Errors.forException(kafkas) == Errors.UNKNOWN_SERVER_ERROR ? null : kafkas.getMessage();
    }

    private Object answer(CoordinatorResult<?, CoordinatorRecord> kafkas, Step step, ApiMessage others, short form) {
        Object response = kafkas.response();
        if (response instanceof org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult streams) {
            var topics = DoorCalls.creatable(step.reply);
            same("the answer", streams.data(), others, form);
            if (!streams.creatableTopics().equals(topics)) differ("the internal topics", streams.creatableTopics(), topics);
            return result(kafkas, step, new org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult(
                (org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData) others, topics));
        }
        if (response instanceof Map.Entry<?, ?> share) {
            same("the answer", (ApiMessage) share.getKey(), others, form);
            return result(kafkas, step, Map.entry(others, share.getValue()));
        }
        same("the answer", (ApiMessage) response, others, form);
        return result(kafkas, step, others);
    }

    /** The share coordinator has answered: the call that the other coordinator made is answered too. */
    Object persisted(Object manager, Method method, Object[] args) throws Throwable {
        catchUp(null);
        note();
        @SuppressWarnings("unchecked") var kafkas = (CoordinatorResult<Void, CoordinatorRecord>) invoke(manager, method, args);
        ObjectNode command = Lines.command("persister").put("answer", method.getName().startsWith("un") ? "UNKNOWN_SERVER_ERROR" : "NONE");
        return result(kafkas, follow(command), null);
    }

    /** A timer of Kafka's fires. */
    private CoordinatorResult<Void, CoordinatorRecord> fired(String key, MirroredTimer.Work work) {
        catchUp(null);
        note();
        CoordinatorResult<Void, CoordinatorRecord> kafkas = work.run();
        return result(kafkas, follow(Lines.command("fire").put("timer", key)), null);
    }

    /** Work of another thread of Kafka's is done. */
    private CoordinatorResult<Void, CoordinatorRecord> ran(String key, MirroredTimer.Work work) {
        catchUp(null);
        note();
        CoordinatorResult<Void, CoordinatorRecord> kafkas = work.run();
        return result(kafkas, follow(Lines.command("background")), null);
    }

    /** A record is replayed: one that the other coordinator wrote itself, or one that the test loads. */
    void replayed(long producerId, ApiMessage key, ApiMessage value) {
        if (ours.remove(key)) written++;
        else load(producerId, value == null ? CoordinatorRecord.tombstone(key) : CoordinatorRecord.record(key, new ApiMessageAndVersion(value, version(value))));
        if (key instanceof OffsetCommitKey offset) ofOffsets.add(offset.group());
        lookAt();
    }

    private static short version(ApiMessage value) {
        return value instanceof OffsetCommitValue offset && offset.topicId().equals(Uuid.ZERO_UUID) ? 3 : value.highestSupportedVersion();
    }

    /** Load a record, or the result of a producer's transaction. */
    void load(long producerId, Object content) { loaded.add(new Loaded(written++, producerId, content)); }

    /** The test may replay these. */
    void awaits(List<CoordinatorRecord> records) { records.forEach(record -> ours.add(record.key())); }

    /** A record of what a test has made by hand, which is there at once. */
    void made(CoordinatorRecord record) { loaded.add(new Loaded(-1, -1, record)); }

    /** Note how the classic groups are now, and which members the others have. */
    private void lookAt() {
        seen.clear();
        changes().forEach((name, records) -> seen.add(name));
    }

    /** What a test may have put into groups by hand, by names that change with it, and the records of it. */
    private Map<String, Supplier<List<CoordinatorRecord>>> changes() {
        Map<String, Supplier<List<CoordinatorRecord>>> changes = new LinkedHashMap<>();
        GroupMetadataManager manager = (GroupMetadataManager) groups;
        if (manager == null) return changes;
        for (String id : manager.groupIds()) {
            Group group = manager.group(id);
            if (group instanceof ClassicGroup classic) {
                boolean isStored = classic.isInState(ClassicGroupState.STABLE) && classic.protocolName().isPresent() || classic.isInState(ClassicGroupState.EMPTY) && classic.numMembers() == 0;
                changes.put(id + classic.stateAsString() + classic.allMemberIds(), !isStored ? List::of : () -> List.of(classic.isInState(ClassicGroupState.EMPTY)
                    ? GroupCoordinatorRecordHelpers.newEmptyGroupMetadataRecord(classic) : GroupCoordinatorRecordHelpers.newGroupMetadataRecord(classic, classic.groupAssignment())));
            } else if (group instanceof ConsumerGroup consumer) {
                for (ConsumerGroupMember member : consumer.members().values()) changes.put(id + member, () -> List.of(
                    GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(id, member),
                    GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord(id, member)));
            } else if (group instanceof StreamsGroup streams) {
                for (StreamsGroupMember member : streams.members().values()) changes.put(id + member, () -> List.of(
                    StreamsCoordinatorRecordHelpers.newStreamsGroupMemberRecord(id, member),
                    StreamsCoordinatorRecordHelpers.newStreamsGroupCurrentAssignmentRecord(id, member)));
            }
        }
        return changes;
    }

    void topics(CoordinatorMetadataImage before, CoordinatorMetadataImage after) {
        image = after;
        ObjectNode command = Lines.command("topics").put("version", after.version());
        ArrayNode removed = command.putArray("remove");
        for (String name : before.topicNames())
            if (after.topicMetadata(name).filter(each -> each.id().equals(before.topicMetadata(name).get().id())).isEmpty()) removed.add(name);
        ArrayNode set = command.putArray("set");
        for (String name : after.topicNames()) {
            CoordinatorMetadataImage.TopicMetadata topic = after.topicMetadata(name).get();
            ArrayNode racks = set.addObject().put("name", name).put("id", topic.id().toString()).put("partitions", topic.partitionCount()).putArray("racks");
            for (int partition = 0; partition < topic.partitionCount(); partition++)
                topic.partitionRacks(partition).forEach(racks.addArray()::add);
        }
        take(lines.send(command));
    }

    CoordinatorMetadataImage image() { return image; }

    void commit() { take(lines.send(Lines.command("commit"))); }

    JsonNode reply(ObjectNode command) {
        answered++;
        take(lines.send(command.put("id", ++calls)));
        commit();
        return replies.remove(calls);
    }

    // -- reflection ------------------------------------------------------------------------

    static Object invoke(Object target, Method method, Object[] args) throws Throwable {
        method.setAccessible(true);
        depth++;
        try {
            return method.invoke(target, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        } finally {
            depth--;
        }
    }

    private static Object ask(Object target, String method) {
        try {
            return target.getClass().getMethod(method).invoke(target);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    @SuppressWarnings("unchecked") static <T> T get(Object target, String field) {
        try {
            return (T) field(target, field).get(target);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static void set(Object target, String field, Object value) {
        try {
            field(target, field).set(target, value);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static Field field(Object target, String name) throws NoSuchFieldException {
        Field field = target.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }
}
