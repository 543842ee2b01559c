package org.apache.kafka.common.test;

import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.common.metadata.FeatureLevelRecord;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import served.ClientSettings;
import served.Doubles;
import served.ServedProcess;

/**
 * Stands on the class path before Kafka's class of this name: the cluster of a test is one process that serves. Everything of
 * Kafka's that makes a cluster for a test makes it here: {@code @ClusterTest}, and the embedded clusters of Connect and Streams.
 */
public final class KafkaClusterTestKit implements AutoCloseable {
    /** Of Kafka's builder; what concerns the quorum of controllers is accepted and has no effect. */
    public static final class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> properties = new HashMap<>();
        private Map<Integer, KafkaConfig> configs = Map.of();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        /** Of our own: what each broker shows as its settings, where a test has made them itself. */
        public Builder setBrokerConfigs(Map<Integer, KafkaConfig> configs) {
            this.configs = configs;
            return this;
        }

        public Builder setConfigProp(String key, Object value) {
            properties.put(key, String.valueOf(value));
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> voters) {
            return this;
        }

        public Builder setDeleteOnClose(boolean delete) {
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, properties, configs);
        }
    }

    private static final Set<String> FEATURES = Set.of("group.version", "share.version", "streams.version", "transaction.version");

    private final TestKitNodes nodes;
    private final Map<String, String> properties;
    private final MockFaultHandler fatal = new MockFaultHandler("fatalFaultHandler");
    private final MockFaultHandler nonFatal = new MockFaultHandler("nonFatalFaultHandler");
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private ServedProcess process;
    private Admin admin;

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, String> properties, Map<Integer, KafkaConfig> configs) {
        this.nodes = nodes;
        this.properties = properties;
        Doubles doubles = new Doubles(this, properties);
        nodes.brokerNodes().keySet().forEach(id -> brokers.put(id, doubles.broker(id, configs.get(id))));
        nodes.controllerNodes().keySet().forEach(id -> controllers.put(id, doubles.controller()));
    }

    public void format() { }

    /** Of our own: what serves, once it has started. */
    public ServedProcess process() {
        return process;
    }

    /** Of our own: a client of the cluster that the doubles of its brokers share. */
    public synchronized Admin sharedAdmin() {
        if (admin == null) admin = admin(Map.of());
        return admin;
    }

    public void startup() {
        if (process != null) return;
        String listener = nodes.brokerListenerName().value();
        String listeners = properties.getOrDefault("listeners", listener + "://localhost:0");
        SecurityProtocol protocol = nodes.brokerListenerProtocol();
        Map<String, String> served = new TreeMap<>();
        served.put("unstable.api.versions.enable", "true");
        served.put("unstable.feature.versions.enable", "true");
        served.put("listener.security.protocol.map", listener + ":" + protocol.name);
        List<String> options = new ArrayList<>();
        if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
            served.putAll(ClientSettings.ofSecuredBrokers());
            options.addAll(ClientSettings.users());
        }
        served.putAll(properties);
        nodes.brokerNodes().values().forEach(node -> served.putAll(node.propertyOverrides()));
        served.keySet().removeAll(List.of("listeners", "advertised.listeners", "controller.listener.names"));
        served.put("node.id", "" + nodes.brokerNodes().firstKey());
        levels(nodes.bootstrapMetadata()).forEach((feature, level) -> options.addAll(List.of("--feature", feature + "=" + level)));
        try {
            process = new ServedProcess(listeners, nodes.brokerNodes().size(), served, options);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    /** Levels of features that are not those of a new cluster of the release; what a cluster's first records do not name has level 0. */
    private static Map<String, Short> levels(BootstrapMetadata metadata) {
        Map<String, Short> levels = new TreeMap<>();
        Feature.PRODUCTION_FEATURES.stream().filter(feature -> FEATURES.contains(feature.featureName())).forEach(feature -> levels.put(feature.featureName(), (short) 0));
        for (ApiMessageAndVersion record : metadata.records()) {
            if (record.message() instanceof FeatureLevelRecord feature) levels.replace(feature.name(), feature.featureLevel());
        }
        Feature.PRODUCTION_FEATURES.forEach(feature -> levels.remove(feature.featureName(), feature.defaultLevel(MetadataVersion.LATEST_PRODUCTION)));
        return levels;
    }

    public void waitForReadyBrokers() { }

    public Admin admin() {
        return admin(Map.of());
    }

    public Admin admin(Map<String, Object> settings) {
        return admin(settings, false);
    }

    public Admin admin(Map<String, Object> settings, boolean usingBootstrapControllers) {
        if (usingBootstrapControllers) throw Doubles.inside("bootstrapControllers");
        Map<String, Object> all = new HashMap<>(ClientSettings.ofAdmin(nodes.brokerListenerProtocol()));
        all.put("bootstrap.servers", bootstrapServers());
        all.putAll(settings);
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return process.bootstrap(nodes.brokerListenerName().value());
    }

    public String bootstrapControllers() {
        throw Doubles.inside("bootstrapControllers");
    }

    public Map<Integer, ControllerServer> controllers() {
        return controllers;
    }

    public Controller waitForActiveController() {
        return controllers.values().iterator().next().controller();
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw Doubles.inside("raftManagers");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() throws InterruptedException {
        if (admin != null) admin.close(java.time.Duration.ofSeconds(2));
        if (process != null) process.stop();
    }
}
