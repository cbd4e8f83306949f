"""The command `recollect` without its start: each call is a fork of a process that has loaded the program.

The pages of the documentation call it some hundred times, and starting Python and loading the modules takes most of the
time. The fork has the arguments, the folder, the environment and the files of the caller. The README's shell runs the
real command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Passes the call on to the server, and ends as it does. It loads as little as possible.
_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["serve"]:  # it gets signals of its own
    os.execv({python!r}, [{python!r}, "-m", "recollect", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(call).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(call)
    status = server.recv(1)
os._exit(status[0] if status else 70)
"""


@contextmanager
def forked_command(folder: Path) -> Iterator[Path]:
    """Provide a folder with a `recollect` that runs in forks, for PATH.

    Args:
        folder: An empty folder. Its path must be short: the address of a socket has at most 107 bytes.
    """
    address = str(folder / "s")
    client = folder / "bin" / "recollect"
    client.parent.mkdir()
    client.write_text(_CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    with subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield client.parent
        finally:
            server.terminate()


def _serve(address: str) -> None:
    import recollect.cli.app as command

    for module in set(command.COMMANDS.values()):
        __import__(f"recollect.cli.{module}")
    __import__("recollect.stores.sqlite.store")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the forks are not waited for
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(16)
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            if not os.fork():
                listening.close()
                _run(connection)
            connection.close()


def _run(connection: socket.socket) -> None:
    """Run a call in this process, and end it."""
    from recollect.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = 70
    try:
        length, files, _, _ = socket.recv_fds(connection, 8, 3)
        call = b""
        while len(call) < int.from_bytes(length, "big"):
            call += connection.recv(2**16)
        sys.argv, folder, environment = json.loads(call)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.sendall(bytes([status & 255]))
        os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1])
