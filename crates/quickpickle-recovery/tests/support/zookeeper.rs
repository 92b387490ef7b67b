//! A real ZooKeeper server on a loopback port, from Debian's package, ended with the test that started it however that ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const JAR: &str = "/usr/share/java/zookeeper.jar";
const LOGGER: &str = "/usr/share/java/slf4j-nop.jar";

/// A server of one; its data outlives its kills.
pub(crate) struct Server {
    directory: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts one, or says why not.
    pub(crate) fn start() -> Option<Self> {
        if !Path::new(JAR).exists() {
            super::skipped(&format!(
                "{JAR} is not there; install Debian's package zookeeper"
            ));
            return None;
        }
        if !Command::new("java")
            .arg("-version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            super::skipped("there is no java to run ZooKeeper with");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let settings = format!(
            "tickTime=200\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\nminSessionTimeout=400\nmaxSessionTimeout=60000\n",
            directory.path().join("data").display()
        );
        std::fs::write(directory.path().join("zoo.cfg"), settings).unwrap();
        let mut server = Self {
            directory,
            port,
            process: None,
        };
        server.restart();
        Some(server)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server on the data it left.
    pub(crate) fn restart(&mut self) {
        self.kill();
        // The shell kills the server with SIGKILL once its input ends: when we say so, or when this process is gone.
        let script = format!(
            "java -Xmx256m -cp {JAR}:{LOGGER} org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg >server.log 2>&1 & \
             echo $! >pid; cat >/dev/null; kill -9 $!; wait"
        );
        let mut process = Command::new("sh");
        process
            .args(["-c", &script])
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        self.process = Some(process.spawn().unwrap());
        let started = Instant::now();
        while !self.answers() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "no server after a minute: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address()) else {
            return false;
        };
        let mut answer = String::new();
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        stream.write_all(b"srvr").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.contains("Mode: standalone")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("server.log")).unwrap_or_default()
    }

    /// Ends the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            process.wait().unwrap();
        }
    }

    /// Sends the server a signal, `STOP` or `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        let status = Command::new("kill")
            .args([&format!("-{signal}"), pid.trim()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
