package io.quickpickle.recovery;

import org.apache.spark.SparkConf;
import org.apache.spark.deploy.master.LeaderElectable;
import org.apache.spark.deploy.master.LeaderElectionAgent;
import org.apache.spark.deploy.master.PersistenceEngine;
import org.apache.spark.deploy.master.StandaloneRecoveryModeFactory;
import org.apache.spark.serializer.Serializer;

/**
 * What {@code spark.deploy.recoveryMode.factory} names.
 *
 * <p>Reads the settings and touches nothing on disk. It never throws: a master whose factory throws stays up without ever leading.
 * Settings that cannot be meant end the process instead.
 */
public final class QuickpickleRecoveryModeFactory extends StandaloneRecoveryModeFactory {
    private final Store store;

    /** Spark makes factories by this constructor. The serialiser it gives is its Java one; which is used here is a setting. */
    public QuickpickleRecoveryModeFactory(SparkConf conf, Serializer serializer) {
        super(conf, serializer);
        try {
            store = new Store(new Settings(conf));
        } catch (RecoveryException failure) {
            throw Halt.now(Halt.codeFor(failure), "Cannot set up recovery", failure);
        } catch (Throwable failure) {
            throw Halt.now(Halt.SETTINGS, "Cannot set up recovery", failure);
        }
    }

    @Override
    public PersistenceEngine createPersistenceEngine() {
        try {
            return new QuickpicklePersistenceEngine(store);
        } catch (Throwable failure) {
            throw Halt.now(Halt.SETTINGS, "Cannot set up recovery", failure);
        }
    }

    @Override
    public LeaderElectionAgent createLeaderElectionAgent(LeaderElectable master) {
        try {
            return new QuickpickleLeaderElectionAgent(master, store);
        } catch (Throwable failure) {
            throw Halt.now(Halt.SETTINGS, "Cannot set up recovery", failure);
        }
    }
}
