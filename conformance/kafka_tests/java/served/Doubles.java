package served;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import scala.Option;

/**
 * Objects of Kafka's brokers and controllers, as far as a test may look at them over the wire: metadata, ports, ends of logs, rights.
 * Whatever else a test asks of them throws {@link #inside}, so that a test that needs the inside of a broker's JVM says so itself.
 */
public final class Doubles {
    private static final long ANSWER_TIMEOUT_S = 20, RESUME_MS = 500;

    private final KafkaClusterTestKit cluster;
    private final Map<String, String> properties;
    private final Set<Integer> down = new HashSet<>();

    /**
     * @param cluster whose brokers and controllers they are
     * @param properties of the test's brokers
     */
    public Doubles(KafkaClusterTestKit cluster, Map<String, String> properties) {
        this.cluster = cluster;
        this.properties = properties;
    }

    /** What a test meets that asks for something that only the JVM of a broker has. */
    public static RuntimeException inside(String what) {
        return new UnsupportedOperationException("INSIDE-THE-BROKER " + what);
    }

    private static <T> T answering(Class<T> type, Map<String, Answer<?>> answers) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            String name = call.getMethod().getName();
            Answer<?> answer = answers.get(name);
            if (answer != null) return asOption(answer.answer(call), call.getMethod().getReturnType());
            return switch (name) {
                case "toString" -> type.getSimpleName();
                case "hashCode" -> System.identityHashCode(call.getMock());
                case "equals" -> call.getMock() == call.getArgument(0);
                default -> throw inside(type.getSimpleName() + "." + name);
            };
        }));
    }

    /** Up to 4.0 some methods return Scala's options. */
    private static Object asOption(Object value, Class<?> wanted) {
        return value instanceof Optional<?> found && wanted == Option.class ? Option.apply(found.orElse(null)) : value;
    }

    /** What a method returns: classes of Kafka's change their packages between releases. */
    private static Class<?> returned(Class<?> type, String... names) {
        List<String> wanted = List.of(names);
        for (Method method : type.getMethods()) if (wanted.contains(method.getName()) && method.getParameterCount() == 0 && !method.isBridge()) return method.getReturnType();
        throw new IllegalStateException(type + " has none of " + wanted);
    }

    private Optional<TopicDescription> topic(String name) {
        try {
            return Optional.of(cluster.sharedAdmin().describeTopics(List.of(name)).allTopicNames().get(ANSWER_TIMEOUT_S, TimeUnit.SECONDS).get(name));
        } catch (Exception unknown) {
            return Optional.empty();
        }
    }

    private Optional<TopicPartitionInfo> partition(String topic, int number) {
        return topic(topic).flatMap(found -> found.partitions().stream().filter(each -> each.partition() == number).findFirst());
    }

    private Map<String, Uuid> topicIds() throws Exception {
        var listings = cluster.sharedAdmin().listTopics(new ListTopicsOptions().listInternal(true)).listings();
        return listings.get(ANSWER_TIMEOUT_S, TimeUnit.SECONDS).stream().collect(Collectors.toMap(each -> each.name(), each -> each.topicId()));
    }

    private long endOffset(TopicPartition partition) throws Exception {
        return cluster.sharedAdmin().listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
    }

    /** A broker that can be stopped and resumed, and that knows the cluster's topics. */
    public BrokerServer broker(int id, KafkaConfig given) {
        SocketServer sockets = answering(SocketServer.class, Map.of("boundPort", call -> boundPort(id, call.getArgument(0))));
        MetadataLoader loader = answering(MetadataLoader.class, Map.of("lastAppliedOffset", call -> Long.MAX_VALUE));
        SharedServer shared = answering(SharedServer.class, Map.of("loader", call -> loader));
        KafkaApis apis = answering(KafkaApis.class, Map.of("isConsumerGroupProtocolEnabled", call -> consumerProtocol()));
        LogManager logs = logs();
        GroupCoordinator groups = answering(GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", call -> new Properties()));
        Object metadata = metadata();
        ReplicaManager replicas = replicas(id);
        KafkaConfig config = given == null ? config(id) : given;
        Option<Authorizer> rights = rights();
        Map<String, Answer<?>> answers = new HashMap<>();
        answers.put("metadataCache", call -> metadata);
        answers.put("socketServer", call -> sockets);
        answers.put("boundPort", call -> boundPort(id, call.getArgument(0)));
        answers.put("config", call -> config);
        answers.put("sharedServer", call -> shared);
        answers.put("dataPlaneRequestProcessor", call -> apis);
        answers.put("replicaManager", call -> replicas);
        answers.put("logManager", call -> logs);
        answers.put("groupCoordinator", call -> groups);
        answers.put("clusterId", call -> cluster.process().clusterId());
        answers.put("authorizer", call -> rights);
        answers.put("authorizerPlugin", call -> plugin(rights));
        answers.put("isShutdown", call -> down.contains(id));
        answers.put("brokerState", call -> down.contains(id) ? BrokerState.NOT_RUNNING : BrokerState.RUNNING);
        answers.put("shutdown", call -> stop(id));
        answers.put("awaitShutdown", call -> null);
        answers.put("startup", call -> resume(id));
        return answering(BrokerServer.class, answers);
    }

    private Object stop(int id) throws InterruptedException {
        if (cluster.process() == null) return null;
        down.add(id);
        boolean othersTakeOver = down.size() < cluster.brokers().size();
        cluster.process().stopBroker(id, othersTakeOver);
        return null;
    }

    private int boundPort(int id, ListenerName listener) {
        return cluster.process().port(listener.value(), id);
    }

    private Object resume(int id) throws InterruptedException {
        cluster.startup();
        if (!down.contains(id)) return null;
        cluster.process().resumeBroker(id);
        Thread.sleep(RESUME_MS); // A broker of Kafka takes as long, and no longer: tests have consumers that may not poll meanwhile.
        down.remove(id);
        return null;
    }

    private boolean consumerProtocol() {
        boolean switchedOff = cluster.nodes().bootstrapMetadata().records().stream().anyMatch(record ->
            record.message() instanceof org.apache.kafka.common.metadata.FeatureLevelRecord level && level.name().equals("group.version") && level.featureLevel() == 0);
        return !switchedOff && !"classic".equals(properties.get("group.coordinator.rebalance.protocols"));
    }

    private Object metadata() {
        Map<String, Answer<?>> answers = new HashMap<>();
        answers.put("numPartitions", call -> topic(call.getArgument(0)).map(found -> found.partitions().size()));
        answers.put("getLeaderAndIsr", call -> partition(call.getArgument(0), call.getArgument(1))
            .map(each -> new LeaderAndIsr(each.leader().id(), each.isr().stream().map(Node::id).toList())));
        answers.put("getAliveBrokerNodes", call -> new ArrayList<>(cluster.sharedAdmin().describeCluster().nodes().get()));
        answers.put("hasAliveBroker", call -> !down.contains((int) call.getArgument(0)));
        answers.put("getTopicId", call -> topicIds().getOrDefault(call.getArgument(0), Uuid.ZERO_UUID));
        answers.put("topicNamesToIds", call -> topicIds());
        answers.put("getAllTopics", call -> topicIds().keySet());
        answers.put("contains", call -> call.getArgument(0) instanceof String name && topic(name).isPresent());
        return answering(returned(BrokerServer.class, "metadataCache"), answers);
    }

    /** Replicas as the metadata has them: a broker's log of a partition is there if it has a replica, and leads if it is the leader. */
    private ReplicaManager replicas(int id) {
        return answering(ReplicaManager.class, Map.of(
            "onlinePartition", call -> replica(id, call.getArgument(0)),
            "localLog", call -> Option.apply(log(call.getArgument(0)))));
    }

    private Option<Partition> replica(int id, TopicPartition partition) {
        Optional<TopicPartitionInfo> found = partition(partition.topic(), partition.partition());
        if (found.isEmpty() || found.get().replicas().stream().noneMatch(node -> node.id() == id)) return Option.empty();
        boolean leads = found.get().leader() != null && found.get().leader().id() == id;
        return Option.apply(answering(Partition.class, Map.of("leaderLogIfLocal", call -> leads ? Option.apply(log(partition)) : Option.empty())));
    }

    private UnifiedLog log(TopicPartition partition) {
        Map<String, Answer<?>> answers = new HashMap<>();
        answers.put("highWatermark", call -> endOffset(partition));
        answers.put("logEndOffset", call -> endOffset(partition));
        answers.put("roll", call -> null); // The segment is closed when the log is cleaned.
        answers.put("roll$default$1", call -> Option.empty());
        return answering(UnifiedLog.class, answers);
    }

    private LogManager logs() {
        Object cleaner = answering(returned(LogManager.class, "cleaner"), Map.of("awaitCleaned", call -> {
            cluster.process().compact(call.getArgument(0));
            return true;
        }));
        return answering(LogManager.class, Map.of(
            "getLog", call -> call.getArgument(0) instanceof TopicPartition asked && partition(asked.topic(), asked.partition()).isPresent() ? Option.apply(log(asked)) : Option.empty(),
            "getLog$default$2", call -> false,
            "cleaner", call -> cleaner,
            "liveLogDirs", call -> scala.collection.immutable.Nil$.MODULE$));
    }

    private KafkaConfig config(int id) {
        String listener = cluster.nodes().brokerListenerName().value();
        Properties all = new Properties();
        properties.forEach((name, value) -> { if (!name.contains("principal.builder") && !name.contains("sasl") && !name.contains("ssl")) all.put(name, value); });
        all.put("process.roles", "broker");
        all.put("node.id", "" + id);
        all.put("controller.quorum.voters", "3000@localhost:1");
        all.put("controller.listener.names", "CONTROLLER");
        all.put("listeners", listener + "://localhost:0");
        all.remove("advertised.listeners");
        all.put("inter.broker.listener.name", listener);
        all.put("listener.security.protocol.map", listener + ":PLAINTEXT,CONTROLLER:PLAINTEXT");
        all.putIfAbsent("unstable.api.versions.enable", "true");
        all.putIfAbsent("unstable.feature.versions.enable", "true");
        return KafkaConfig.fromProps(all, false);
    }

    /** A controller that knows the topics, and through which rights are given and taken. */
    @SuppressWarnings("rawtypes")
    public ControllerServer controller() {
        Controller inner = answering(Controller.class, Map.of("findAllTopicIds", call -> CompletableFuture.completedFuture(topicIds()), "isActive", call -> true));
        Object log = answering(returned(KafkaRaftManager.class, "raftLog", "replicatedLog"), Map.of("endOffset", call -> new LogOffsetMetadata(1)));
        KafkaRaftManager raft = answering(KafkaRaftManager.class, Map.of("raftLog", call -> log, "replicatedLog", call -> log));
        Option<Authorizer> rights = rights();
        KafkaConfig config = config(cluster.nodes().brokerNodes().firstKey());
        return answering(ControllerServer.class, Map.of("controller", call -> inner, "raftManager", call -> raft, "config", call -> config,
            "clusterId", call -> cluster.process().clusterId(), "authorizer", call -> rights, "authorizerPlugin", call -> plugin(rights)));
    }

    /** Since 4.1 an authorizer is wrapped in a class that older releases do not have. */
    private static Option<?> plugin(Option<Authorizer> rights) throws ClassNotFoundException {
        if (rights.isEmpty()) return rights;
        return Option.apply(answering(Class.forName("org.apache.kafka.common.internals.Plugin"), Map.of("get", call -> rights.get())));
    }

    private Option<Authorizer> rights() {
        boolean guarded = properties.containsKey("authorizer.class.name") || cluster.nodes().brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT;
        if (!guarded) return Option.empty();
        Authorizer authorizer = answering(Authorizer.class, Map.of(
            "createAcls", call -> {
                Collection<AclBinding> bindings = call.getArgument(1);
                cluster.sharedAdmin().createAcls(bindings).all().get();
                return bindings.stream().map(each -> CompletableFuture.completedFuture(AclCreateResult.SUCCESS)).toList();
            },
            "deleteAcls", call -> {
                Collection<AclBindingFilter> filters = call.getArgument(1);
                cluster.sharedAdmin().deleteAcls(filters).all().get();
                return filters.stream().map(each -> CompletableFuture.completedFuture(new AclDeleteResult(List.of()))).toList();
            },
            "acls", call -> cluster.sharedAdmin().describeAcls(call.getArgument(0)).values().get()));
        return Option.apply(authorizer);
    }
}
