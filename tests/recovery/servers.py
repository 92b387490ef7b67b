"""A real ZooKeeper server on a loopback port, from Debian's package ``zookeeper``."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

JAR = Path("/usr/share/java/zookeeper.jar")
LOGGER = Path("/usr/share/java/slf4j-nop.jar")
PATIENCE = 60


def why_not() -> str | None:
    """What is missing for a server, if anything."""
    if not JAR.exists():
        return f"{JAR} is not there; install Debian's package zookeeper"
    if shutil.which("java") is None:
        return "there is no java to run ZooKeeper with"
    return None


class Server:
    """A server of one. It ends with this process, however that ends: a shell kills it once its input closes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        (directory / "zoo.cfg").write_text(
            f"tickTime=200\ndataDir={directory / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\nminSessionTimeout=400\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it on the data it left, and wait until it answers."""
        script = (
            f"java -Xmx256m -cp {JAR}:{LOGGER} org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg "
            ">server.log 2>&1 & server=$!; cat >/dev/null; kill -9 $server; wait"
        )
        self._process = subprocess.Popen(["sh", "-c", script], cwd=self._directory, stdin=subprocess.PIPE)
        started = time.monotonic()
        while not self._answers():
            log = (self._directory / "server.log").read_text() if time.monotonic() - started > PATIENCE else ""
            assert time.monotonic() - started <= PATIENCE, f"no server after a minute: {log}"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while received := connection.recv(4096):
                    answer += received
        except OSError:
            return False
        return b"Mode: standalone" in answer
