import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools one after the other in one JVM. A line of standard input is a call:
 * the main class, the tool's own input, and its arguments, with unit separators between. What it
 * prints is followed by a line with a unit separator and its exit status.
 */
public final class ToolRunner {
    private static final String SEPARATOR = "\u001f";
    private static final String NEWLINE = "\u001e";
    /** The status with which the tool that runs has first asked to end. */
    private static final AtomicReference<Integer> ENDED = new AtomicReference<>();

    /** What the tool that runs wants done when its process ends. */
    private static final List<Runnable> HOOKS = new ArrayList<>();

    private ToolRunner() {
    }

    /** Thrown where a process of its own would end; what catches it prints to no avail. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;
    }

    private static final class UntilTheEnd extends FilterOutputStream {
        UntilTheEnd(OutputStream out) {
            super(out);
        }

        @Override
        public void write(int value) throws IOException {
            if (ENDED.get() == null) {
                out.write(value);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setErr(new PrintStream(new UntilTheEnd(System.out), true));
        Exit.Procedure end = (status, message) -> {
            ENDED.compareAndSet(null, status);
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader calls =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            String[] call = line.split(SEPARATOR, -1);
            ENDED.set(null);
            run(call[0], call[1], Arrays.copyOfRange(call, 2, call.length));
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
            ENDED.compareAndSet(null, 0);
            System.out.println("\n" + SEPARATOR + ENDED.get());
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(String tool, String input, String[] arguments) throws Exception {
        byte[] text = input.replace(NEWLINE, "\n").getBytes(StandardCharsets.UTF_8);
        System.setIn(new ByteArrayInputStream(text));
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (ENDED.get() == null) {
                error.getCause().printStackTrace();
                ENDED.set(1);
            }
        }
    }
}
