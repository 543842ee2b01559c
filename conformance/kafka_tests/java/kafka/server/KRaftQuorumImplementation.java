package kafka.server;

import kafka.integration.KafkaServerTestHarness;
import kafka.utils.Logging;

import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands on the class path before Kafka's class of this name: where a test on QuorumTestHarness creates its brokers one by one, all of
 * them are one served process, which starts with the first. The controller that the harness has made is shut down unused.
 */
public final class KRaftQuorumImplementation implements QuorumImplementation {
    /** Settings that say how Kafka's own processes find each other and their files. */
    private static final Set<String> OF_PROCESSES = Set.of("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir",
        "controller.quorum.voters", "controller.quorum.bootstrap.servers", "controller.listener.names", "advertised.listeners");

    private final ControllerServer unused;
    private final Logging harness;
    private final String clusterId;
    private KafkaClusterTestKit cluster;

    public KRaftQuorumImplementation(ControllerServer unused, FaultHandlerFactory faults, File metadata,
            CompletableFuture<Map<Integer, InetSocketAddress>> voters, String clusterId, Logging harness, FaultHandler fault) {
        this.unused = unused;
        this.harness = harness;
        this.clusterId = clusterId;
        unused.shutdown();
    }

    /** A controller of the served cluster; before the first broker is created there is none. */
    public ControllerServer controllerServer() {
        return cluster == null ? unused : cluster.controllers().values().iterator().next();
    }

    public String clusterId() {
        return clusterId;
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> prefix) {
        if (cluster == null || !cluster.brokers().containsKey(config.brokerId())) cluster = clusterFor(config);
        KafkaBroker broker = cluster.brokers().get(config.brokerId());
        if (startup) broker.startup();
        return broker;
    }

    private KafkaClusterTestKit clusterFor(KafkaConfig first) {
        Map<Integer, KafkaConfig> configs = new HashMap<>(Map.of(first.brokerId(), first));
        if (harness instanceof KafkaServerTestHarness known) CollectionConverters.asJava(known.configs()).forEach(each -> configs.put(each.brokerId(), each));
        ListenerName listener = first.interBrokerListenerName();
        SecurityProtocol protocol = first.interBrokerSecurityProtocol();
        TestKitNodes nodes = new TestKitNodes.Builder(unused.bootstrapMetadata()).setNumControllerNodes(1).setNumBrokerNodes(configs.size())
            .setBrokerListenerName(listener).setBrokerSecurityProtocol(protocol).build();
        KafkaClusterTestKit.Builder builder = new KafkaClusterTestKit.Builder(nodes).setBrokerConfigs(configs);
        first.originals().forEach((name, value) -> { if (!OF_PROCESSES.contains(name)) builder.setConfigProp(name, value); });
        return builder.build();
    }

    @Override
    public void shutdown() {
        try {
            if (cluster != null) cluster.close();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
