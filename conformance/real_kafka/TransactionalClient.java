import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Java's clients on any broker; what is printed does not depend on time. */
public class TransactionalClient {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long PATIENCE_MS = 15_000;
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        KafkaProducer<String, String> first = producer("java", 60_000);
        first.initTransactions();
        for (int round = 0; round < 6; round++) {
            first.beginTransaction();
            for (int index = 0; index < 4; index++) {
                send(first, "out", index % 2, round + "-" + index);
            }
            first.flush();
            end(first, round % 3 != 2);
        }
        first.beginTransaction();
        first.commitTransaction();
        first.beginTransaction();
        first.abortTransaction();
        System.out.println("committed " + read("read_committed", "out", 16));
        System.out.println("all " + read("read_uncommitted", "out", 24).size());
        copy(first);
        fence(first);
        timeOut();
        System.out.println("left " + read("read_committed", "out", 16).size());
    }

    /** Consume, transform, produce: the offsets are part of the transaction. */
    private static void copy(KafkaProducer<String, String> producer) {
        Properties settings = consumerSettings("read_committed");
        settings.put("group.id", "copies");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("out"));
            int copied = 0;
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (copied < 16 && System.currentTimeMillis() < end) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    send(producer, "copy", record.partition(), record.value());
                    TopicPartition place = new TopicPartition(record.topic(), record.partition());
                    offsets.put(place, new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                copied += records.count();
            }
            long offsets = 0;
            for (OffsetAndMetadata offset : consumer.committed(consumer.assignment()).values()) {
                offsets += offset.offset();
            }
            System.out.println("copied " + copied + " offsets " + offsets);
        }
        System.out.println("copies " + read("read_committed", "copy", 16).size());
    }

    /** A second producer of the id, and an operator who fences that one. */
    private static void fence(KafkaProducer<String, String> first) throws Exception {
        KafkaProducer<String, String> second = producer("java", 60_000);
        second.initTransactions();
        System.out.println("first " + failure(first));
        second.beginTransaction();
        second.send(new ProducerRecord<>("out", 0, null, "open")).get();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(settings)) {
            System.out.println("listed " + admin.listTransactions().all().get().size());
            TransactionDescription open = describe(admin, "java");
            System.out.println(open.state() + " " + open.topicPartitions());
            admin.fenceProducers(List.of("java")).all().get();
            System.out.println("fenced " + describe(admin, "java").state());
        }
        System.out.println("second " + ending(second));
    }

    /** A transaction that its coordinator aborts. */
    private static void timeOut() throws Exception {
        KafkaProducer<String, String> slow = producer("slow", 500);
        slow.initTransactions();
        slow.beginTransaction();
        slow.send(new ProducerRecord<>("out", 0, null, "slow")).get();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        long end = System.currentTimeMillis() + PATIENCE_MS;
        try (Admin admin = Admin.create(settings)) {
            while (describe(admin, "slow").state() != TransactionState.COMPLETE_ABORT
                    && System.currentTimeMillis() < end) {
                Thread.sleep(100);
            }
        }
        System.out.println("slow " + ending(slow));
    }

    private static TransactionDescription describe(Admin admin, String id) throws Exception {
        return admin.describeTransactions(List.of(id)).all().get().get(id);
    }

    private static String failure(KafkaProducer<String, String> producer) {
        try {
            producer.beginTransaction();
            send(producer, "out", 0, "too late");
        } catch (KafkaException error) {
            return error.getClass().getSimpleName();
        }
        return ending(producer);
    }

    private static String ending(KafkaProducer<String, String> producer) {
        try {
            producer.commitTransaction();
            return "committed";
        } catch (KafkaException error) {
            return error.getClass().getSimpleName();
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private static void end(KafkaProducer<String, String> producer, boolean commits) {
        if (commits) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private static void send(
            KafkaProducer<String, String> producer, String topic, int partition, String value) {
        producer.send(new ProducerRecord<>(topic, partition, null, value));
    }

    private static KafkaProducer<String, String> producer(String id, int timeoutMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", timeoutMs);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static Properties consumerSettings(String isolation) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("isolation.level", isolation);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        return settings;
    }

    /** The values of a topic, sorted, until there are as many as wanted. */
    private static List<String> read(String isolation, String topic, int wanted) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(consumerSettings(isolation))) {
            List<TopicPartition> places = new ArrayList<>();
            for (PartitionInfo partition : consumer.partitionsFor(topic)) {
                places.add(new TopicPartition(topic, partition.partition()));
            }
            consumer.assign(places);
            consumer.seekToBeginning(places);
            long end = System.currentTimeMillis() + PATIENCE_MS;
            boolean more = true;
            while (more) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                for (ConsumerRecord<String, String> record : records) {
                    values.add(record.value());
                }
                boolean isLate = System.currentTimeMillis() > end;
                more = values.size() < wanted ? !isLate : !records.isEmpty();
            }
        }
        Collections.sort(values);
        return values;
    }
}
