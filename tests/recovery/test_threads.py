"""Threads share a store, and the GIL is free while one of them waits."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from quickpickle import recovery


def test_threads_write_and_read_at_once(open_store):
    store = open_store()
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(thread):
        for number in range(20):
            name = f"t{thread}_{number}"
            store[name] = (thread, number)
            assert store[name] == (thread, number)
            if number % 3 == 0:
                del store[name]
            if number % 10 == 0:
                list(store.items(f"t{thread}_"))

    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(old)
    left = {f"t{thread}_{number}": (thread, number) for thread in range(8) for number in range(20) if number % 3}
    assert dict(store) == left
    store.close()
    assert dict(open_store(strict=True)) == left


def test_other_threads_run_while_one_stands_by(tmp_path):
    """If opening held the GIL, the holder could never close and both would wait for ever."""
    held = recovery.open(tmp_path)
    waiting = threading.Event()
    opened = []

    def stand_by():
        waiting.set()
        opened.append(recovery.open(tmp_path, wait=30))

    thread = threading.Thread(target=stand_by)
    thread.start()
    assert waiting.wait(10)
    held["a"] = 1
    held.close()
    thread.join(30)
    assert opened[0]["a"] == 1
    opened[0].close()


def test_closing_while_others_write_is_an_error_for_them_and_no_loss(open_store):
    store = open_store()
    acknowledged = []
    ended = []

    def work(thread):
        try:
            for number in range(100_000):
                store[f"t{thread}_{number}"] = number
                acknowledged.append(f"t{thread}_{number}")
        except recovery.ClosedError as error:
            ended.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 20:
        time.sleep(0.001)
    store.close()
    for thread in threads:
        thread.join(60)
    assert len(ended) == 4
    assert set(open_store(strict=True)) >= set(acknowledged)
