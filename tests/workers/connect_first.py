"""Runs a worker of Spark that is connected before it is loaded: `connect_first.py -m MODULE`.

Spark waits ten seconds for a worker that it starts alone, and the worker connects after it has loaded PySpark and
Arrow. On a busy machine that takes longer, and a test fails with "Python worker failed to connect back".
"""

import os
import socket
import sys


def connected() -> socket.socket:
    """The connection that Spark waits for."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.connect(os.environ["PYTHON_WORKER_FACTORY_SOCK_PATH"])
    return found


def run(module: str, connection: socket.socket) -> None:
    """Run a module of PySpark as `python -m` does, with the connection that it would make."""
    # Here, and not above: whatever is loaded takes time.
    import runpy

    import pyspark.util

    file = connection.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", 65536)))
    pyspark.util.local_connect_and_auth = lambda conn_info, auth_secret: (file, connection)
    # The folder of this file would stand before everything that is installed.
    sys.path[0] = os.getcwd()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run(sys.argv[2], connected())
