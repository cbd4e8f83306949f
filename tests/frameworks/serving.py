"""A server and child processes for the tests of adapters, with nothing but what the environment of a framework has."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: How long a process is waited for before it counts as hanging. It measures nothing.
PATIENCE_S = 120.0


@contextmanager
def served(store: Path) -> Iterator[str]:
    """Serve a store in a process of its own, and yield the address of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-"))  # a path of a socket must be short
    command = [sys.executable, "-m", "recollect", "serve", "--db", str(store), "--socket", str(folder / "s")]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if "listening on" in line:
                break
        assert "listening on" in "".join(said[-1:]), "".join(said)
        yield f"unix://{folder / 's'}"
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_S)
        shutil.rmtree(folder)


class Child:
    """A Python program in a process of its own, which begins when it may and ends by itself.

    Args:
        program: The source. It prints a line when it is ready, and then reads one.
        *arguments: Its arguments.
    """

    def __init__(self, program: str, *arguments: object) -> None:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        self._process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._output: IO[str] | None = self._process.stdout

    def wait_until_ready(self) -> None:
        """Return when the program has printed a line."""
        assert self._output is not None
        if not self._output.readline():
            raise AssertionError(self._process.communicate(timeout=PATIENCE_S)[1])

    def result(self) -> str:
        """Let the program go on, and return what it prints until it ends."""
        output, errors = self._process.communicate("\n", timeout=PATIENCE_S)
        assert self._process.returncode == 0, errors
        return output
