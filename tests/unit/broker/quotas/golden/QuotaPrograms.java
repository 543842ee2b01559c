import java.io.*;
import java.net.InetAddress;
import java.util.*;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.*;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.*;

/** Runs the commands of stdin on Kafka's quota managers; see README.md. */
public class QuotaPrograms {
    static class Clock implements Time {
        long ms = 1700000000000L;
        public long milliseconds() { return ms; }
        public long nanoseconds() { return ms * 1000000L; }
        public void sleep(long duration) { ms += duration; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {}
    }

    private final Clock time = new Clock();
    private final ClientQuotaManager produce;
    private final ControllerMutationQuotaManager mutation;

    QuotaPrograms(int windows, int seconds) {
        Metrics metrics = new Metrics(new MetricConfig(), new ArrayList<>(), time, false);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(windows, seconds);
        produce = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
        mutation = new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
    }

    static Optional<ClientQuotaEntity.ConfigEntity> user(String name) {
        if (name.equals("-")) return Optional.empty();
        if (name.equals("*")) return Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
        return Optional.of(new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name)));
    }

    static Optional<ClientQuotaEntity.ConfigEntity> client(String name) {
        if (name.equals("-")) return Optional.empty();
        if (name.equals("*")) return Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        return Optional.of(new ClientQuotaManager.ClientIdEntity(name));
    }

    String set(String[] word) {
        Optional<Quota> quota = word[4].equals("-")
            ? Optional.empty() : Optional.of(new Quota(Double.parseDouble(word[4]), true));
        (word[1].equals("produce") ? produce : mutation).updateQuota(user(word[2]), client(word[3]), quota);
        return "";
    }

    String mutate(String[] word, Session session) {
        ControllerMutationQuota quota = word[0].equals("strict")
            ? mutation.newStrictQuotaFor(session, word[2]) : mutation.newPermissiveQuotaFor(session, word[2]);
        StringBuilder found = new StringBuilder();
        for (int i = 3; i < word.length; i++) {
            try {
                quota.record(Double.parseDouble(word[i]));
                found.append("ok ");
            } catch (ThrottlingQuotaExceededException e) {
                found.append("no ");
            }
        }
        return found.append(quota.throttleTime()).toString();
    }

    String run(String[] word) throws Exception {
        if (word[0].equals("wait")) {
            time.sleep(Long.parseLong(word[1]));
            return "";
        }
        if (word[0].equals("quota")) return set(word);
        Session session = new Session(new KafkaPrincipal("User", word[1]), InetAddress.getLoopbackAddress());
        switch (word[0]) {
            case "use":
                return "" + produce.maybeRecordAndGetThrottleTimeMs(session, word[2], Double.parseDouble(word[3]), time.ms);
            case "unuse":
                if (produce.quotasEnabled()) produce.unrecordQuotaSensor(session, word[2], Double.parseDouble(word[3]), time.ms);
                return "";
            case "most":
                return "" + (int) produce.maxValueInQuotaWindow(session, word[2]);
            default:
                return mutate(word, session);
        }
    }

    public static void main(String[] args) throws Exception {
        QuotaPrograms programs = new QuotaPrograms(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer = programs.run(line.split(" "));
            System.out.println(answer.isEmpty() ? line : line + " = " + answer);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
