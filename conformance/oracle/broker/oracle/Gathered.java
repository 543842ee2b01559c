package oracle;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.GatheringByteChannel;

/** Takes the bytes of a Send. */
public class Gathered implements GatheringByteChannel {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    /** What was written, without the length that it begins with. */
    public final ByteBuffer frame() {
        ByteBuffer all = ByteBuffer.wrap(out.toByteArray());
        all.getInt();
        return all.slice();
    }

    @Override public long write(ByteBuffer[] sources, int offset, int length) {
        long count = 0;
        for (int i = offset; i < offset + length; i++) count += write(sources[i]);
        return count;
    }
    @Override public long write(ByteBuffer[] sources) { return write(sources, 0, sources.length); }
    @Override public int write(ByteBuffer source) {
        byte[] copy = new byte[source.remaining()];
        source.get(copy);
        out.writeBytes(copy);
        return copy.length;
    }
    @Override public boolean isOpen() { return true; }
    @Override public void close() { }
}
