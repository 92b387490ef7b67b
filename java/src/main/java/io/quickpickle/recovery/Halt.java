package io.quickpickle.recovery;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends the master where going on would lose data silently.
 *
 * <p>An exception would not do: Spark logs it as ignored and carries on without durability. Shutdown hooks are not run, because some of
 * them wait for the thread that is here.
 */
final class Halt {
    private static final Logger LOG = LoggerFactory.getLogger(Halt.class);

    /** Exit codes, after those of {@code sysexits.h} that come nearest. */
    static final int UNREADABLE = 65;

    static final int STORE = 74;
    static final int FENCED = 75;
    static final int SETTINGS = 78;

    private Halt() {}

    /** Says why, on the log and on standard error, and ends the process; does not return. */
    static Error now(int code, String message, Throwable cause) {
        try {
            LOG.error("{}; the master stops (exit code {})", message, code, cause);
            System.err.println("quickpickle recovery: " + message + (cause == null ? "" : ": " + cause.getMessage())
                    + "; the master stops (exit code " + code + ")");
            System.err.flush();
        } finally {
            Runtime.getRuntime().halt(code);
        }
        throw new AssertionError("halt returned");
    }

    /** The code for a failure of the store. */
    static int codeFor(RecoveryException failure) {
        return switch (failure.kind()) {
            case CONFIG -> SETTINGS;
            case FENCED -> FENCED;
            case CORRUPT, VERSION, CODEC -> UNREADABLE;
            default -> STORE;
        };
    }
}
