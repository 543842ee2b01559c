import java.io.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.*;
import org.apache.kafka.common.metrics.stats.Rate;

/** Reads `wait MS` and `use VALUE`; answers each use with the rate and its span. */
public class Rates {
    public static void main(String[] args) throws Exception {
        MetricConfig config = new MetricConfig()
            .samples(Integer.parseInt(args[0])).timeWindow(Integer.parseInt(args[1]), TimeUnit.SECONDS);
        Rate rate = new Rate();
        long now = 1700000000000L;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] word = line.split(" ");
            if (word[0].equals("wait")) {
                now += Long.parseLong(word[1]);
                System.out.println(line);
            } else {
                rate.record(config, Double.parseDouble(word[1]), now);
                System.out.println(line + " = " + rate.measure(config, now) + " " + rate.windowSize(config, now));
            }
        }
    }
}
