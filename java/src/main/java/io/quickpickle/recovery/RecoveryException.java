package io.quickpickle.recovery;

/**
 * Why the store did not do what it was asked: a kind to act on, the place, and a sentence.
 *
 * <p>Kinds are those of the native library, by their short names; a name this class does not know becomes {@link Kind#INTERNAL}.
 */
public final class RecoveryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What sort of failure it is. */
    public enum Kind {
        /** The operating system refused to read, write or sync. */
        IO,
        /** The disk or quota is full. */
        FULL,
        /** The place cannot be written. */
        READ_ONLY,
        /** Another process holds the store. */
        LOCKED,
        /** An earlier write failed, and nothing is written until the engine is revived. */
        POISONED,
        /** The engine is closed, or not open yet. */
        CLOSED,
        /** Stored bytes are damaged. */
        CORRUPT,
        /** A newer release, or something else, wrote the store. */
        VERSION,
        /** A name or value is larger than the engine takes. */
        TOO_LARGE,
        /** Another master took the store over. */
        FENCED,
        /** ZooKeeper did not answer in time. */
        UNAVAILABLE,
        /** A setting is missing, unknown or wrong. */
        CONFIG,
        /** A value cannot be encoded or decoded. */
        CODEC,
        /** A fault of this library. */
        INTERNAL;

        static Kind named(String name) {
            for (Kind kind : values()) {
                if (kind.name().equalsIgnoreCase(name)) {
                    return kind;
                }
            }
            return INTERNAL;
        }
    }

    private final Kind kind;
    private final String place;

    /** Called from the native library. */
    RecoveryException(String kind, String place, String message) {
        this(Kind.named(kind), place, message, null);
    }

    RecoveryException(Kind kind, String place, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
        this.place = place;
    }

    /** What sort of failure it is. */
    public Kind kind() {
        return kind;
    }

    /** A path, a node or a setting; empty if there is no such place. */
    public String place() {
        return place;
    }
}
