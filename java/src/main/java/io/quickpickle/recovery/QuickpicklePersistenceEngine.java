package io.quickpickle.recovery;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.deploy.master.PersistenceEngine;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * A master's state in a {@link Store}: records to bytes and back, one after the other, on the master's own thread.
 *
 * <p>Nothing here throws towards the master, which would log the exception and go on without its state.
 */
final class QuickpicklePersistenceEngine extends PersistenceEngine {
    private static final Logger LOG = LoggerFactory.getLogger(QuickpicklePersistenceEngine.class);

    private final Store store;
    private final RecordCodec javaCodec = new JavaCodec();
    private RecordCodec kryoCodec;
    private final RecordCodec writer;

    QuickpicklePersistenceEngine(Store store) {
        this.store = store;
        writer = store.settings().codec == Engine.KRYO ? kryo() : javaCodec;
    }

    /** Made when it is first needed: records of an earlier serialiser stay readable. */
    private RecordCodec kryo() {
        if (kryoCodec == null) {
            kryoCodec = new KryoCodec();
        }
        return kryoCodec;
    }

    @Override
    public synchronized void persist(String name, Object record) {
        ByteBuffer value;
        try {
            value = writer.encode(record);
        } catch (Throwable failure) {
            throw Halt.now(Halt.UNREADABLE, "Cannot encode " + name, failure);
        }
        // An array may be longer than its data, and the data begin anywhere in it.
        store.persist(name, writer.number(), value.array(), value.arrayOffset() + value.position(), value.remaining());
    }

    @Override
    public synchronized void unpersist(String name) {
        store.unpersist(name);
    }

    @Override
    public synchronized <T> Seq<T> read(String prefix, ClassTag<T> tag) {
        List<Engine.Entry> entries = store.read(prefix);
        List<Object> records = new ArrayList<>(entries.size());
        for (Engine.Entry entry : entries) {
            try {
                records.add(decode(entry, tag.runtimeClass()));
            } catch (Throwable failure) {
                unreadable(entry, failure);
            }
        }
        @SuppressWarnings("unchecked") // Each was checked against the tag.
        List<T> checked = (List<T>) records;
        return CollectionConverters.asScala(checked).toSeq();
    }

    private Object decode(Engine.Entry entry, Class<?> wanted) {
        Object record = switch (entry.codec()) {
            case Engine.JAVA -> javaCodec.decode(entry.value());
            case Engine.KRYO -> kryo().decode(entry.value());
            default -> throw RecordCodec.failure("codec " + entry.codec() + " is none of a Spark master's", null);
        };
        if (!wanted.isInstance(record)) {
            String found = record == null ? "null" : record.getClass().getName();
            throw RecordCodec.failure("a " + wanted.getName() + " was asked for, and it is a " + found, null);
        }
        return record;
    }

    private void unreadable(Engine.Entry entry, Throwable failure) {
        if (store.settings().onUnreadable == Settings.OnUnreadable.HALT) {
            throw Halt.now(Halt.UNREADABLE, "Cannot read the record " + entry.name() + " of " + store.name()
                    + "; to start without it, set spark.quickpickle.recovery.onUnreadable=skip", failure);
        }
        LOG.error("Going on without the record {} of {}, which stays in the store", entry.name(), store.name(), failure);
    }

    @Override
    public void close() {
        store.close();
    }
}
