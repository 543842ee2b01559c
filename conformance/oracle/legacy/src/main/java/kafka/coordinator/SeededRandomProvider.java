package kafka.coordinator;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.SplittableRandom;

/** Makes java.util.UUID.randomUUID() (member ids) deterministic: first provider wins for `new SecureRandom()`. */
public final class SeededRandomProvider extends Provider {
    private static SplittableRandom random = new SplittableRandom(0);

    public SeededRandomProvider() {
        super("SeededRandom", "1", "deterministic");
        put("SecureRandom.SEEDED", Spi.class.getName());
    }

    public static void install() { Security.insertProviderAt(new SeededRandomProvider(), 1); }
    private static final java.util.ArrayDeque<java.util.UUID> SCRIPTED = new java.util.ArrayDeque<>();

    /** The next randomUUID() calls return these: feeds a real broker's member ids to the oracle, so that hash orders agree. */
    public static void script(java.util.UUID uuid) { SCRIPTED.add(uuid); }
    public static void seed(long seed) { random = new SplittableRandom(seed); }

    public static final class Spi extends SecureRandomSpi {
        @Override protected void engineSetSeed(byte[] seed) { }
        @Override protected synchronized void engineNextBytes(byte[] bytes) {
            java.util.UUID u = bytes.length == 16 ? SCRIPTED.poll() : null;
            if (u != null) { java.nio.ByteBuffer.wrap(bytes).putLong(u.getMostSignificantBits()).putLong(u.getLeastSignificantBits()); return; }
            synchronized (SeededRandomProvider.class) { for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) random.nextInt(256); }
        }
        @Override protected byte[] engineGenerateSeed(int n) { byte[] b = new byte[n]; engineNextBytes(b); return b; }
    }
}
