"""SIGTERM, while the main thread may be waiting for something else."""

from __future__ import annotations

import os
import signal
import threading
from typing import Callable


def on_terminate(stop: Callable[[], None]) -> None:
    """Has a thread of its own call ``stop`` on SIGTERM. It is called in the main thread.

    A handler in Python runs only when the main thread is done with what it waits for, and a signal that comes just
    before that begins does not end it. What the interpreter itself writes on a signal comes in any case.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # without a handler the process ends at once

    def wait() -> None:
        while signal.SIGTERM not in os.read(read, 64):
            pass
        stop()

    threading.Thread(target=wait, name="agentd-signals", daemon=True).start()
