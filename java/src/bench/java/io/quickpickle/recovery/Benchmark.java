package io.quickpickle.recovery;

import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.master.BlackHolePersistenceEngine;
import org.apache.spark.deploy.master.FileSystemPersistenceEngine;
import org.apache.spark.deploy.master.PersistenceEngine;
import org.apache.spark.deploy.master.RocksDBPersistenceEngine;
import org.apache.spark.deploy.master.WorkerInfo;
import org.apache.spark.deploy.master.WorkerResourceInfo;
import org.apache.spark.deploy.master.ZooKeeperPersistenceEngine;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Persists workers, reads them all, removes them all, over Spark's engines and ours with the same serialisers, in one JVM.
 *
 * <p>Arguments: file for the samples, directory on a disk, directory on a RAM disk, ZooKeeper's address or {@code -}, rounds, rounds to
 * warm up, records, in which rounds slow engines take part (3 for every third), and a pattern: cases whose engine, serialiser and medium,
 * with slashes between, do not match it are left out. In each round the engines come in another order. Slow ones are those that wait for a
 * disk or a server; they warm up once if there are more than three rounds.
 * Engines are opened once and used in all rounds, as a master uses its own. Every answer is checked, outside the clock. Run by {@code bench_recovery_spark.py}.
 */
public final class Benchmark {
    private static final ClassTag<WorkerInfo> WORKER = ClassTag$.MODULE$.apply(WorkerInfo.class);

    private Benchmark() {}

    /** One engine with one serialiser in one place, and what it took, in nanoseconds. */
    private static final class Case {
        final String engine;
        final String serializer;
        final String medium;
        final boolean keeps;
        final boolean slow;
        final PersistenceEngine under;
        final List<long[]> samples = new ArrayList<>();

        Case(String engine, String serializer, String medium, boolean keeps, boolean slow, PersistenceEngine under) {
            this.engine = engine;
            this.serializer = serializer;
            this.medium = medium;
            this.keeps = keeps;
            this.slow = slow;
            this.under = under;
        }

        void run(List<WorkerInfo> workers, Set<String> ids, boolean keep) {
            long begun = System.nanoTime();
            for (WorkerInfo worker : workers) {
                under.addWorker(worker);
            }
            long persisted = System.nanoTime();
            Seq<WorkerInfo> found = under.read("worker_", WORKER);
            long read = System.nanoTime();
            for (WorkerInfo worker : workers) {
                under.removeWorker(worker);
            }
            long removed = System.nanoTime();
            check(found, ids);
            if (keep) {
                samples.add(new long[] {persisted - begun, read - persisted, removed - read});
            }
        }

        private void check(Seq<WorkerInfo> found, Set<String> ids) {
            if (!keeps) {
                return;
            }
            Set<String> seen = new HashSet<>();
            CollectionConverters.asJava(found).forEach(worker -> {
                if (worker.executors() == null || worker.coresFree() != worker.cores()) {
                    throw new AssertionError(engine + " gave back half a worker");
                }
                seen.add(worker.id());
            });
            if (!seen.equals(ids) || under.read("worker_", WORKER).size() != 0) {
                throw new AssertionError(engine + " keeps " + seen.size() + " workers");
            }
        }
    }

    /** The serialiser and nothing else: what no engine can be faster than. */
    private static final class SerializerAlone extends PersistenceEngine {
        private final RecordCodec codec;
        private final List<byte[]> values = new ArrayList<>();

        SerializerAlone(RecordCodec codec) {
            this.codec = codec;
        }

        @Override
        public void persist(String name, Object record) {
            ByteBuffer value = codec.encode(record);
            int start = value.arrayOffset() + value.position();
            values.add(Arrays.copyOfRange(value.array(), start, start + value.remaining()));
        }

        @Override
        public void unpersist(String name) {
            values.clear();
        }

        @Override
        public <T> Seq<T> read(String prefix, ClassTag<T> tag) {
            List<T> records = new ArrayList<>();
            for (byte[] value : values) {
                @SuppressWarnings("unchecked")
                T record = (T) codec.decode(value);
                records.add(record);
            }
            return CollectionConverters.asScala(records).toSeq();
        }
    }

    /**
     * Each record written, and found again in memory: what the system asks for where a record must have been handed over before its call
     * returns, and no store. With fdatasync, to space taken ahead; without, appended: each is the cheaper way.
     */
    private static final class BareWrite extends PersistenceEngine {
        private static final byte[] REMOVAL = new byte[96];

        private final RecordCodec codec;
        private final boolean sync;
        /** Writes an array with one call into the system; a channel would copy it and ask for its own position. */
        private final RandomAccessFile file;
        private int position;
        private final List<byte[]> values = new ArrayList<>();

        BareWrite(RecordCodec codec, File path, boolean sync) throws IOException {
            this.codec = codec;
            this.sync = sync;
            file = new RandomAccessFile(path, "rw");
            if (sync) {
                file.write(new byte[4 << 20]);
                file.getChannel().force(true);
                file.seek(0);
            }
        }

        private void write(byte[] bytes, int start, int length) {
            try {
                position += length;
                if (position > 4 << 20) {
                    position = length;
                    file.seek(0);
                    if (!sync) {
                        file.setLength(0);
                    }
                }
                file.write(bytes, start, length);
                if (sync) {
                    file.getChannel().force(false);
                }
            } catch (IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        @Override
        public void persist(String name, Object record) {
            ByteBuffer value = codec.encode(record);
            int start = value.arrayOffset() + value.position();
            values.add(Arrays.copyOfRange(value.array(), start, start + value.remaining()));
            write(value.array(), start, value.remaining());
        }

        @Override
        public void unpersist(String name) {
            values.clear();
            write(REMOVAL, 0, REMOVAL.length);
        }

        @Override
        public <T> Seq<T> read(String prefix, ClassTag<T> tag) {
            List<T> records = new ArrayList<>();
            for (byte[] value : values) {
                @SuppressWarnings("unchecked")
                T record = (T) codec.decode(value);
                records.add(record);
            }
            return CollectionConverters.asScala(records).toSeq();
        }
    }

    /** With resources, without an endpoint: outside an RPC environment none can be read. */
    private static WorkerInfo worker(int number) {
        Map<String, WorkerResourceInfo> resources = Map.of("gpu", resource("gpu", "0", "1", "2"), "fpga", resource("fpga", "3", "4", "5"));
        return new WorkerInfo("worker-20261130000000-255.255.255.255-" + number, "255.255.255.255", number, 8, 16384, null,
                "http://255.255.255.255:8081", Map$.MODULE$.from(CollectionConverters.asScala(resources)));
    }

    private static WorkerResourceInfo resource(String name, String... addresses) {
        return new WorkerResourceInfo(name, CollectionConverters.asScala(List.of(addresses)).toSeq());
    }

    private static PersistenceEngine ours(Serializer java, String serializer, String engine, File directory, String... more) {
        SparkConf conf = new SparkConf(false).set("spark.deploy.recoveryDirectory", directory.getPath())
                .set("spark.quickpickle.recovery.engine", engine).set("spark.quickpickle.recovery.serializer", serializer);
        for (int at = 0; at < more.length; at += 2) {
            conf.set(more[at], more[at + 1]);
        }
        return new QuickpickleRecoveryModeFactory(conf, java).createPersistenceEngine();
    }

    /** Runs it. */
    public static void main(String[] arguments) throws IOException {
        File output = new File(arguments[0]);
        File[] places = {new File(arguments[1]), new File(arguments[2])};
        String zookeeper = arguments[3];
        int rounds = Integer.parseInt(arguments[4]);
        int warmup = Integer.parseInt(arguments[5]);
        int records = Integer.parseInt(arguments[6]);
        int slowEvery = Integer.parseInt(arguments[7]);
        Pattern wanted = Pattern.compile(arguments[8]);

        JavaSerializer java = new JavaSerializer(new SparkConf(false));
        // For Spark's engines too: its plain Kryo gives back workers without their transient state.
        KryoSerializer kryo = new KryoSerializer(new SparkConf(false).set("spark.kryo.registrator", KryoSetup.class.getName()));
        List<Case> cases = new ArrayList<>();
        int[] sizes = new int[2];
        for (String name : List.of("java", "kryo")) {
            Serializer serializer = name.equals("java") ? java : kryo;
            RecordCodec codec = name.equals("java") ? new JavaCodec() : new KryoCodec();
            sizes[name.equals("java") ? 0 : 1] = codec.encode(worker(1)).remaining();
            cases.add(new Case("serialiser alone", name, "memory", true, false, new SerializerAlone(codec)));
            cases.add(new Case("black_hole", name, "memory", false, false, ours(java, name, "black_hole", places[0])));
            for (int at = 0; at < 2; at++) {
                String medium = at == 0 ? "disk" : "RAM disk";
                File place = new File(places[at], name);
                boolean slow = at == 0;
                File files = new File(place, "spark-files");
                if (!files.mkdirs()) {
                    throw new IOException("cannot create " + files);
                }
                cases.add(new Case("Spark FileSystem", name, medium, true, slow,
                        new FileSystemPersistenceEngine(files.getPath(), serializer, Option.empty())));
                cases.add(new Case("Spark RocksDB", name, medium, true, false,
                        new RocksDBPersistenceEngine(new File(place, "spark-rocksdb").getPath(), serializer)));
                for (String sync : List.of("none", "group(10)", "always")) {
                    cases.add(new Case("log " + sync, name, medium, true, slow && sync.equals("always"),
                            ours(java, name, "log", new File(place, "log-" + sync), "spark.quickpickle.recovery.sync", sync)));
                }
                cases.add(new Case("write", name, medium, true, false, new BareWrite(codec, new File(place, "write"), false)));
                cases.add(new Case("write+fdatasync", name, medium, true, slow,
                        new BareWrite(codec, new File(place, "write-and-sync"), true)));
                cases.add(new Case("file_system", name, medium, true, slow,
                        ours(java, name, "file_system", new File(place, "files"))));
            }
            if (!zookeeper.equals("-")) {
                SparkConf conf = new SparkConf(false).set("spark.deploy.zookeeper.url", zookeeper)
                        .set("spark.deploy.zookeeper.dir", "/spark-" + name);
                cases.add(new Case("Spark ZooKeeper", name, "ZooKeeper", true, true, new ZooKeeperPersistenceEngine(conf, serializer)));
                cases.add(new Case("zookeeper", name, "ZooKeeper", true, true, ours(java, name, "zookeeper", places[0],
                        "spark.deploy.zookeeper.url", zookeeper, "spark.deploy.zookeeper.dir", "/ours-" + name)));
            }
        }
        cases.add(new Case("Spark BlackHole", "-", "memory", false, false, new BlackHolePersistenceEngine()));
        cases.removeIf(each -> !wanted.matcher(each.engine + "/" + each.serializer + "/" + each.medium).find());

        List<WorkerInfo> workers = new ArrayList<>();
        Set<String> ids = new HashSet<>();
        for (int number = 1; number <= records; number++) {
            workers.add(worker(number));
            ids.add(worker(number).id());
        }
        Random random = new Random(5);
        for (int round = -warmup; round < rounds; round++) {
            List<Case> order = new ArrayList<>(cases);
            Collections.shuffle(order, random);
            for (Case each : order) {
                boolean joins = !each.slow || (round < 0 ? round == -1 && rounds > 3 : round % slowEvery == 0);
                if (!joins) {
                    continue;
                }
                System.gc();
                each.run(workers, ids, round >= 0);
            }
            System.err.println("round " + (round + 1) + " of " + rounds);
        }
        write(output, cases, sizes, records);
        // Spark's ZooKeeper client has threads of its own.
        Runtime.getRuntime().halt(0);
    }

    private static void write(File output, List<Case> cases, int[] sizes, int records) throws IOException {
        try (PrintStream out = new PrintStream(output, "UTF-8")) {
            out.printf("{\"records\": %d, \"java_bytes\": %d, \"kryo_bytes\": %d, \"jvm\": \"%s\", \"spark\": \"%s\", \"cases\": [%n", records,
                    sizes[0], sizes[1], System.getProperty("java.vm.version"), org.apache.spark.package$.MODULE$.SPARK_VERSION());
            for (int at = 0; at < cases.size(); at++) {
                Case each = cases.get(at);
                out.printf("{\"engine\": \"%s\", \"serializer\": \"%s\", \"medium\": \"%s\", \"samples_ns\": %s}%s%n", each.engine,
                        each.serializer, each.medium, each.samples.stream().map(Arrays::toString).toList(),
                        at + 1 < cases.size() ? "," : "");
            }
            out.println("]}");
        }
    }
}
