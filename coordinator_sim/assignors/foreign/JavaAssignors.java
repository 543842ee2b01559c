import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Asks the assignors of a class, one object for each consumer.
 *
 * A question is a line, an answer is a line: fields in the classic types of Kafka's protocol, in Base64.
 * Subscriptions and assignments are in the form in which consumers send them, so that Kafka's own classes read
 * and write them. What the class prints goes to the standard error.
 */
public final class JavaAssignors {
    private final Class<?> assignorClass;
    private final Map<Integer, ConsumerPartitionAssignor> assignors = new HashMap<>();
    private int made = 0;

    private JavaAssignors(Class<?> assignorClass) {
        this.assignorClass = assignorClass;
    }

    public static void main(String[] words) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        JavaAssignors asked = new JavaAssignors(found(words[0]));
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(Base64.getEncoder().encodeToString(asked.answer(Base64.getDecoder().decode(line))));
            answers.flush();
        }
    }

    private static Class<?> found(String name) {
        try {
            return Class.forName(name);
        } catch (ReflectiveOperationException | LinkageError error) {
            System.err.println(error);
            System.exit(1);
            throw new AssertionError(error);
        }
    }

    private byte[] answer(byte[] question) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream answer = new DataOutputStream(bytes);
        answer.writeShort(1);
        try {
            answer(new DataInputStream(new ByteArrayInputStream(question)), answer);
        } catch (Throwable raised) {
            bytes.reset();
            answer.writeShort(0);
            writeText(answer, described(raised));
        }
        return bytes.toByteArray();
    }

    private void answer(DataInputStream question, DataOutputStream answer) throws Exception {
        char what = (char) question.readByte();
        if (what == 'n') {
            make(question, answer);
            return;
        }
        ConsumerPartitionAssignor assignor = assignors.get(question.readInt());
        switch (what) {
            case 'u':
                writeBuffer(answer, assignor.subscriptionUserData(new TreeSet<>(readTexts(question))));
                break;
            case 'o':
                Assignment assignment = ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(readBytes(question)));
                assignor.onAssignment(assignment, new ConsumerGroupMetadata("", question.readInt(), "", Optional.empty()));
                break;
            case 'a':
                assign(assignor, question, answer);
                break;
            default:
                throw new IllegalArgumentException("unknown question " + what);
        }
    }

    /** A new object; those of consumers that are gone are forgotten. */
    private void make(DataInputStream question, DataOutputStream answer) throws Exception {
        for (int left = question.readInt(); left > 0; left--) {
            assignors.remove(question.readInt());
        }
        Object made = assignorClass.getDeclaredConstructor().newInstance();
        if (!(made instanceof ConsumerPartitionAssignor)) {
            throw new ClassCastException(assignorClass.getName() + " is no " + ConsumerPartitionAssignor.class.getName());
        }
        if (made instanceof Configurable) {
            ((Configurable) made).configure(Collections.emptyMap());
        }
        ConsumerPartitionAssignor assignor = (ConsumerPartitionAssignor) made;
        assignors.put(this.made, assignor);
        answer.writeInt(this.made++);
        List<RebalanceProtocol> protocols = assignor.supportedProtocols();
        answer.writeInt(protocols.size());
        for (RebalanceProtocol protocol : protocols) {
            answer.writeShort(protocol.id());
        }
    }

    private void assign(ConsumerPartitionAssignor assignor, DataInputStream question, DataOutputStream answer)
            throws IOException {
        Cluster cluster = readCluster(question);
        Map<String, Subscription> members = new HashMap<>();
        for (int left = question.readInt(); left > 0; left--) {
            String memberId = readText(question);
            String instanceId = readText(question);
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(readBytes(question)));
            subscription.setGroupInstanceId(Optional.ofNullable(instanceId));
            members.put(memberId, subscription);
        }
        Map<String, Assignment> given = assignor.assign(cluster, new GroupSubscription(members)).groupAssignment();
        answer.writeInt(given.size());
        for (Map.Entry<String, Assignment> each : given.entrySet()) {
            writeText(answer, each.getKey());
            writeBuffer(answer, ConsumerProtocol.serializeAssignment(each.getValue()));
        }
    }

    private static Cluster readCluster(DataInputStream question) throws IOException {
        Map<String, Node> nodes = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int topics = question.readInt(); topics > 0; topics--) {
            String topic = readText(question);
            int count = question.readInt();
            for (int partition = 0; partition < count; partition++) {
                List<Node> replicas = new ArrayList<>();
                for (String rack : readTexts(question)) {
                    replicas.add(nodes.computeIfAbsent(rack, name -> new Node(nodes.size(), "broker", 9092, name)));
                }
                if (replicas.isEmpty()) {
                    replicas.add(nodes.computeIfAbsent("", name -> new Node(nodes.size(), "broker", 9092)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic, partition, all[0], all, all));
            }
        }
        return new Cluster(null, nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static String described(Throwable raised) {
        StackTraceElement[] trace = raised.getStackTrace();
        return raised + (trace.length == 0 ? "" : " (" + trace[0].getFileName() + ":" + trace[0].getLineNumber() + ")");
    }

    private static List<String> readTexts(DataInputStream question) throws IOException {
        List<String> texts = new ArrayList<>();
        for (int left = question.readInt(); left > 0; left--) {
            texts.add(readText(question));
        }
        return texts;
    }

    private static String readText(DataInputStream question) throws IOException {
        int size = question.readShort();
        if (size < 0) {
            return null;
        }
        byte[] bytes = new byte[size];
        question.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static byte[] readBytes(DataInputStream question) throws IOException {
        byte[] bytes = new byte[question.readInt()];
        question.readFully(bytes);
        return bytes;
    }

    private static void writeText(DataOutputStream answer, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int size = Math.min(bytes.length, Short.MAX_VALUE);
        answer.writeShort(size);
        answer.write(bytes, 0, size);
    }

    private static void writeBuffer(DataOutputStream answer, ByteBuffer buffer) throws IOException {
        if (buffer == null) {
            answer.writeInt(-1);
            return;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        answer.writeInt(bytes.length);
        answer.write(bytes);
    }
}
