package io.quickpickle.recovery;

import java.nio.ByteBuffer;

/** Turns a master's records into bytes and back. One thread at a time; both directions fail with {@link RecoveryException.Kind#CODEC}. */
interface RecordCodec {
    /** The number stored with each value. */
    int number();

    /** The record's bytes, valid until the next call. */
    ByteBuffer encode(Object record);

    /** The record. Must run on the thread that asked to read: endpoint references find their environment through it. */
    Object decode(byte[] value);

    /** A failure of either direction. */
    static RecoveryException failure(String message, Throwable cause) {
        String why = cause == null ? "" : ": " + cause;
        return new RecoveryException(RecoveryException.Kind.CODEC, "", message + why, cause);
    }
}
