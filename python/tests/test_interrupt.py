"""Ctrl-C while a loop over time runs in C++."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import reel

LONG = 200_000_000  # steps: most of a minute, a quarter of a microsecond each


def decay(state, x):
    return reel.tanh(0.5 * state + 1), None


@pytest.fixture(autouse=True)
def ctrl_c():
    """Python's own handler of SIGINT, which a process does not have that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = reel.threads()
    reel.set_threads(request.param)
    yield
    reel.set_threads(before)


def soon(number=signal.SIGINT, after=0.3):
    """Sends this process a signal from another thread. Returns when that will be."""
    threading.Timer(after, lambda: os.kill(os.getpid(), number)).start()
    return time.monotonic() + after


@pytest.fixture
def handle():
    """Sets a handler of SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, handler)
    for thread in threading.enumerate():  # without a handler the signal ends the process
        if isinstance(thread, threading.Timer):
            thread.join()
    signal.signal(signal.SIGUSR1, before)


def test_scan_ends_with_keyboard_interrupt(threads):
    state = reel.zeros((64, 8))
    sent = soon()
    with pytest.raises(KeyboardInterrupt):
        reel.scan(decay, state, length=LONG)
    assert time.monotonic() - sent < 3
    # What comes after it is as ever.
    last, _ = reel.scan(decay, state, length=1000)
    x = 0.0
    for _ in range(1000):
        x = np.tanh(0.5 * x + 1)
    np.testing.assert_allclose(last.numpy(), x, rtol=1e-6)


def test_cell_ends_with_keyboard_interrupt(threads):
    cell = reel.cell("lstm", 2, 512)
    xs = reel.zeros((50_000, 2, 2))  # many seconds
    sent = soon()
    with pytest.raises(KeyboardInterrupt):
        cell.run(xs)
    assert time.monotonic() - sent < 3


def test_gradient_ends_with_keyboard_interrupt():
    h = reel.zeros((2, 1024))
    sent = []

    def loss(W):
        last, _ = reel.scan(lambda h, x: (reel.tanh(h @ W), None), h, length=40_000)
        sent.append(soon())  # the loop of the gradient comes now, and takes many seconds
        return reel.sum(last)

    with pytest.raises(KeyboardInterrupt):
        reel.grad(loss)(reel.zeros((1024, 1024)))
    assert time.monotonic() - sent[0] < 3


def test_a_handler_that_raises_nothing_changes_nothing(threads, handle):
    calls = []
    handle(lambda *_: calls.append(time.monotonic()))
    sent = soon(signal.SIGUSR1, 0.1)
    last, _ = reel.scan(decay, reel.zeros((64, 8)), length=5_000_000)  # a second
    assert len(calls) == 1 and sent - 0.05 < calls[0] < time.monotonic()
    assert np.all(last.numpy() == last.numpy()[0, 0])


def test_other_exceptions_of_handlers_arrive(handle):
    def handler(*_):
        raise TimeoutError("enough")

    handle(handler)
    soon(signal.SIGUSR1)
    with pytest.raises(TimeoutError, match="enough"):
        reel.scan(decay, reel.zeros((64, 8)), length=LONG)
