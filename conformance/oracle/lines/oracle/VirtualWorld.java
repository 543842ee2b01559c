package oracle;

import java.util.OptionalInt;

/** One simulated broker with its coordinator, in one thread; time passes when it is told to. */
public abstract class VirtualWorld {
    public final VirtualClock clock;
    public final int partitions;

    protected VirtualWorld(int partitions, long startMs) {
        this.partitions = partitions;
        clock = new VirtualClock(startMs);
    }

    /** Runs all that can run now. */
    public abstract void drain();

    /** Lets time pass up to target, each task at its own time. */
    public abstract void advanceTo(long target);

    public abstract int partitionFor(String group);

    /** The broker leads the partition from here on; Kafkas without leader epochs do not look at it. */
    public abstract void elect(int partition, int epoch);

    public abstract void resign(int partition, OptionalInt epoch);

    /** The coordinator takes requests from here on. */
    public abstract void startup();

    /** The coordinator takes no requests any more. */
    public abstract void shutdown();
}
