package oracle;

import java.util.ArrayDeque;

/** A broker whose coordinator has a timer, and a scheduler beside it. */
public abstract class ScheduledWorld extends VirtualWorld {
    /** What the scheduler has to run now. */
    public final ArrayDeque<Runnable> scheduled = new ArrayDeque<>();

    protected ScheduledWorld(int partitions, long startMs) { super(partitions, startMs); }

    /** Runs what the timer has up to target, each at its own time, and `after` behind each. */
    protected abstract void runTimer(long target, Runnable after);

    /** As the scheduler runs it. */
    protected abstract void runTask(Runnable task);

    @Override public final void drain() {
        Runnable task;
        do {
            // A broker's timer thread takes a bucket that is due at once, also while the wheel lags behind the clock.
            runTimer(clock.ms, () -> { });
            task = scheduled.poll();
            if (task != null) runTask(task);
        } while (task != null);
    }

    @Override public final void advanceTo(long target) {
        drain();
        runTimer(target, this::runScheduled);
        drain();
    }

    private void runScheduled() {
        Runnable task;
        while ((task = scheduled.poll()) != null) runTask(task);
    }
}
