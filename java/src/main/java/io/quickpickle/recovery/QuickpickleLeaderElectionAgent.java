package io.quickpickle.recovery;

import org.apache.spark.deploy.master.LeaderElectable;
import org.apache.spark.deploy.master.LeaderElectionAgent;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a master the leader when it holds the store's lock, however long that takes.
 *
 * <p>Waiting goes on a thread of its own: the master must answer that it is standing by. On ZooKeeper, where a lock can be lost to a pause
 * of this process, the same thread goes on to ask whether the store is still ours.
 */
final class QuickpickleLeaderElectionAgent implements LeaderElectionAgent {
    private static final Logger LOG = LoggerFactory.getLogger(QuickpickleLeaderElectionAgent.class);
    private static final long LOOK_MS = 2_000;

    private final LeaderElectable master;
    private final Store store;
    private final Thread thread;
    private volatile boolean stopped;

    QuickpickleLeaderElectionAgent(LeaderElectable master, Store store) {
        this.master = master;
        this.store = store;
        thread = new Thread(this::lead, "recovery-leader");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public LeaderElectable masterInstance() {
        return master;
    }

    /** Ends the wait for the lock, or gives it back. */
    @Override
    public void stop() {
        stopped = true;
        store.close();
        thread.interrupt();
    }

    private void lead() {
        try {
            if (!store.open()) {
                return;
            }
            LOG.info("This master leads: it holds {}", store.name());
            master.electedLeader();
            while (store.isZooKeeper() && !stopped) {
                Thread.sleep(LOOK_MS);
                if (!stopped && !store.isStillOurs()) {
                    revoked();
                }
            }
        } catch (InterruptedException stopping) {
            LOG.debug("Stopped", stopping);
        } catch (Throwable failure) {
            // A thread that ends quietly leaves a master that never leads.
            throw Halt.now(Halt.STORE, "Cannot lead", failure);
        }
    }

    private void revoked() {
        throw Halt.now(Halt.FENCED, "Another master took over " + store.name(), null);
    }
}
