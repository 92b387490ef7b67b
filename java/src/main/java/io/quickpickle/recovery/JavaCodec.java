package io.quickpickle.recovery;

import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.ObjectStreamConstants;
import java.io.OutputStream;
import java.io.StreamCorruptedException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Java serialisation, byte for byte as Spark's {@code JavaSerializer} writes it, with one stream for all records in each direction.
 *
 * <p>Reading takes classes of Java, Scala and Spark only. Whoever can write to the store (on ZooKeeper that may be anybody) could
 * otherwise have any class on the class path deserialised by the master.
 */
final class JavaCodec implements RecordCodec {
    private static final String[] PACKAGES = {"java.", "scala.", "org.apache.spark."};
    private static final byte[] HEADER = {(byte) 0xac, (byte) 0xed, 0, 5};

    private final Reader reader = new Reader();
    private final Output output = new Output();
    private ObjectOutputStream writer;

    @Override
    public int number() {
        return Engine.JAVA;
    }

    @Override
    public ByteBuffer encode(Object record) {
        ObjectOutputStream mine = writer;
        writer = null;
        try {
            output.size = 0;
            if (mine == null) {
                mine = new ObjectOutputStream(output);
            } else {
                // A value stands for itself: the mark that makes a reader forget takes the place of the header's last byte.
                output.write(HEADER, 0, HEADER.length - 1);
                mine.reset();
            }
            mine.writeObject(record);
            mine.flush();
            output.bytes[HEADER.length - 1] = HEADER[HEADER.length - 1];
        } catch (IOException | RuntimeException | LinkageError | StackOverflowError error) {
            throw RecordCodec.failure("Java serialisation cannot write a " + record.getClass().getName(), error);
        }
        writer = mine;
        return ByteBuffer.wrap(output.bytes, 0, output.size);
    }

    @Override
    public Object decode(byte[] value) {
        try {
            return reader.read(value);
        } catch (IOException | ClassNotFoundException | RuntimeException | LinkageError | StackOverflowError error) {
            throw RecordCodec.failure("Java serialisation cannot read it", error);
        }
    }

    /** Reads one object after another; one thread at a time. */
    static final class Reader {
        private final Classes classes = new Classes();
        private FilteredStream stream;

        /** The object that is all of {@code value}. After a failure the next one is read by a new stream. */
        Object read(byte[] value) throws IOException, ClassNotFoundException {
            FilteredStream mine = stream == null ? new FilteredStream(new Bytes(), classes) : stream;
            stream = null;
            Object object = mine.next(value);
            stream = mine;
            return object;
        }
    }

    /**
     * Which classes may be read, and those found already: searching them is a fifth of the time a record takes. One thread at a time.
     */
    static final class Classes {
        private final Map<String, Class<?>> found = new HashMap<>();
        private final Map<Class<?>, Boolean> allowed = new HashMap<>();

        Class<?> find(String name) throws ClassNotFoundException {
            Class<?> known = found.get(name);
            if (known != null) {
                return known;
            }
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            Class<?> type = Class.forName(name, false, loader == null ? JavaCodec.class.getClassLoader() : loader);
            found.put(name, type);
            return type;
        }

        boolean mayRead(Class<?> type) {
            return allowed.computeIfAbsent(type, Classes::decide);
        }

        private static boolean decide(Class<?> type) {
            Class<?> innermost = type;
            while (innermost.isArray()) {
                innermost = innermost.getComponentType();
            }
            return innermost.isPrimitive() || isAMasters(innermost.getName());
        }

        /** Whether a master's record may have this class, which is no array. */
        static boolean isAMasters(String name) {
            for (String start : PACKAGES) {
                if (name.startsWith(start)) {
                    return true;
                }
            }
            return false;
        }
    }

    /**
     * One stream for many values, because a new one takes a tenth of the time of a record. The header that each value begins with is
     * handed over as the mark that makes a stream forget what it has read, which is what a value was written for: a stream of its own.
     */
    private static final class FilteredStream extends ObjectInputStream {
        private final Bytes bytes;
        private final Classes classes;

        FilteredStream(Bytes bytes, Classes classes) throws IOException {
            super(bytes);
            this.bytes = bytes;
            this.classes = classes;
            setObjectInputFilter(this::check);
        }

        Object next(byte[] value) throws IOException, ClassNotFoundException {
            bytes.turnTo(value);
            Object object = readObject();
            if (bytes.available() > 0) {
                throw new StreamCorruptedException(bytes.available() + " bytes follow the object");
            }
            return object;
        }

        private ObjectInputFilter.Status check(ObjectInputFilter.FilterInfo asked) {
            Class<?> type = asked.serialClass();
            return type == null || classes.mayRead(type) ? ObjectInputFilter.Status.ALLOWED : ObjectInputFilter.Status.REJECTED;
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass described) throws IOException, ClassNotFoundException {
            try {
                return classes.find(described.getName());
            } catch (ClassNotFoundException error) {
                // Primitive types, and classes that only the stream's own search finds.
                return super.resolveClass(described);
            }
        }
    }

    /** Bytes as a stream without the locks of {@code ByteArrayInputStream}, of which a record would take hundreds. */
    private static final class Bytes extends InputStream {
        private byte[] bytes = HEADER;
        private int at;

        /** A reset, then the value without its header. */
        void turnTo(byte[] value) throws StreamCorruptedException {
            if (!Arrays.equals(value, 0, Math.min(HEADER.length, value.length), HEADER, 0, HEADER.length)) {
                throw new StreamCorruptedException("not the beginning of a serialised object");
            }
            bytes = value.clone();
            bytes[HEADER.length - 1] = ObjectStreamConstants.TC_RESET;
            at = HEADER.length - 1;
        }

        @Override
        public int read() {
            return at < bytes.length ? bytes[at++] & 0xff : -1;
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            if (length == 0) {
                return 0;
            }
            int count = Math.min(length, bytes.length - at);
            if (count <= 0) {
                return -1;
            }
            System.arraycopy(bytes, at, into, offset, count);
            at += count;
            return count;
        }

        @Override
        public int available() {
            return bytes.length - at;
        }
    }

    /** A buffer that is used again, without the locks of {@code ByteArrayOutputStream}. */
    private static final class Output extends OutputStream {
        private byte[] bytes = new byte[4096];
        private int size;

        @Override
        public void write(int one) {
            grow(1);
            bytes[size++] = (byte) one;
        }

        @Override
        public void write(byte[] more, int offset, int length) {
            grow(length);
            System.arraycopy(more, offset, bytes, size, length);
            size += length;
        }

        private void grow(int by) {
            if (bytes.length - size < by) {
                bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, size + by));
            }
        }
    }
}
