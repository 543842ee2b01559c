package served;

import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasUtils;

import java.util.List;
import java.util.Map;

/** Users of Kafka's test clusters with SASL, and the settings of both sides. */
public final class ClientSettings {
    private ClientSettings() { }

    /** Settings of brokers that Kafka's KafkaClusterTestKit.Builder sets where clients log in. */
    public static Map<String, String> ofSecuredBrokers() {
        return Map.of(
            "sasl.enabled.mechanisms", "PLAIN",
            "sasl.mechanism.inter.broker.protocol", "PLAIN",
            "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found", "false",
            "super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
    }

    /** Options of the served cluster that let these users log in. */
    public static List<String> users() {
        return List.of(
            "--user", JaasUtils.KAFKA_PLAIN_ADMIN + ":" + JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
            "--user", JaasUtils.KAFKA_PLAIN_USER1 + ":" + JaasUtils.KAFKA_PLAIN_USER1_PASSWORD);
    }

    /** Settings of an administrator's client. */
    public static Map<String, Object> ofAdmin(SecurityProtocol protocol) {
        if (protocol != SecurityProtocol.SASL_PLAINTEXT) return Map.of("security.protocol", protocol.name);
        String login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\";";
        return Map.of("security.protocol", protocol.name, "sasl.mechanism", "PLAIN",
            "sasl.jaas.config", String.format(login, JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD));
    }
}
