package io.quickpickle.recovery;

import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.ApplicationDescription;
import org.apache.spark.deploy.Command;
import org.apache.spark.deploy.DriverDescription;
import org.apache.spark.deploy.master.ApplicationInfo;
import org.apache.spark.deploy.master.DriverInfo;
import org.apache.spark.deploy.master.WorkerInfo;
import org.apache.spark.deploy.master.WorkerResourceInfo;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.resource.ResourceProfile$;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Records such as a master keeps, made by Spark's own classes, with a real endpoint in a real RPC environment. */
final class Records implements AutoCloseable {
    final RpcEnv environment;
    final RpcEndpointRef endpoint;

    Records() {
        SparkConf conf = new SparkConf(false);
        SecurityManager security =
                new SecurityManager(conf, Option.empty(), org.apache.spark.internal.config.package$.MODULE$.AUTH_SECRET_FILE());
        environment = RpcEnv.create("checks", "127.0.0.1", 0, conf, security, false);
        endpoint = environment.setupEndpoint("endpoint", new Silent(environment));
    }

    @Override
    public void close() {
        environment.shutdown();
        environment.awaitTermination();
    }

    private record Silent(RpcEnv rpcEnv) implements RpcEndpoint {}

    WorkerInfo worker(int number) {
        Map<String, WorkerResourceInfo> resources = new HashMap<>();
        resources.put("gpu", new WorkerResourceInfo("gpu", seq("0", "1")));
        return new WorkerInfo("worker-2026-127.0.0.1-" + number, "127.0.0.1", number, 8, 16384, endpoint, "http://127.0.0.1:8081",
                map(resources));
    }

    ApplicationInfo application(int number) {
        ResourceProfile profile = ResourceProfile$.MODULE$.getOrCreateDefaultProfile(new SparkConf(false));
        ApplicationDescription description = new ApplicationDescription("sum of squares", Option.apply(4), command(), "http://127.0.0.1:4040",
                profile, Option.apply(java.net.URI.create("file:///tmp/events")), Option.apply("zstd"), Option.empty(), "somebody");
        return new ApplicationInfo(1_700_000_000_000L, "app-2026-" + number, description, new Date(1_700_000_000_000L), endpoint, 4);
    }

    DriverInfo driver(int number) {
        DriverDescription description = new DriverDescription("http://127.0.0.1/job.jar", 1024, 1, true, command(),
                CollectionConverters.asScala(java.util.List.<org.apache.spark.resource.ResourceRequirement>of()).toSeq());
        return new DriverInfo(1_700_000_000_000L, "driver-2026-" + number, description, new Date(1_700_000_000_000L));
    }

    private static Command command() {
        Map<String, String> environment = new HashMap<>();
        environment.put("SPARK_USER", "somebody");
        return new Command("org.apache.spark.executor.CoarseGrainedExecutorBackend", seq("--app-id", "{{APP_ID}}"), map(environment),
                seq("/a.jar"), seq("/lib"), seq("-Dspark.driver.port=1"));
    }

    @SafeVarargs
    private static <T> Seq<T> seq(T... items) {
        return CollectionConverters.asScala(java.util.List.of(items)).toSeq();
    }

    private static <K, V> scala.collection.immutable.Map<K, V> map(Map<K, V> entries) {
        return Map$.MODULE$.from(CollectionConverters.asScala(entries));
    }
}
