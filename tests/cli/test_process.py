"""Commands as processes: an interrupt that a library swallows comes again."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.support import harness

_SCRIPT = """
import time
from spaseq.command.process import run_command, settle_interrupt

def main():
    try:
        print("ready", flush=True)
        time.sleep(50)
    except:
        print("swallowed", flush=True)
    try:
        time.sleep(50)
    except KeyboardInterrupt:
        settle_interrupt()
        time.sleep(1.2)  # nothing more comes
        return 130

run_command(main)
"""


def test_an_interrupt_that_was_swallowed_comes_again() -> None:
    command = [sys.executable, "-c", _SCRIPT]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=harness.hear_interrupts
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)
    assert (process.returncode, out, err) == (130, "swallowed\n", "")
