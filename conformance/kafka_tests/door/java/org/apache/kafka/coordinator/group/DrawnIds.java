package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.security.*;
import java.util.*;

/** The source of UUID.randomUUID() while tests run: it remembers what it gave, so that both coordinators draw alike. */
public final class DrawnIds extends Provider {
    private static final int UUID_BYTES = 16;
    private static final List<UUID> DRAWN = new ArrayList<>();
    private static final SplittableRandom RANDOM = new SplittableRandom(0);

    public DrawnIds() {
        super("DrawnIds", "1", "remembered");
        put("SecureRandom.DRAWN", Spi.class.getName());
    }

    static void install() { Security.insertProviderAt(new DrawnIds(), 1); }

    /** What was drawn since the last call, in order. */
    static synchronized List<UUID> take() {
        List<UUID> drawn = List.copyOf(DRAWN);
        DRAWN.clear();
        return drawn;
    }

    private static synchronized void draw(byte[] bytes) {
        for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) RANDOM.nextInt(256);
        if (bytes.length != UUID_BYTES) return;
        ByteBuffer read = ByteBuffer.wrap(bytes);
        long high = read.getLong() & ~0xF000L | 0x4000L;
        DRAWN.add(new UUID(high, read.getLong() & ~(3L << 62) | 1L << 63));
    }

    public static final class Spi extends SecureRandomSpi {
        @Override protected void engineSetSeed(byte[] seed) { }
        @Override protected void engineNextBytes(byte[] bytes) { draw(bytes); }
        @Override protected byte[] engineGenerateSeed(int count) { byte[] seed = new byte[count]; draw(seed); return seed; }
    }
}
