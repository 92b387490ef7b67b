"""A small Spark cluster on loopback: real masters, workers and applications as processes that can be killed.

Everything a process says goes to a file, and everything it is asked comes from its own web page, as for any Spark
master. Processes end with the program that started them, however that ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FACTORY = "io.quickpickle.recovery.QuickpickleRecoveryModeFactory"
JAR = "quickpickle-spark-recovery.jar"
PR_SET_PDEATHSIG = 1
#: Seconds to wait for what takes a few: a machine may be busy with much else.
PATIENCE = 180.0


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(done: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What `done` answers once that is true; TimeoutError if it does not come to that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = done()
        if answer:
            return answer
        time.sleep(0.1)
    raise TimeoutError(f"not within {seconds:.0f} s: {what}")


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent goes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child process whose output goes to a file."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None = None) -> None:
        self.path = log
        self.start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as file:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def log(self) -> str:
        """What this process has said."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read().decode(errors="replace")

    def running(self) -> bool:
        """Whether it still runs."""
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        if self.running():
            self.popen.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.send(signal.SIGKILL)
        self.popen.wait()

    def terminate(self) -> int:
        """Ask it to end; its exit code."""
        self.send(signal.SIGTERM)
        try:
            return self.popen.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code, once it ends by itself."""
        return self.popen.wait(seconds)

    def says(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until its output has `text`; fails early if it ends before."""

        def look() -> bool:
            if text in self.log():
                return True
            if not self.running():
                raise AssertionError(f"{self.path.name} ended before it said {text!r}:\n{self.log()[-3000:]}")
            return False

        wait_until(look, f"{self.path.name} says {text!r}", seconds)


class Cluster:
    """Masters, workers and applications of one test; ends them all when left."""

    def __init__(self, python: Path, library: Path, directory: Path) -> None:
        self.python = python
        self.directory = directory
        self.processes: list[Process] = []
        code = "import pyspark; print(pyspark.__path__[0])"
        self.home = Path(subprocess.check_output([str(python), "-c", code], text=True).strip())
        self.jar = library / JAR
        if not self.jar.is_file():
            raise FileNotFoundError(f"{self.jar}: run `make spark-jar` first")
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))},
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
            "SPARK_LAUNCHER_OPTS": QUICK_START,
            "SPARK_CONF_DIR": str(directory / "conf"),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
        }
        (directory / "conf").mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.send(signal.SIGCONT)
            process.send(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def started(self, process: Process) -> Process:
        """Remember a process, to end it when the cluster is left."""
        self.processes.append(process)
        return process

    def classpath(self) -> str:
        """Spark's jars and ours, for a JVM of one's own."""
        return f"{self.jar}:{self.home / 'jars'}/*"

    def java(self, command: Sequence[str], options: Sequence[str] = ()) -> list[str]:
        """A command line with the options Spark gives its own JVMs."""
        opened = (f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)
        return ["java", *opened, QUICK_START, *options, *command]


#: These processes live for seconds: the quick compiler alone starts them sooner.
QUICK_START = "-XX:TieredStopAtLevel=1"
OPENED = ("java.lang", "java.lang.invoke", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")


class Master:
    """A standalone master, which can be started again on the same port."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, str], name: str = "master") -> None:
        self.cluster = cluster
        self.name = name
        self.port, self.web_port = free_port(), free_port()
        self.settings = {
            "spark.deploy.recoveryMode": "CUSTOM",
            "spark.deploy.recoveryMode.factory": FACTORY,
            "spark.master.rest.enabled": "false",
            **settings,
        }
        self.process = self.start()

    @property
    def url(self) -> str:
        """What workers and applications connect to."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> Process:
        """Start it, again if it ended."""
        options = " ".join([QUICK_START, *(f"-D{key}={value}" for key, value in self.settings.items())])
        env = {
            **self.cluster.env,
            "SPARK_DAEMON_CLASSPATH": str(self.cluster.jar),
            "SPARK_DAEMON_JAVA_OPTS": options,
        }
        command = [str(self.cluster.home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.web_port)]
        log = self.cluster.directory / f"{self.name}.log"
        self.process = self.cluster.started(Process(command, log, env))
        return self.process

    def state(self) -> dict[str, Any]:
        """What its web page says; empty while there is none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=5) as answer:
                state: dict[str, Any] = json.load(answer)
                return state
        except (urllib.error.URLError, OSError, ValueError):
            return {}

    def wait_for(self, status: str, workers: int = 0, apps: int = 0, seconds: float = PATIENCE) -> dict[str, Any]:
        """Its state, once it has the status and as many live workers and applications."""

        def look() -> dict[str, Any]:
            if not self.process.running():
                raise AssertionError(f"{self.name} ended:\n{self.process.log()[-3000:]}")
            state = self.state()
            alive = [worker for worker in state.get("workers", ()) if worker["state"] == "ALIVE"]
            good = state.get("status") == status and len(alive) == workers and len(state["activeapps"]) == apps
            return state if good else {}

        what = f"{self.name} is {status} with {workers} workers and {apps} applications"
        try:
            state: dict[str, Any] = wait_until(look, what, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {self.state()}\n{self.process.log()[-3000:]}") from None
        return state


def start_worker(cluster: Cluster, masters: Sequence[Master], name: str = "worker", cores: int = 2) -> Process:
    """A worker of these masters, of which one leads."""
    url = "spark://" + ",".join(master.url.removeprefix("spark://") for master in masters)
    command = [str(cluster.home / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
    command += ["--host", "127.0.0.1", "--port", str(free_port()), "--webui-port", str(free_port())]
    command += ["--cores", str(cores), "--memory", "1g", "--work-dir", str(cluster.directory / f"{name}-work"), url]
    return cluster.started(Process(command, cluster.directory / f"{name}.log", cluster.env))


def executors(worker: Process) -> list[int]:
    """Process ids of the executors a worker has running."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == worker.pid and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(stat.parent.name))
    return found


class Application:
    """The job of `job.py`: its tasks wait for `go`, so that it is under way for as long as one likes."""

    def __init__(self, cluster: Cluster, masters: Sequence[Master], name: str = "job") -> None:
        self.cluster = cluster
        self.directory = cluster.directory / name
        self.directory.mkdir()
        url = "spark://" + ",".join(master.url.removeprefix("spark://") for master in masters)
        script = Path(__file__).with_name("job.py")
        command = [str(cluster.python), str(script), url, str(self.directory)]
        self.process = cluster.started(Process(command, cluster.directory / f"{name}.log", cluster.env))

    def wait_for_task(self) -> None:
        """Wait until a task runs."""

        def look() -> bool:
            if not self.process.running():
                raise AssertionError(f"the application ended:\n{self.process.log()[-3000:]}")
            return any(self.directory.glob("task-*"))

        wait_until(look, "a task of the application runs")

    def answer(self, seconds: float = PATIENCE) -> int:
        """Let the tasks go on; what the job says in the end."""
        (self.directory / "go").touch()
        if self.process.wait(seconds) != 0:
            raise AssertionError(f"the application failed:\n{self.process.log()[-3000:]}")
        lines = [line for line in self.process.log().splitlines() if line.startswith("ANSWER ")]
        return int(lines[-1].split()[1])


#: Sum of the squares below this is the job's answer.
NUMBERS = 20_000
ANSWER = sum(number * number for number in range(NUMBERS))


class ZooKeeper:
    """A server of one, from Debian's package."""

    JARS = (Path("/usr/share/java/zookeeper.jar"), Path("/usr/share/java/slf4j-nop.jar"))

    def __init__(self, cluster: Cluster) -> None:
        self.port = free_port()
        directory = cluster.directory / "zookeeper"
        directory.mkdir()
        (directory / "zoo.cfg").write_text(
            f"tickTime=200\ndataDir={directory / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\nminSessionTimeout=400\nmaxSessionTimeout=60000\n"
        )
        path = ":".join(map(str, self.JARS))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = ["java", "-Xmx256m", "-cp", path, main, str(directory / "zoo.cfg")]
        self.process = cluster.started(Process(command, cluster.directory / "zookeeper.log", cluster.env))
        wait_until(self.answers, "ZooKeeper answers")

    @classmethod
    def is_there(cls) -> bool:
        """Whether the package is installed."""
        return all(jar.exists() for jar in cls.JARS)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def answers(self) -> bool:
        """Whether the server takes connections."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.recv(4096)
        except OSError:
            return False
