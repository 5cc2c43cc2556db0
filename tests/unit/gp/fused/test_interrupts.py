"""Ctrl-C while code is compiled is not lost."""

from __future__ import annotations

import signal
import threading

import pytest

from headstart.gp.fused.loading import interrupts_wait


def test_an_interrupt_is_raised_when_the_work_is_done() -> None:
    """Not in its midst; and the handler from before is back."""
    outside, done = signal.signal(signal.SIGINT, signal.default_int_handler), []  # a job in the background ignores it

    def work() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("work")

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)
    assert done == ["work"]


def test_another_thread_which_has_no_signals_just_works() -> None:
    """Python leaves signals to the main thread."""
    done = []

    def work() -> None:
        with interrupts_wait():
            done.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["work"]
