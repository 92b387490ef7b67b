"""A closure over a dynamic class travels to a fresh Python process, runs there, and its answer comes back.

The class and the function are made inside of a function, so no process could import them: they travel by value, with
cloudpickle or with quickpickle, and each payload is loaded by both. A process that has loaded one knows nothing of this
module.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import quickpickle.cloudpickle
from demo.measure import DisagreementError, Times, in_turns

# What the fresh process runs: the payload is on its standard input, the module to load it with is its argument. The
# first load imports what the payload names, and is not timed.
CHILD = """
import gc, importlib, json, sys, time
module = importlib.import_module(sys.argv[1])
payload = sys.stdin.buffer.read()
answer = module.loads(payload)()
seconds = []
gc.disable()
for _ in range(300):
    start = time.perf_counter()
    module.loads(payload)
    seconds.append(time.perf_counter() - start)
print(json.dumps({"answer": answer, "seconds": seconds, "has": "quickpickle" in sys.modules}))
"""


@dataclass
class Shipment:
    """How the two did: times of dumping here and of loading there, and what the closure answered."""

    size: int
    dumps: tuple[Times, Times]
    loads: tuple[Times, Times]
    answer: Any


def make_job(rows: list[dict[str, Any]]) -> Callable[[], dict[str, float]]:
    """A closure over an instance of a class that exists only here."""

    class Ledger:
        """Sums numbers by name."""

        def __init__(self, entries: list[dict[str, Any]]) -> None:
            self.entries = entries

        def total(self, column: str) -> float:
            return float(sum(entry[column] for entry in self.entries))

    ledger = Ledger(rows)
    columns = [name for name, value in rows[0].items() if isinstance(value, int | float)]

    def job() -> dict[str, float]:
        return {column: ledger.total(column) for column in columns}

    return job


def run_elsewhere(module: str, payload: bytes) -> tuple[Any, Times]:
    """What the closure answers in a fresh process that loads it with ``module``, and the times of loading."""
    done = subprocess.run([sys.executable, "-I", "-c", CHILD, module], input=payload, capture_output=True, check=True)
    said = json.loads(done.stdout)
    if said["has"] != (module == "quickpickle"):
        raise DisagreementError(f"the process that loads with {module} has the wrong modules")
    return said["answer"], Times(said["seconds"])


def ship(rows: list[dict[str, Any]]) -> Shipment:
    """Dump with both, load each payload with both in processes of their own, and compare all answers."""
    job = make_job(rows)
    payloads = [cloudpickle.dumps(job), quickpickle.cloudpickle.dumps(job)]
    if payloads[0] != payloads[1]:
        raise DisagreementError("by value: the bytes differ")
    expected = json.loads(json.dumps(job()))
    times = {}
    for payload in payloads:
        for module in ("pickle", "quickpickle"):
            answer, times[module] = run_elsewhere(module, payload)
            if answer != expected:
                raise DisagreementError(f"by value, loaded with {module}: {answer} is not {expected}")
    return Shipment(
        size=len(payloads[0]),
        dumps=in_turns(lambda: cloudpickle.dumps(job), lambda: quickpickle.cloudpickle.dumps(job)),
        loads=(times["pickle"], times["quickpickle"]),
        answer=expected,
    )
