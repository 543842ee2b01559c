package kafka.utils.timer;

/** A task of the harness itself on Kafka's timer. */
public final class Alarm implements TimerTask {
    private final long delayMs;
    private final Runnable task;
    private TimerTaskEntry entry;

    public Alarm(long delayMs, Runnable task) {
        this.delayMs = delayMs;
        this.task = task;
    }

    @Override public void run() { task.run(); }
    @Override public long delayMs() { return delayMs; }
    @Override public TimerTaskEntry kafka$utils$timer$TimerTask$$timerTaskEntry() { return entry; }
    @Override public void kafka$utils$timer$TimerTask$$timerTaskEntry_$eq(TimerTaskEntry e) { entry = e; }
}
