package io.quickpickle.recovery;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.master.ApplicationInfo;
import org.apache.spark.deploy.master.DriverInfo;
import org.apache.spark.deploy.master.LeaderElectable;
import org.apache.spark.deploy.master.LeaderElectionAgent;
import org.apache.spark.deploy.master.PersistenceEngine;
import org.apache.spark.deploy.master.WorkerInfo;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerInstance;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * Checks of the Java side, and two tools for the tests that need a look into a store; run by {@code tests/recovery_spark}.
 *
 * <p>The first argument names checks, with commas between them; each gets a directory of its own in the second. Each is reported as
 * passed or failed. Those named {@code exit...} end the process themselves.
 */
public final class Checks {
    private Checks() {}

    private static final Map<String, Check> ALL = new LinkedHashMap<>();

    private interface Check {
        void run(File directory, String[] arguments) throws Exception;
    }

    static {
        ALL.put("names", Checks::names);
        ALL.put("closed", Checks::closed);
        ALL.put("panic", Checks::panic);
        ALL.put("remaining", Checks::remaining);
        ALL.put("blocks", Checks::blocks);
        ALL.put("standby", Checks::standby);
        ALL.put("threads", Checks::threads);
        ALL.put("settings", Checks::settings);
        ALL.put("records", Checks::records);
        ALL.put("serialisers", Checks::serialisers);
        ALL.put("sameBytes", Checks::sameBytes);
        ALL.put("foreign", Checks::foreign);
        ALL.put("versions", Checks::versions);
        ALL.put("skip", Checks::skip);
        ALL.put("afterClose", Checks::afterClose);
        ALL.put("election", Checks::election);
        ALL.put("exitOnUnreadable", Checks::exitOnUnreadable);
        ALL.put("exitOnOtherClass", Checks::exitOnOtherClass);
        ALL.put("exitOnUnserialisable", Checks::exitOnUnserialisable);
        ALL.put("exitOnSettings", Checks::exitOnSettings);
        ALL.put("list", Checks::list);
        ALL.put("pad", Checks::pad);
    }

    /** Names, a directory, and what else they take. */
    public static void main(String[] arguments) {
        int failed = 0;
        for (String name : arguments[0].split(",")) {
            Check check = ALL.get(name);
            if (check == null) {
                throw new IllegalArgumentException("there are " + ALL.keySet());
            }
            try {
                check.run(new File(arguments[1], name), Arrays.copyOfRange(arguments, 2, arguments.length));
                System.out.println("passed " + name);
            } catch (Throwable failure) {
                failed = 1;
                System.out.println("failed " + name);
                failure.printStackTrace(System.out);
            }
        }
        System.out.flush();
        // Spark's threads are not all daemons.
        Runtime.getRuntime().halt(failed);
    }

    private static void that(boolean claim, String what) {
        if (!claim) {
            throw new AssertionError(what);
        }
    }

    private static void same(Object found, Object wanted) {
        that(wanted.equals(found), found + " is not " + wanted);
    }

    private static void fails(RecoveryException.Kind kind, Runnable call) {
        try {
            call.run();
        } catch (RecoveryException failure) {
            same(failure.kind(), kind);
            that(!failure.getMessage().isEmpty(), "no message");
            return;
        }
        throw new AssertionError("no exception of kind " + kind);
    }

    private static Engine engine(File directory, String... more) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("spark.deploy.recoveryDirectory", directory.getPath());
        for (int at = 0; at < more.length; at += 2) {
            settings.put("spark.quickpickle.recovery." + more[at], more[at + 1]);
        }
        return new Engine(settings);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void names(File directory, String[] none) {
        List<String> names = new ArrayList<>(List.of("", ".", "..", "../../etc/passwd", "/", "a/b", "a\0b", "\0", "A", "a", "%00", "ü",
                "\uD83D\uDE00", "\uFFFF", "x".repeat(10_000)));
        for (String kind : List.of("log", "file_system")) {
            File place = new File(directory, kind);
            try (Engine engine = engine(place, "engine", kind)) {
                same(engine.kind(), kind);
                same(engine.place(), place.getPath());
                engine.open(false);
                for (String name : names) {
                    engine.persist(name, Engine.RAW, ByteBuffer.wrap(bytes("of " + name)));
                }
                fails(RecoveryException.Kind.CODEC, () -> engine.persist("half \uD83D", Engine.RAW, ByteBuffer.allocate(1)));
            }
            try (Engine engine = engine(place, "engine", kind)) {
                engine.open(false);
                List<Engine.Entry> entries = engine.read("");
                same(entries.size(), names.size());
                for (Engine.Entry entry : entries) {
                    that(names.contains(entry.name()), entry.name());
                    same(new String(entry.value(), StandardCharsets.UTF_8), "of " + entry.name());
                }
                same(engine.read("a").size(), 3);
                engine.unpersist("a/b");
                engine.unpersist("a/b");
                same(engine.read("a").size(), 2);
            }
        }
    }

    private static void closed(File directory, String[] none) {
        Engine engine = engine(directory);
        fails(RecoveryException.Kind.CLOSED, () -> engine.read(""));
        engine.open(false);
        engine.open(true);
        engine.persist("a", Engine.RAW, bytes("1"), 0, 1);
        engine.close();
        engine.close();
        for (Runnable call : List.<Runnable>of(() -> engine.persist("a", Engine.RAW, bytes("2"), 0, 1), () -> engine.unpersist("a"),
                () -> engine.read(""), engine::flush, engine::revive, engine::report, () -> engine.open(false))) {
            fails(RecoveryException.Kind.CLOSED, call);
        }
        // The number of a closed engine is never given to another: a late call cannot reach a stranger's store.
        try (Engine other = engine(directory)) {
            other.open(false);
            that(other.report().closedCleanly(), "not closed in good order");
            fails(RecoveryException.Kind.CLOSED, () -> engine.unpersist("a"));
            same(other.read("").size(), 1);
        }
    }

    private static void panic(File directory, String[] none) {
        NativeLibrary.load();
        for (int time = 0; time < 3; time++) {
            fails(RecoveryException.Kind.INTERNAL, NativeLibrary::panicOnPurpose);
        }
        try (Engine engine = engine(directory)) {
            engine.open(false);
            engine.persist("a", Engine.RAW, bytes("1"), 0, 1);
            fails(RecoveryException.Kind.INTERNAL, () -> engine.persist("a", Engine.RAW, bytes("1"), 0, 2));
            fails(RecoveryException.Kind.INTERNAL, () -> engine.persist("a", Engine.RAW, bytes("1"), -1, 1));
            fails(RecoveryException.Kind.INTERNAL, () -> engine.persist("a", Engine.RAW, bytes("1"), 1, Integer.MAX_VALUE));
            fails(RecoveryException.Kind.INTERNAL, () -> engine.persist("a", -1, bytes("1"), 0, 1));
            same(new String(engine.read("a").get(0).value(), StandardCharsets.UTF_8), "1");
        }
    }

    private static void remaining(File directory, String[] none) {
        try (Engine engine = engine(directory)) {
            engine.open(false);
            ByteBuffer longer = ByteBuffer.wrap(bytes("xxdataxx"), 2, 4);
            engine.persist("part", Engine.RAW, longer);
            engine.persist("slice", Engine.RAW, longer.slice());
            ByteBuffer direct = ByteBuffer.allocateDirect(10).put(bytes("xxdataxx")).position(2).limit(6);
            engine.persist("direct", Engine.RAW, direct);
            same(longer.remaining(), 4);
            same(direct.remaining(), 4);
            for (Engine.Entry entry : engine.read("")) {
                same(new String(entry.value(), StandardCharsets.UTF_8), "data");
            }
            same(engine.read("").size(), 3);
        }
    }

    private static void blocks(File directory, String[] none) {
        try (Engine engine = engine(directory, "sync", "none")) {
            engine.open(false);
            byte[] large = new byte[5 << 20];
            for (int at = 0; at < 10; at++) {
                Arrays.fill(large, (byte) at);
                engine.persist("large_" + at, Engine.KRYO, large, 0, large.length);
            }
            byte[] huge = new byte[40 << 20];
            engine.persist("huge", Engine.JAVA, huge, 0, huge.length);
            List<Engine.Entry> entries = engine.read("");
            same(entries.size(), 11);
            same(entries.get(0).name(), "huge");
            same(entries.get(0).codec(), Engine.JAVA);
            same(entries.get(0).value().length, huge.length);
            for (int at = 0; at < 10; at++) {
                Arrays.fill(large, (byte) at);
                same(entries.get(at + 1).codec(), Engine.KRYO);
                that(Arrays.equals(entries.get(at + 1).value(), large), "large_" + at);
            }
        }
    }

    private static void standby(File directory, String[] none) throws Exception {
        Engine first = engine(directory);
        first.open(false);
        Engine second = engine(directory);
        fails(RecoveryException.Kind.LOCKED, () -> second.open(false));
        AtomicReference<RuntimeException> failure = new AtomicReference<>();
        Thread waiting = new Thread(() -> {
            try {
                second.open(true);
            } catch (RuntimeException error) {
                failure.set(error);
            }
        });
        waiting.start();
        waiting.join(300);
        that(waiting.isAlive(), "it does not wait");
        first.persist("a", Engine.RAW, bytes("1"), 0, 1);
        first.close();
        waiting.join(20_000);
        that(!waiting.isAlive() && failure.get() == null, "it did not take over: " + failure.get());
        same(second.read("").size(), 1);

        Engine third = engine(directory);
        Thread cancelled = new Thread(() -> fails(RecoveryException.Kind.CLOSED, () -> third.open(true)));
        cancelled.setUncaughtExceptionHandler((thread, error) -> failure.set(new RuntimeException(error)));
        cancelled.start();
        cancelled.join(300);
        that(cancelled.isAlive(), "it does not wait");
        third.close();
        cancelled.join(20_000);
        that(!cancelled.isAlive() && failure.get() == null, "closing did not end the wait: " + failure.get());
        second.close();
    }

    private static void threads(File directory, String[] none) throws Exception {
        try (Engine engine = engine(directory)) {
            engine.open(false);
            List<Thread> threads = new ArrayList<>();
            AtomicInteger refused = new AtomicInteger();
            CountDownLatch half = new CountDownLatch(8);
            for (int number = 0; number < 8; number++) {
                String mine = "thread_" + number + "_";
                threads.add(new Thread(() -> {
                    try {
                        for (int at = 0; ; at++) {
                            engine.persist(mine + at, Engine.RAW, bytes(mine + at), 0, mine.length() + 1);
                            if (at == 20) {
                                half.countDown();
                            }
                        }
                    } catch (RecoveryException failure) {
                        same(failure.kind(), RecoveryException.Kind.CLOSED);
                        refused.incrementAndGet();
                    }
                }));
            }
            threads.forEach(Thread::start);
            that(half.await(60, TimeUnit.SECONDS), "the threads do not get on");
            // Closed under eight callers: each gets an exception, none a fault.
            engine.close();
            for (Thread thread : threads) {
                thread.join(20_000);
            }
            same(refused.get(), 8);
        }
        try (Engine engine = engine(directory)) {
            engine.open(false);
            that(engine.read("thread_").size() >= 8 * 21, "acknowledged entries are gone");
            that(engine.report().closedCleanly(), "not closed in good order");
        }
    }

    private static void settings(File directory, String[] none) {
        fails(RecoveryException.Kind.CONFIG, () -> engine(directory, "sync", "sometimes"));
        fails(RecoveryException.Kind.CONFIG, () -> engine(directory, "nonsense", "1"));
        Engine nowhere = new Engine(Map.of("spark.quickpickle.recovery.engine", "log"));
        fails(RecoveryException.Kind.CONFIG, () -> nowhere.open(false));
        Settings plain = new Settings(new SparkConf(false));
        same(plain.codec, Engine.JAVA);
        same(plain.onFailure, Settings.OnFailure.HALT);
        same(plain.onUnreadable, Settings.OnUnreadable.HALT);
        SparkConf conf = conf(directory, "serializer", "Kryo", "onFailure", "Retry", "onUnreadable", "skip");
        conf.set("spark.executor.memory", "1g").set("spark.deploy.spreadOut", "false");
        Settings chosen = new Settings(conf);
        same(chosen.codec, Engine.KRYO);
        same(chosen.onFailure, Settings.OnFailure.RETRY);
        same(chosen.onUnreadable, Settings.OnUnreadable.SKIP);
        that(!chosen.engine.containsKey("spark.executor.memory") && !chosen.engine.containsKey("spark.deploy.spreadOut"), "not ours");
        new Engine(chosen.engine).close();
        same(new Settings(new SparkConf(false).set("spark.deploy.recoverySerializer", "kryo")).codec, Engine.KRYO);
        for (String key : List.of("serializer", "onFailure", "onUnreadable")) {
            fails(RecoveryException.Kind.CONFIG, () -> new Settings(conf(directory, key, "other")));
        }
        that(!new File(directory, "LOCK").exists(), "reading settings touched the disk");
    }

    private static SparkConf conf(File directory, String... more) {
        SparkConf conf = new SparkConf(false).set("spark.deploy.recoveryMode", "CUSTOM")
                .set("spark.deploy.recoveryMode.factory", QuickpickleRecoveryModeFactory.class.getName())
                .set("spark.deploy.recoveryDirectory", directory.getPath());
        for (int at = 0; at < more.length; at += 2) {
            conf.set("spark.quickpickle.recovery." + more[at], more[at + 1]);
        }
        return conf;
    }

    private static PersistenceEngine persistence(SparkConf conf) {
        return new QuickpickleRecoveryModeFactory(conf, new JavaSerializer(conf)).createPersistenceEngine();
    }

    /** What a master reads back works: transient state is there, and endpoint references are of the environment that reads. */
    private static void records(File directory, String[] none) {
        for (String serializer : List.of("java", "kryo")) {
            SparkConf conf = conf(new File(directory, serializer), "serializer", serializer);
            try (Records records = new Records()) {
                PersistenceEngine engine = persistence(conf);
                same(engine.readPersistedData(records.environment)._1().size(), 0);
                engine.addWorker(records.worker(1));
                engine.addWorker(records.worker(2));
                engine.addApplication(records.application(1));
                engine.addDriver(records.driver(1));
                // One record twice: the last one counts, and Kryo's references of the first do not reach into the second.
                engine.addWorker(records.worker(1));
                engine.close();
            }
            try (Records records = new Records()) {
                PersistenceEngine engine = persistence(conf);
                Tuple3<Seq<ApplicationInfo>, Seq<DriverInfo>, Seq<WorkerInfo>> read = engine.readPersistedData(records.environment);
                same(read._1().size(), 1);
                same(read._2().size(), 1);
                same(read._3().size(), 2);
                WorkerInfo worker = read._3().head();
                WorkerInfo wanted = records.worker(1);
                same(worker.id(), wanted.id());
                same(worker.host(), wanted.host());
                same(worker.cores(), 8);
                same(worker.memory(), 16384);
                same(worker.webUiAddress(), wanted.webUiAddress());
                same(worker.resources().apply("gpu").addresses(), wanted.resources().apply("gpu").addresses());
                same(worker.coresFree(), 8);
                same(worker.state().toString(), "ALIVE");
                same(worker.executors().size(), 0);
                same(worker.drivers().size(), 0);
                same(worker.endpoint().name(), "endpoint");
                that(worker.endpoint().address() != null, "the endpoint has no address");
                ApplicationInfo application = read._1().head();
                ApplicationInfo original = records.application(1);
                same(application.id(), original.id());
                same(application.submitDate(), original.submitDate());
                same(application.desc().name(), original.desc().name());
                same(application.desc().command(), original.desc().command());
                same(application.desc().eventLogDir(), original.desc().eventLogDir());
                same(application.desc().user(), original.desc().user());
                same(application.state().toString(), "WAITING");
                same(application.executors().size(), 0);
                same(application.getRequestedRPIds().size(), original.getRequestedRPIds().size());
                same(application.coresLeft(), original.coresLeft());
                same(application.getResourceProfileById(0).executorResources(), original.getResourceProfileById(0).executorResources());
                same(application.driver().name(), "endpoint");
                DriverInfo driver = read._2().head();
                same(driver.id(), records.driver(1).id());
                same(driver.desc(), records.driver(1).desc());
                same(driver.state().toString(), "SUBMITTED");
                same(driver.resources().size(), 0);
                engine.removeWorker(worker);
                engine.removeWorker(worker);
                same(engine.readPersistedData(records.environment)._3().size(), 1);
                engine.close();
            }
        }
    }

    /** Records keep the serialiser that wrote them, whatever the settings say later. */
    private static void serialisers(File directory, String[] none) {
        try (Records records = new Records()) {
            String[] order = {"java", "kryo", "java"};
            for (int at = 0; at < order.length; at++) {
                PersistenceEngine engine = persistence(conf(directory, "serializer", order[at]));
                same(engine.readPersistedData(records.environment)._3().size(), at);
                engine.addWorker(records.worker(at + 1));
                engine.close();
            }
            PersistenceEngine engine = persistence(conf(directory, "serializer", "kryo", "compression", "lz4"));
            int number = 1;
            for (WorkerInfo worker : CollectionConverters.asJava(engine.readPersistedData(records.environment)._3())) {
                same(worker.id(), records.worker(number++).id());
                same(worker.coresFree(), 8);
            }
            same(number, 4);
            engine.close();
        }
        try (Engine engine = engine(directory)) {
            engine.open(false);
            same(engine.read("").stream().map(Engine.Entry::codec).toList(), List.of(Engine.JAVA, Engine.KRYO, Engine.JAVA));
        }
    }

    /** What is stored as Java serialisation is what Spark's own serialiser writes, record after record, and after a failure too. */
    private static void sameBytes(File directory, String[] none) {
        SerializerInstance spark = new JavaSerializer(new SparkConf(false)).newInstance();
        JavaCodec codec = new JavaCodec();
        try (Records records = new Records()) {
            Object[] all = {records.worker(1), records.worker(2), records.application(1), records.driver(1), "text", "x".repeat(100_000)};
            for (int time = 0; time < 3; time++) {
                for (Object record : all) {
                    same(codec.encode(record), spark.serialize(record, ClassTag$.MODULE$.<Object>apply(Object.class)));
                    fails(RecoveryException.Kind.CODEC, () -> codec.encode(List.of(record, new Object())));
                    same(codec.encode(record), spark.serialize(record, ClassTag$.MODULE$.<Object>apply(Object.class)));
                }
            }
        }
    }

    /** A class that no master's record has. */
    public static final class Foreign implements java.io.Serializable {
        private static final long serialVersionUID = 1L;
        static boolean made;

        private void readObject(java.io.ObjectInputStream in) {
            made = true;
        }
    }

    /** Whoever can write to the store cannot have any class deserialised. */
    private static void foreign(File directory, String[] none) {
        JavaCodec codec = new JavaCodec();
        for (Object object : new Object[] {new Foreign(), new Object[] {"a", new Foreign()}}) {
            ByteBuffer encoded = codec.encode(object);
            byte[] value = Arrays.copyOfRange(encoded.array(), encoded.position(), encoded.limit());
            fails(RecoveryException.Kind.CODEC, () -> codec.decode(value));
        }
        that(!Foreign.made, "it ran code of a class that is none of a master's");
        int[] numbers = {1, 2};
        ByteBuffer encoded = codec.encode(numbers);
        Object read = codec.decode(Arrays.copyOfRange(encoded.array(), encoded.position(), encoded.limit()));
        that(Arrays.equals(numbers, (int[]) read), "an array of numbers is fine");
        // One stream reads all values: a bad one must not reach into the next.
        encoded = codec.encode(List.of("a", "b", "a"));
        byte[] good = Arrays.copyOfRange(encoded.array(), encoded.position(), encoded.limit());
        for (int length = 0; length < good.length; length++) {
            byte[] shorter = Arrays.copyOf(good, length);
            fails(RecoveryException.Kind.CODEC, () -> codec.decode(shorter));
            same(codec.decode(good), List.of("a", "b", "a"));
        }
        fails(RecoveryException.Kind.CODEC, () -> codec.decode(Arrays.copyOf(good, good.length + 1)));
        same(codec.decode(good), List.of("a", "b", "a"));
        that(codec.decode(good) != codec.decode(good), "two values share an object");

        KryoCodec kryo = new KryoCodec();
        for (Object object : new Object[] {new Foreign(), new Object[] {"a", new Foreign()}, new Foreign[] {new Foreign()}, Foreign.class}) {
            ByteBuffer written = kryo.encode(object);
            byte[] value = Arrays.copyOfRange(written.array(), written.position(), written.limit());
            fails(RecoveryException.Kind.CODEC, () -> kryo.decode(value));
        }
    }

    /** Kryo's bytes of another Spark are refused, not misread. */
    private static void versions(File directory, String[] none) {
        ByteBuffer encoded = new KryoCodec("4.0.0").encode("text");
        byte[] value = Arrays.copyOfRange(encoded.array(), encoded.position(), encoded.limit());
        same(new KryoCodec("4.0.0").decode(value), "text");
        try {
            new KryoCodec().decode(value);
            throw new AssertionError("another Spark's record was read");
        } catch (RecoveryException failure) {
            same(failure.kind(), RecoveryException.Kind.CODEC);
            that(failure.getMessage().contains("Spark 4.0.0 wrote it"), failure.getMessage());
        }
        KryoCodec codec = new KryoCodec();
        encoded = codec.encode("text");
        byte[] good = Arrays.copyOfRange(encoded.array(), encoded.position(), encoded.limit());
        for (int length = 0; length < good.length; length++) {
            byte[] shorter = Arrays.copyOf(good, length);
            fails(RecoveryException.Kind.CODEC, () -> codec.decode(shorter));
        }
        fails(RecoveryException.Kind.CODEC, () -> codec.decode(bytes("QK\1\177something else entirely")));
        same(codec.decode(good), "text");
    }

    private static void unreadableRecord(File directory) {
        try (Engine engine = engine(directory)) {
            engine.open(false);
            engine.persist("worker_bad", Engine.JAVA, ByteBuffer.wrap(bytes("no Java serialisation")));
            engine.persist("worker_pickled", Engine.PICKLE, ByteBuffer.wrap(bytes("N.")));
        }
    }

    private static void skip(File directory, String[] none) {
        unreadableRecord(directory);
        try (Records records = new Records()) {
            SparkConf conf = conf(directory, "onUnreadable", "skip");
            PersistenceEngine engine = persistence(conf);
            engine.addWorker(records.worker(1));
            engine.persist("worker_text", "not a worker");
            same(engine.readPersistedData(records.environment)._3().size(), 1);
            engine.close();
        }
        try (Engine engine = engine(directory)) {
            engine.open(false);
            same(engine.read("").size(), 4);
        }
    }

    /** On SIGTERM the store is closed while the master goes on for a moment: what it asks then gets no answer. */
    private static void afterClose(File directory, String[] none) throws Exception {
        PersistenceEngine engine = persistence(conf(directory));
        engine.persist("worker_1", "one");
        engine.close();
        AtomicReference<Throwable> outcome = new AtomicReference<>();
        Thread late = new Thread(() -> {
            try {
                engine.persist("worker_2", "two");
                outcome.set(new AssertionError("it answered"));
            } catch (Throwable failure) {
                outcome.set(failure);
            }
        });
        late.setDaemon(true);
        late.start();
        late.join(1_000);
        that(late.isAlive() && outcome.get() == null, "outcome: " + outcome.get());
    }

    /** The second of two masters is elected when the first has gone, and stop() ends a wait. */
    private static void election(File directory, String[] none) throws Exception {
        List<String> events = java.util.Collections.synchronizedList(new ArrayList<>());
        QuickpickleRecoveryModeFactory first = new QuickpickleRecoveryModeFactory(conf(directory), null);
        PersistenceEngine firstEngine = first.createPersistenceEngine();
        LeaderElectable firstMaster = master("first", events);
        LeaderElectionAgent firstAgent = first.createLeaderElectionAgent(firstMaster);
        that(firstAgent.masterInstance() == firstMaster, "another master");
        until(() -> events.contains("first elected"));
        firstEngine.persist("worker_1", "one");
        QuickpickleRecoveryModeFactory second = new QuickpickleRecoveryModeFactory(conf(directory), null);
        PersistenceEngine secondEngine = second.createPersistenceEngine();
        second.createLeaderElectionAgent(master("second", events));
        LeaderElectionAgent third =
                new QuickpickleRecoveryModeFactory(conf(directory), null).createLeaderElectionAgent(master("third", events));
        Thread.sleep(500);
        same(events, List.of("first elected"));
        third.stop();
        firstEngine.close();
        firstAgent.stop();
        until(() -> events.contains("second elected"));
        same(secondEngine.read("worker_", ClassTag$.MODULE$.<String>apply(String.class)).head(), "one");
        same(events, List.of("first elected", "second elected"));
    }

    private static LeaderElectable master(String name, List<String> events) {
        return new LeaderElectable() {
            @Override
            public void electedLeader() {
                events.add(name + " elected");
            }

            @Override
            public void revokedLeadership() {
                events.add(name + " revoked");
            }
        };
    }

    private static void until(java.util.function.BooleanSupplier done) throws InterruptedException {
        for (int time = 0; time < 600; time++) {
            if (done.getAsBoolean()) {
                return;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("not within 30 s");
    }

    private static void exitOnUnreadable(File directory, String[] none) {
        unreadableRecord(directory);
        try (Records records = new Records()) {
            persistence(conf(directory)).readPersistedData(records.environment);
        }
        throw new AssertionError("it went on");
    }

    private static void exitOnOtherClass(File directory, String[] none) {
        try (Records records = new Records()) {
            PersistenceEngine engine = persistence(conf(directory));
            engine.persist("worker_1", "text");
            engine.readPersistedData(records.environment);
        }
        throw new AssertionError("it went on");
    }

    private static void exitOnUnserialisable(File directory, String[] none) {
        persistence(conf(directory)).persist("worker_1", new Object());
        throw new AssertionError("it went on");
    }

    private static void exitOnSettings(File directory, String[] none) {
        new QuickpickleRecoveryModeFactory(conf(directory, "onFailure", "ignore"), null);
        throw new AssertionError("it went on");
    }

    private static Engine described(String[] properties) {
        Map<String, String> settings = new LinkedHashMap<>();
        for (String property : properties) {
            settings.put(property.substring(0, property.indexOf('=')), property.substring(property.indexOf('=') + 1));
        }
        Engine engine = new Engine(settings);
        engine.open(true);
        return engine;
    }

    /** A tool: the entries of the store that the properties describe. */
    private static void list(File directory, String[] properties) {
        try (Engine engine = described(properties)) {
            System.out.println("store " + engine.kind() + " closed " + engine.report().closedCleanly());
            for (Engine.Entry entry : engine.read("")) {
                System.out.println("entry " + entry.codec() + " " + entry.value().length + " " + entry.name());
            }
        }
    }

    /** A tool: stores some zeros, as many as the first argument says. */
    private static void pad(File directory, String[] arguments) {
        try (Engine engine = described(Arrays.copyOfRange(arguments, 1, arguments.length))) {
            engine.persist("padding", Engine.RAW, ByteBuffer.allocate(Integer.parseInt(arguments[0])));
        }
    }
}
