"""``quickpickle recovery spark-conf``: the lines that give a Spark standalone master a store of ours."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.recovery import add_json, add_store
from quickpickle.cli.terminal import Terminal

SUMMARY: Final = "the lines that give a Spark standalone master this store"
DESCRIPTION: Final = (
    "Prints what goes into conf/spark-defaults.conf of an unmodified Spark 4.x so that its standalone master keeps "
    "its state in this store, and the class path for conf/spark-env.sh; or, with --env, all of it for spark-env.sh. "
    "Opens nothing and changes nothing. Standby masters get the same lines."
)
EXAMPLES: Final = (
    ("quickpickle recovery spark-conf /var/lib/spark/recovery >> conf/spark-defaults.conf", "a log on this machine"),
    ("quickpickle recovery spark-conf --env /var/lib/spark/recovery >> conf/spark-env.sh", "the same, in one file"),
    (
        "quickpickle recovery spark-conf --serializer kryo zookeeper://zk1:2181,zk2:2181/spark",
        "masters on many machines",
    ),
)
FACTORY: Final = "io.quickpickle.recovery.QuickpickleRecoveryModeFactory"
JAR: Final = "quickpickle-spark-recovery.jar"
LIBRARY: Final = "libquickpickle_jni.so"
_OWN: Final = "spark.quickpickle.recovery."
_ENGINES: Final = {"log": "log", "file": "file_system", "file_system": "file_system", "fs": "file_system"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser)
    parser.add_argument("--serializer", choices=("java", "kryo"), help="how records are written (default: java)")
    parser.add_argument("--sync", metavar="LEVEL", help="always (the default), group(MILLISECONDS) or none")
    parser.add_argument("--compress", choices=("lz4", "zstd"), help="how records are compressed")
    parser.add_argument("--strict", action="store_true", help="do not start on a damaged store")
    parser.add_argument(
        "--on-failure", choices=("halt", "retry"), help="what a master does that cannot store a record (default: halt)"
    )
    parser.add_argument("--jar", type=Path, help="the jar, if it is not this installation's own")
    parser.add_argument("--env", action="store_true", help="lines for spark-env.sh instead")
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Put the lines together."""
    jar = _jar(options.jar)
    properties = {
        "spark.deploy.recoveryMode": "CUSTOM",
        "spark.deploy.recoveryMode.factory": FACTORY,
        **_place(options.store),
    }
    chosen = {
        "serializer": options.serializer,
        "sync": options.sync,
        "compression": options.compress,
        "strict": "true" if options.strict else None,
        "onFailure": options.on_failure,
    }
    properties.update({_OWN + key: value for key, value in chosen.items() if value is not None})
    if options.json:
        terminal.json({"classpath": str(jar), "properties": properties})
    elif options.env:
        given = " ".join(f"-D{key}={_java_quoted(value)}" for key, value in properties.items())
        terminal.line(f"export SPARK_DAEMON_CLASSPATH={shlex.quote(str(jar))}")
        terminal.line(f"export SPARK_DAEMON_JAVA_OPTS={shlex.quote(given)}")
    else:
        terminal.line(f"# conf/spark-env.sh also needs: export SPARK_DAEMON_CLASSPATH={shlex.quote(str(jar))}")
        width = max(map(len, properties))
        for key, value in properties.items():
            terminal.line(f"{key:<{width}}  {value}")
    return ExitCode.OK


def _jar(given: Path | None) -> Path:
    import quickpickle

    folder = Path(quickpickle.__file__).parent / "recovery_spark"
    jar = (given or folder / JAR).absolute()
    if not jar.is_file():
        hint = "name one with --jar" if given else "it was built where there was no JDK; name a jar with --jar"
        raise CommandError(f"{jar}: there is no such jar", hint=hint)
    if not (jar.parent / LIBRARY).is_file():
        raise CommandError(f"{jar.parent / LIBRARY}: the library the jar loads is not beside it")
    return jar


def _place(store: str) -> dict[str, str]:
    """The properties that say which engine, and where."""
    scheme, colon, rest = store.partition(":")
    if colon and scheme in ("zookeeper", "zk"):
        servers, _, node = rest.removeprefix("//").partition("/")
        if not servers:
            raise CommandError(f"{store}: names no server; use zookeeper://HOST:PORT/NODE", code=ExitCode.USAGE)
        place = {_OWN + "engine": "zookeeper", "spark.deploy.zookeeper.url": servers}
        return {**place, "spark.deploy.zookeeper.dir": f"/{node}"} if node else place
    if colon and scheme in _ENGINES:
        engine = {_OWN + "engine": _ENGINES[scheme]}
        directory = rest.removeprefix("//")
    elif colon and rest.startswith("//"):
        raise CommandError(f"{store}: {scheme}: is not known; use log:, file: or zookeeper:", code=ExitCode.USAGE)
    else:
        engine, directory = {}, store
    if not directory:
        raise CommandError(f"{store}: names no directory", code=ExitCode.USAGE)
    return {**engine, "spark.deploy.recoveryDirectory": os.path.abspath(directory)}


def _java_quoted(value: str) -> str:
    """A value as Spark's launcher splits options: at white space outside of quotes."""
    return f'"{value}"' if any(char.isspace() for char in value) else value
