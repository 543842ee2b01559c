package oracle;

import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.ArrayDeque;
import java.util.SplittableRandom;
import java.util.UUID;

/** Makes UUID.randomUUID(), hence member ids, deterministic: the first provider serves `new SecureRandom()`. */
public final class SeededRandomProvider extends Provider {
    private static final int UUID_BYTES = 16;
    private static final ArrayDeque<UUID> SCRIPTED = new ArrayDeque<>();
    private static SplittableRandom random = new SplittableRandom(0);

    public SeededRandomProvider() {
        super("SeededRandom", "1", "deterministic");
        put("SecureRandom.SEEDED", Spi.class.getName());
    }

    public static void install() { Security.insertProviderAt(new SeededRandomProvider(), 1); }
    /** A new world: its own ids, and none that were scripted for the last one. */
    public static void seed(long seed) { random = new SplittableRandom(seed); SCRIPTED.clear(); }

    /** The next randomUUID() calls return these. */
    public static void script(UUID uuid) { SCRIPTED.add(uuid); }

    public static final class Spi extends SecureRandomSpi {
        @Override protected void engineSetSeed(byte[] seed) { }

        @Override protected synchronized void engineNextBytes(byte[] bytes) {
            UUID scripted = bytes.length == UUID_BYTES ? SCRIPTED.poll() : null;
            if (scripted != null) {
                ByteBuffer.wrap(bytes).putLong(scripted.getMostSignificantBits()).putLong(scripted.getLeastSignificantBits());
                return;
            }
            for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) random.nextInt(256);
        }

        @Override protected byte[] engineGenerateSeed(int count) {
            byte[] seed = new byte[count];
            engineNextBytes(seed);
            return seed;
        }
    }
}
