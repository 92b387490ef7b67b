package io.quickpickle.recovery;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * The properties of a master that concern recovery: which go to the native engine, and the choices that are made on this side.
 *
 * <p>Wrong values are {@link RecoveryException.Kind#CONFIG}, never a default. The keys are in {@code docs/recovery-spark.md}.
 */
final class Settings {
    private static final String OWN = "spark.quickpickle.recovery.";
    private static final String[] PREFIXES = {OWN, "spark.deploy.recovery", "spark.deploy.zookeeper."};

    /** What a master does when a write fails. */
    enum OnFailure {
        /** Ends the process, for a supervisor or a standby to take over. */
        HALT,
        /** Tries again until it succeeds, says so each time, and does nothing else meanwhile. */
        RETRY
    }

    /** What a master does with a stored record it cannot read. */
    enum OnUnreadable {
        /** Ends the process before it works with half of its state. */
        HALT,
        /** Says so and goes on without it. The record stays in the store. */
        SKIP
    }

    final Map<String, String> engine = new LinkedHashMap<>();
    final OnFailure onFailure;
    final OnUnreadable onUnreadable;
    /** {@link Engine#JAVA} or {@link Engine#KRYO}. */
    final int codec;

    Settings(SparkConf conf) {
        for (Tuple2<String, String> property : conf.getAll()) {
            for (String prefix : PREFIXES) {
                if (property._1().startsWith(prefix)) {
                    engine.put(property._1(), property._2());
                    break;
                }
            }
        }
        onFailure = choice(OnFailure.class, conf, OWN + "onFailure", OnFailure.HALT);
        onUnreadable = choice(OnUnreadable.class, conf, OWN + "onUnreadable", OnUnreadable.HALT);
        String key = conf.contains(OWN + "serializer") ? OWN + "serializer" : "spark.deploy.recoverySerializer";
        codec = switch (conf.get(key, "java").trim().toLowerCase(Locale.ROOT)) {
            case "java" -> Engine.JAVA;
            case "kryo" -> Engine.KRYO;
            default -> throw wrong(key, conf.get(key), "java or kryo");
        };
    }

    private static <E extends Enum<E>> E choice(Class<E> type, SparkConf conf, String key, E otherwise) {
        String value = conf.get(key, otherwise.name()).trim();
        for (E choice : type.getEnumConstants()) {
            if (choice.name().equalsIgnoreCase(value)) {
                return choice;
            }
        }
        StringBuilder wanted = new StringBuilder();
        for (E choice : type.getEnumConstants()) {
            wanted.append(wanted.isEmpty() ? "" : " or ").append(choice.name().toLowerCase(Locale.ROOT));
        }
        throw wrong(key, value, wanted.toString());
    }

    private static RecoveryException wrong(String key, String value, String wanted) {
        return new RecoveryException(RecoveryException.Kind.CONFIG, key, key + ": \"" + value + "\" is not a choice; use " + wanted, null);
    }
}
