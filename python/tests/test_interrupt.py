"""Ctrl-C while a loop over time runs in C++."""

import os
import signal
import subprocess
import sys
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


@pytest.mark.parametrize("work", ["x @ w", "reel.scan(lambda h, u: (reel.tanh(reel.linear(h, w) + u), None), h, xs)"])
def test_a_daemon_thread_in_an_op_does_not_end_the_program(work):
    text = f"""
import threading, time, reel
w, x = reel.normal((128, 128), seed=1) * 0.05, reel.normal((16, 128), seed=2)
h, xs = reel.zeros((16, 128)), reel.normal((300, 16, 128), seed=3)

def forever():
    while True:
        {work}

threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
print("ends")
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def test_a_thread_that_is_joined_at_the_very_end_goes_on():
    text = """
import atexit, threading
threads = []
atexit.register(lambda: (threads[0].join(), print("joined")))  # before Reel is imported, so after its own
import reel
w, x = reel.normal((128, 128), seed=1), reel.normal((16, 128), seed=2)
threads.append(threading.Thread(target=lambda: [x @ w for _ in range(20000)], daemon=True))
threads[0].start()
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "joined\n"), done.stderr


def test_threads_call_one_pullback():
    w, xs = reel.normal((16, 16), seed=1, dtype="f64") * 0.3, reel.normal((20, 4, 16), seed=2, dtype="f64")
    step = lambda h, x: (reel.tanh(reel.linear(h, w_) + x), h)  # noqa: E731
    w_ = w

    def loss(v):
        nonlocal w_
        w_ = v
        return reel.sum(reel.scan(step, reel.zeros((4, 16), "f64"), xs)[1] ** 2)

    _, pullback = reel.vjp(loss, w)
    one = reel.ones((), "f64")
    expected = pullback(one)[0].numpy()
    got, errors = [], []

    def work():
        try:
            got.extend(pullback(one)[0].numpy() for _ in range(50))
        except reel.Error as e:
            errors.append(str(e))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert len(got) == 200
    assert all((g == expected).all() for g in got)


def test_an_interrupt_ends_the_call_of_its_own_thread_alone(handle):
    """Though the other call has the helping threads."""

    def handler(*_):
        raise TimeoutError("enough")

    handle(handler)
    before = reel.threads()
    reel.set_threads(2)
    state = reel.zeros((64, 8))
    runs, errors, stop = [0], [], threading.Event()

    def work():
        while not stop.is_set():
            try:
                reel.scan(decay, state, length=200_000)
                runs[0] += 1
            except BaseException as e:
                errors.append(repr(e))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            time.sleep(0.02)  # now the thread has them
            soon(signal.SIGUSR1, 0.2)
            with pytest.raises(TimeoutError):
                reel.scan(decay, state, length=LONG)
    finally:
        stop.set()
        thread.join()
        reel.set_threads(before)
    assert errors == [] and runs[0] > 0
