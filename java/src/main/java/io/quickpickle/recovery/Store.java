package io.quickpickle.recovery;

import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The engine as a master needs it: opened once, by whoever comes first, and never failing towards the caller.
 *
 * <p>A write returns when it is stored. If it cannot be, the policy says whether the process ends or the call keeps trying; it neither
 * throws nor returns. What another try cannot cure ends the process under either policy.
 */
final class Store {
    private static final Logger LOG = LoggerFactory.getLogger(Store.class);
    private static final long FIRST_PAUSE_MS = 500;
    private static final long LONGEST_PAUSE_MS = 10_000;

    private final Engine engine;
    private final Settings settings;
    private final Object opening = new Object();
    private volatile boolean open;
    private volatile boolean closing;

    private interface Call<T> {
        T run();
    }

    Store(Settings settings) {
        this.settings = settings;
        engine = new Engine(settings.engine);
        // Spark does not close its engine on SIGTERM.
        Runtime.getRuntime().addShutdownHook(new Thread(this::close, "recovery-close"));
    }

    Settings settings() {
        return settings;
    }

    /** Kind and place, for messages. */
    String name() {
        return engine.place().isEmpty() ? engine.kind() : engine.kind() + " at " + engine.place();
    }

    boolean isZooKeeper() {
        return engine.kind().equals("zookeeper");
    }

    /** Opens the store, once, after standing by for its lock; {@code false} if it was closed meanwhile. */
    boolean open() {
        if (open) {
            return true;
        }
        synchronized (opening) {
            if (open) {
                return true;
            }
            LOG.info("Opening {} (sync {}, on failure {})", name(), engine.sync(), settings.onFailure);
            Engine.Report report = untilDone("open", () -> {
                openOrStandBy();
                return engine.report();
            });
            if (report == null) {
                return false;
            }
            tell(report);
            open = true;
            return true;
        }
    }

    private void openOrStandBy() {
        try {
            engine.open(false);
        } catch (RecoveryException failure) {
            if (failure.kind() != RecoveryException.Kind.LOCKED) {
                throw failure;
            }
            LOG.info("Standing by: another master holds {}", name());
            engine.open(true);
            LOG.info("Took over {}", name());
        }
    }

    private void tell(Engine.Report report) {
        LOG.info("{} is open with {} entries, {} by its last owner", name(), report.entries(),
                report.closedCleanly() ? "closed in good order" : "left");
        if (report.tornTailBytes() > 0) {
            LOG.warn("{}: an incomplete last write of {} bytes was dropped; it was never acknowledged", name(), report.tornTailBytes());
        }
        if (report.damaged() > 0 || report.missing() > 0) {
            LOG.error("{} is damaged: {} stretches put aside, {} records missing", name(), report.damaged(), report.missing());
        }
        report.lines().forEach(line -> LOG.warn("{}: {}", name(), line));
    }

    /** Stores a value. Returns when that is as durable as the settings ask for. */
    void persist(String name, int codec, byte[] value, int offset, int length) {
        write("store " + name, () -> {
            engine.persist(name, codec, value, offset, length);
            return true;
        });
    }

    /** Removes a value. */
    void unpersist(String name) {
        write("remove " + name, () -> {
            engine.unpersist(name);
            return true;
        });
    }

    private void write(String what, Call<Boolean> call) {
        if (!open()) {
            never();
        }
        if (untilDone(what, call) == null) {
            never();
        }
    }

    List<Engine.Entry> read(String prefix) {
        if (!open()) {
            never();
        }
        List<Engine.Entry> entries = untilDone("read " + prefix, () -> engine.read(prefix));
        if (entries == null) {
            never();
        }
        return entries;
    }

    /** Whether this process is still the writer; an outage does not change that, being overtaken does. */
    boolean isStillOurs() {
        try {
            engine.flush();
            return true;
        } catch (RecoveryException failure) {
            switch (failure.kind()) {
                case FENCED:
                    LOG.error("{}", failure.getMessage());
                    return false;
                case CLOSED:
                    return true;
                default:
                    LOG.warn("Cannot see whether {} is still ours: {}", name(), failure.getMessage());
                    return true;
            }
        }
    }

    /** Gives the store back. A write that comes later neither returns nor counts as failed: the process is about to end. */
    void close() {
        closing = true;
        try {
            engine.close();
        } catch (RecoveryException failure) {
            LOG.error("{} was not closed in good order: {}", name(), failure.getMessage());
        }
    }

    /** Runs the call until it succeeds or the process ends; {@code null} once the store is closed. */
    private <T> T untilDone(String what, Call<T> call) {
        long pause = FIRST_PAUSE_MS;
        for (int attempt = 1; ; attempt++) {
            try {
                T result = call.run();
                if (attempt > 1) {
                    LOG.warn("Could {} with attempt {}: {} works again", what, attempt, name());
                }
                return result;
            } catch (RecoveryException failure) {
                if (closing) {
                    LOG.warn("Did not {}: {} is closed", what, name());
                    return null;
                }
                if (settings.onFailure == Settings.OnFailure.HALT || !mayPass(failure)) {
                    throw Halt.now(Halt.codeFor(failure), "Cannot " + what, failure);
                }
                LOG.error("Cannot {} (attempt {}); the master waits and tries again in {} ms: {}", what, attempt, pause,
                        failure.getMessage());
            } catch (Throwable failure) {
                throw Halt.now(Halt.STORE, "Cannot " + what, failure);
            }
            LockSupport.parkNanos(pause * 1_000_000);
            pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
            revive();
        }
    }

    /** A failed write has poisoned the engine; what is on disk stays, and writing goes on after it. */
    private void revive() {
        if (!open) {
            return;
        }
        try {
            engine.revive();
        } catch (RecoveryException failure) {
            LOG.error("{} cannot be written yet: {}", name(), failure.getMessage());
        }
    }

    /** Whether another try can end otherwise. */
    private static boolean mayPass(RecoveryException failure) {
        return switch (failure.kind()) {
            case IO, FULL, READ_ONLY, POISONED, UNAVAILABLE, LOCKED -> true;
            case CLOSED, CORRUPT, VERSION, TOO_LARGE, FENCED, CONFIG, CODEC, INTERNAL -> false;
        };
    }

    /** The process is ending and the store is closed: no answer is the only true one. */
    private static void never() {
        while (true) {
            LockSupport.park();
        }
    }
}
