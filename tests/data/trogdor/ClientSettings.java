import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Writes the settings of Kafka's clients: the client, the name, the default where it is a plain value.
 *
 * With Kafka's jar kafka-clients 4.3.1 and what it needs in lib/:
 *   java -cp 'lib/*' ClientSettings.java > client_settings.tsv
 */
public class ClientSettings {
    public static void main(String[] arguments) {
        write("producer", ProducerConfig.configDef());
        write("consumer", ConsumerConfig.configDef());
        write("admin", AdminClientConfig.configDef());
    }

    private static void write(String client, ConfigDef definition) {
        new TreeMap<>(definition.configKeys()).forEach((name, key) -> {
            Object value = key.defaultValue;
            boolean isPlain = value instanceof Number || value instanceof Boolean
                || value instanceof String;
            System.out.println(client + "\t" + name + "\t" + (isPlain ? value : ""));
        });
    }
}
