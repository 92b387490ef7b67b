//! What a Spark standalone master must not forget, as Rust structs: the worked example of [`Record`], and the data of the benchmarks.
//!
//! The fields are those Spark's own classes keep; what a master works out anew after a restart (endpoints, running executors, free
//! cores) is not among them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::serializer::Record;
use crate::spark_wire::Packed;

/// Where an endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcEndpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Name of the endpoint there.
    pub name: String,
}

/// Addresses of one kind of resource, such as GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceInformation {
    /// Kind of resource.
    pub name: String,
    /// Its addresses on the machine.
    pub addresses: Vec<String>,
}

/// A worker that has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// Its id.
    pub id: String,
    /// Host it runs on.
    pub host: String,
    /// Port it listens on.
    pub port: u16,
    /// Cores it offers.
    pub cores: u32,
    /// Memory it offers, in MiB.
    pub memory: u64,
    /// Where its endpoint is.
    pub endpoint: RpcEndpoint,
    /// Address of its web pages.
    pub web_ui_address: String,
    /// Further resources it offers, by kind.
    pub resources: BTreeMap<String, ResourceInformation>,
}

/// How a worker is written where people may read it: by the names of its fields.
#[derive(Serialize, Deserialize)]
#[serde(remote = "WorkerInfo", rename = "WorkerInfo")]
struct Named {
    id: String,
    host: String,
    port: u16,
    cores: u32,
    memory: u64,
    endpoint: RpcEndpoint,
    web_ui_address: String,
    resources: BTreeMap<String, ResourceInformation>,
}

impl Serialize for WorkerInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            Named::serialize(self, serializer)
        } else {
            Packed::pack(self).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for WorkerInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            Named::deserialize(deserializer)
        } else {
            Packed::deserialize(deserializer).map(Packed::unpack)
        }
    }
}

/// How an executor or driver is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Class with the main method.
    pub main_class: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Entries of the class path.
    pub class_path_entries: Vec<String>,
    /// Entries of the library path.
    pub library_path_entries: Vec<String>,
    /// Options of the Java virtual machine.
    pub java_opts: Vec<String>,
}

/// An application that has registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationInfo {
    /// Its id.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub start_time: i64,
    /// When it was submitted, in milliseconds since 1970.
    pub submit_date: i64,
    /// Its name.
    pub name: String,
    /// User it runs for.
    pub user: String,
    /// Most cores it may have.
    pub max_cores: Option<u32>,
    /// How its executors are started.
    pub command: Command,
    /// Address of its web pages.
    pub app_ui_url: String,
    /// Memory of an executor, in MiB.
    pub memory_per_executor: u32,
    /// Cores of an executor.
    pub cores_per_executor: Option<u32>,
    /// Where its driver listens.
    pub driver: RpcEndpoint,
}

/// A driver that was submitted to run in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverInfo {
    /// Its id.
    pub id: String,
    /// When it was submitted, in milliseconds since 1970.
    pub submit_date: i64,
    /// When it began, in milliseconds since 1970.
    pub start_time: i64,
    /// The jar to run.
    pub jar_url: String,
    /// Memory it needs, in MiB.
    pub memory: u32,
    /// Cores it needs.
    pub cores: u32,
    /// Start it again if it fails.
    pub supervise: bool,
    /// How it is started.
    pub command: Command,
}

impl Record for WorkerInfo {
    const TYPE_ID: u32 = 1;
}

impl Record for ApplicationInfo {
    const TYPE_ID: u32 = 2;
}

impl Record for DriverInfo {
    const TYPE_ID: u32 = 3;
}

impl WorkerInfo {
    /// A worker like those of a real cluster; the same for the same number.
    #[must_use]
    pub fn example(number: u32) -> Self {
        let host = host(number);
        let port = 32_768 + (number % 20_000) as u16;
        Self {
            id: format!("worker-20260101{:06}-{host}-{port}", number % 240_000),
            endpoint: RpcEndpoint {
                host: host.clone(),
                port,
                name: "Worker".into(),
            },
            web_ui_address: format!("http://{host}:8081"),
            host,
            port,
            cores: 64,
            memory: 262_144,
            resources: BTreeMap::new(),
        }
    }
}

impl ApplicationInfo {
    /// An application like those of a real cluster; the same for the same number.
    #[must_use]
    pub fn example(number: u32) -> Self {
        let host = host(number);
        let start_time = 1_767_225_600_000 + i64::from(number);
        Self {
            id: format!("app-20260101{:06}-{:04}", number % 240_000, number % 10_000),
            start_time,
            submit_date: start_time,
            name: format!("nightly report {number}"),
            user: "reports".into(),
            max_cores: (!number.is_multiple_of(2)).then_some(128),
            command: Command::example(&host),
            app_ui_url: format!("http://{host}:4040"),
            memory_per_executor: 8192,
            cores_per_executor: Some(4),
            driver: RpcEndpoint {
                host,
                port: 40_000,
                name: "CoarseGrainedScheduler".into(),
            },
        }
    }
}

impl DriverInfo {
    /// A driver like those of a real cluster; the same for the same number.
    #[must_use]
    pub fn example(number: u32) -> Self {
        let submit_date = 1_767_225_600_000 + i64::from(number);
        Self {
            id: format!(
                "driver-20260101{:06}-{:04}",
                number % 240_000,
                number % 10_000
            ),
            submit_date,
            start_time: submit_date + 20,
            jar_url: format!("hdfs://namenode/jobs/report-{}.jar", number % 50),
            memory: 4096,
            cores: 2,
            supervise: number.is_multiple_of(3),
            command: Command::example(&host(number)),
        }
    }
}

impl Command {
    fn example(host: &str) -> Self {
        Self {
            main_class: "org.apache.spark.executor.CoarseGrainedExecutorBackend".into(),
            arguments: ["--driver-url", "{{DRIVER_URL}}", "--cores", "{{CORES}}"]
                .map(String::from)
                .into(),
            environment: BTreeMap::from([
                ("SPARK_LOCAL_IP".into(), host.into()),
                ("LANG".into(), "C.UTF-8".into()),
            ]),
            class_path_entries: Vec::new(),
            library_path_entries: Vec::new(),
            java_opts: vec!["-XX:+UseG1GC".into()],
        }
    }
}

fn host(number: u32) -> String {
    format!(
        "10.{}.{}.{}",
        number >> 16 & 255,
        number >> 8 & 255,
        number & 255
    )
}
