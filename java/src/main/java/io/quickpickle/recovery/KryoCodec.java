package io.quickpickle.recovery;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Registration;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.KryoSerializer;

/**
 * Kryo as Spark configures it, with {@link KryoSetup}, and one instance for all records: making one costs ten times a record.
 *
 * <p>Kryo's bytes hold neither the layout of a class nor what the numbers of registered classes mean; another Spark release would misread
 * them silently. So each value begins with the Spark version and a checksum of the registrations, and is refused where they differ:
 *
 * <pre>'Q' 'K', 1, length of the version, the version, CRC-32C of the registrations (4 bytes), Kryo's bytes</pre>
 */
final class KryoCodec implements RecordCodec {
    private static final byte[] MAGIC = {'Q', 'K', 1};

    private final Kryo kryo;
    private final byte[] header;
    private final Output output = new Output(4096, -1);
    private final Input input = new Input();

    KryoCodec() {
        this(org.apache.spark.package$.MODULE$.SPARK_VERSION());
    }

    KryoCodec(String sparkVersion) {
        // Of the master's own Kryo settings none applies: they are made for applications, and name classes a master does not have.
        SparkConf conf = new SparkConf(false).set("spark.kryo.registrator", KryoSetup.class.getName());
        try {
            kryo = new KryoSerializer(conf).newKryo();
        } catch (RuntimeException | LinkageError error) {
            throw RecordCodec.failure("Kryo cannot be set up", error);
        }
        kryo.setClassLoader(new MastersClasses(kryo.getClassLoader()));
        byte[] version = sparkVersion.getBytes(StandardCharsets.UTF_8);
        header = ByteBuffer.allocate(MAGIC.length + 1 + version.length + 4)
                .put(MAGIC)
                .put((byte) version.length)
                .put(version)
                .putInt(registrations(kryo))
                .array();
    }

    /** Checksum of which number stands for which class. */
    private static int registrations(Kryo kryo) {
        CRC32C checksum = new CRC32C();
        for (int id = 0; ; id++) {
            Registration registration = kryo.getRegistration(id);
            if (registration == null) {
                return (int) checksum.getValue();
            }
            checksum.update((id + "=" + registration.getType().getName() + "\n").getBytes(StandardCharsets.UTF_8));
        }
    }

    @Override
    public int number() {
        return Engine.KRYO;
    }

    @Override
    public ByteBuffer encode(Object record) {
        output.clear();
        output.writeBytes(header);
        try {
            kryo.writeClassAndObject(output, record);
        } catch (RuntimeException | LinkageError | StackOverflowError error) {
            throw RecordCodec.failure("Kryo cannot write a " + record.getClass().getName(), error);
        }
        return ByteBuffer.wrap(output.getBuffer(), 0, output.position());
    }

    @Override
    public Object decode(byte[] value) {
        if (value.length < header.length || !Arrays.equals(value, 0, header.length, header, 0, header.length)) {
            throw RecordCodec.failure(difference(value), null);
        }
        try {
            input.setBuffer(value, header.length, value.length - header.length);
            return kryo.readClassAndObject(input);
        } catch (RuntimeException | LinkageError | StackOverflowError error) {
            throw RecordCodec.failure("Kryo cannot read it", error);
        }
    }

    private String difference(byte[] value) {
        int start = MAGIC.length + 1;
        boolean ours = value.length > start && Arrays.equals(value, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
        if (!ours || value.length < start + value[MAGIC.length]) {
            return "not a record this release wrote with Kryo";
        }
        String wrote = new String(value, start, value[MAGIC.length], StandardCharsets.UTF_8);
        String here = new String(header, start, header[MAGIC.length], StandardCharsets.UTF_8);
        return "Kryo of Spark " + wrote + " wrote it, and Spark " + here
                + (wrote.equals(here) ? " here has other classes registered" : " may have other fields in its records");
    }

    /**
     * Finds for Kryo, and for the Java serialisation inside of it, the classes that {@link JavaCodec} takes too. For others it throws something
     * else than that there is no such class, because Kryo would then search on by itself.
     */
    private static final class MastersClasses extends ClassLoader {
        MastersClasses(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!JavaCodec.Classes.isAMasters(name)) {
                throw new KryoException(name + " is no class of a master's records");
            }
            return super.loadClass(name, resolve);
        }
    }
}
