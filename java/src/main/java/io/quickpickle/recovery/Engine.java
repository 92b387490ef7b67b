package io.quickpickle.recovery;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * A crash-safe store of named bytes: the native engine, and the one owner of its handle.
 *
 * <p>Made closed from settings, then opened, which takes the store's lock. Methods may be called from several threads; every failure is a
 * {@link RecoveryException}, and after {@link #close()} that is {@link RecoveryException.Kind#CLOSED}. Knows nothing of Spark.
 */
public final class Engine implements AutoCloseable {
    /** Codec numbers, as they are on disk. */
    static final int RAW = 0;

    static final int PICKLE = 1;
    static final int COMPACT = 2;
    static final int JAVA = 3;
    static final int KRYO = 4;

    /** A stored value: its name, the number of the codec that wrote it, its bytes. */
    public record Entry(String name, int codec, byte[] value) {}

    /**
     * What opening found.
     *
     * @param entries entries alive
     * @param tornTailBytes bytes of an incomplete last write, which were dropped
     * @param damaged stretches that could not be used
     * @param missing records known to be missing
     * @param closedCleanly the last owner closed the store in good order
     * @param lines what there is to say, for people
     */
    public record Report(long entries, long tornTailBytes, long damaged, long missing, boolean closedCleanly, List<String> lines) {}

    /** A number the native library gave out. It is never used for another engine, so a late call with it finds nothing. */
    private final long handle;

    private final String kind;
    private final String place;
    private final String sync;

    /**
     * An engine that is not open yet. Touches nothing on disk.
     *
     * @param settings keys and values, in Spark's terms
     */
    public Engine(Map<String, String> settings) {
        NativeLibrary.load();
        List<String> flat = new ArrayList<>();
        settings.forEach((key, value) -> {
            flat.add(key);
            flat.add(value);
        });
        handle = prepare(pack(flat));
        List<String> described = unpack(ByteBuffer.wrap(describe(handle)));
        kind = described.get(0);
        place = described.get(1);
        sync = described.get(2);
    }

    /** {@code log}, {@code file_system}, {@code zookeeper} or {@code black_hole}. */
    public String kind() {
        return kind;
    }

    /** Directory, or ZooKeeper address. */
    public String place() {
        return place;
    }

    /** When a change counts as stored: {@code always}, {@code group(ms)} or {@code none}. */
    public String sync() {
        return sync;
    }

    /**
     * Opens the store and makes this process its one writer. Opening an open engine changes nothing.
     *
     * @param wait stand by until the holder is gone; otherwise fail with {@link RecoveryException.Kind#LOCKED}
     */
    public void open(boolean wait) {
        open(handle, wait);
    }

    /** Stores {@code length} bytes of {@code value} from {@code offset} under {@code name}, replacing what was there. */
    public void persist(String name, int codec, byte[] value, int offset, int length) {
        persist(handle, utf8(name), codec, value, offset, length);
    }

    /** Stores what remains in {@code value}; its position stays. */
    public void persist(String name, int codec, ByteBuffer value) {
        if (value.hasArray()) {
            persist(name, codec, value.array(), value.arrayOffset() + value.position(), value.remaining());
        } else {
            byte[] copy = new byte[value.remaining()];
            value.duplicate().get(copy);
            persist(name, codec, copy, 0, copy.length);
        }
    }

    /** Removes {@code name}; that it is not there is no error. */
    public void unpersist(String name) {
        unpersist(handle, utf8(name));
    }

    /** All entries whose name starts with {@code prefix}, ordered by name. */
    public List<Entry> read(String prefix) {
        List<Entry> entries = new ArrayList<>();
        for (byte[] block : read(handle, utf8(prefix))) {
            ByteBuffer packed = ByteBuffer.wrap(block);
            while (packed.hasRemaining()) {
                int codec = packed.getInt();
                String name = new String(next(packed), StandardCharsets.UTF_8);
                entries.add(new Entry(name, codec, next(packed)));
            }
        }
        return entries;
    }

    /** Returns once everything acknowledged is on the device, and this process is known to be the writer still. */
    public void flush() {
        sync(handle);
    }

    /** After a failed write: builds the store anew from what it holds, and lets writes through again if that succeeds. */
    public void revive() {
        revive(handle);
    }

    /** What opening found. */
    public Report report() {
        ByteBuffer packed = ByteBuffer.wrap(report(handle));
        return new Report(packed.getLong(), packed.getLong(), packed.getLong(), packed.getLong(), packed.get() != 0, unpack(packed));
    }

    /** Makes everything durable and gives the store back, or ends the wait for it. Closing twice is fine. */
    @Override
    public void close() {
        close(handle);
    }

    /** A half of a surrogate pair alone has no UTF-8; silently it would become a question mark, and two names one. */
    private static byte[] utf8(String text) {
        if (!hasSurrogates(text)) {
            // Several times as fast as an encoder of one's own.
            return text.getBytes(StandardCharsets.UTF_8);
        }
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(encoded.array(), encoded.limit());
        } catch (CharacterCodingException error) {
            throw new RecoveryException(RecoveryException.Kind.CODEC, "", "the name is no Unicode text: it has half a surrogate pair",
                    error);
        }
    }

    private static boolean hasSurrogates(String text) {
        for (int at = 0; at < text.length(); at++) {
            if (Character.isSurrogate(text.charAt(at))) {
                return true;
            }
        }
        return false;
    }

    private static byte[] next(ByteBuffer packed) {
        byte[] bytes = new byte[packed.getInt()];
        packed.get(bytes);
        return bytes;
    }

    private static byte[] pack(List<String> texts) {
        List<byte[]> encoded = texts.stream().map(Engine::utf8).toList();
        ByteBuffer packed = ByteBuffer.allocate(encoded.stream().mapToInt(bytes -> 4 + bytes.length).sum());
        encoded.forEach(bytes -> packed.putInt(bytes.length).put(bytes));
        return packed.array();
    }

    private static List<String> unpack(ByteBuffer packed) {
        List<String> texts = new ArrayList<>();
        while (packed.hasRemaining()) {
            texts.add(new String(next(packed), StandardCharsets.UTF_8));
        }
        return texts;
    }

    private static native long prepare(byte[] settings);

    private static native byte[] describe(long handle);

    private static native void open(long handle, boolean wait);

    private static native void persist(long handle, byte[] name, int codec, byte[] value, int offset, int length);

    private static native void unpersist(long handle, byte[] name);

    private static native byte[][] read(long handle, byte[] prefix);

    private static native void sync(long handle);

    private static native void revive(long handle);

    private static native byte[] report(long handle);

    private static native void close(long handle);
}
