"""A real Kafka broker on this machine: `python -m scripts.kafka_server`, or `make kafka`, starts one and says where.

One broker in KRaft mode, which needs no other server. Maven brings its classes once, into the virtual environment;
afterwards nothing is fetched. It listens on loopback alone, and its data go when it stops.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from scripts.servers import BELOW, Process, UnavailableError, folder_of, free_port, listens, ran, wait_for_the_end

VERSION = "4.1.0"
SCRIPTS = Path(__file__).parent
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eventide</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    # Records of a recording are old when they come; by their times the broker would remove them within a minute.
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    # One broker has one copy of everything.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    # A broker that was killed is known to be gone before it comes again.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "250",
    # A transaction that a killed producer has left open is over soon.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@dataclass(frozen=True)
class KafkaServer:
    """A running broker."""

    process: Process
    port: int

    @property
    def servers(self) -> str:
        """How it is reached."""
        return f"127.0.0.1:{self.port}"


@contextmanager
def kafka() -> Iterator[KafkaServer]:
    """A broker of one's own, until the end of the block."""
    java, classes = _java(), classes_in(BELOW)
    with folder_of("kafka") as folder:
        port, controller = free_port(), free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
        own = {
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(folder / "data"),
        }
        settings = folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in (SETTINGS | own).items()))
        jvm = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(classes / "*")]
        ran([*jvm, "kafka.tools.StorageTool", "format", "-t", uuid4().hex[:22], "-c", settings], cwd=folder)
        process = Process([*jvm, "kafka.Kafka", str(settings)], folder / "server.log", lambda: listens(port))
        try:
            process.start()
            yield KafkaServer(process, port)
        finally:
            process.stop()


def _java() -> str:
    try:
        return ran([SCRIPTS / "find_java.sh"]).strip().splitlines()[-1]
    except UnavailableError as error:
        raise UnavailableError(f"Kafka runs on Java. {error}") from None


def classes_in(below: Path) -> Path:
    """The folder with the classes of the broker; Maven makes it where it is not there."""
    folder = below / f"kafka-{VERSION}"
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        way = ran(["bash", "-c", f'. "{SCRIPTS}/missing.sh"; command_to_install maven maven maven']).strip()
        raise UnavailableError(f"Maven (mvn) fetches the classes of Kafka, and is not installed; to install it: {way}")
    with folder_of("fetching") as fetched:
        (fetched / "pom.xml").write_text(POM)
        try:
            copying = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched / 'classes'}"]
            ran([maven, "--batch-mode", "--quiet", *copying], cwd=fetched)
        except UnavailableError as error:
            raise UnavailableError(f"Maven cannot fetch Kafka {VERSION}, is there a network? {error}") from None
        if not folder.exists():
            os.rename(fetched / "classes", folder)
    return folder


if __name__ == "__main__":
    try:
        with kafka() as broker:
            wait_for_the_end(f"Kafka: servers '{broker.servers}'")
    except UnavailableError as missing:
        raise SystemExit(f"there is no Kafka: {missing}") from None
