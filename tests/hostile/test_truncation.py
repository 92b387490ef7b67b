"""Every proper prefix of a valid pickle fails with UnpicklingError or EOFError, from memory and from a stream."""

from __future__ import annotations

import io
import pickle
from types import ModuleType

import pytest

from tests import corpus
from tests.outcomes import Returned, outcome
from tests.pickle.test_cross_load import Trickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def prefixes(data: bytes) -> list[bytes]:
    """Return all proper prefixes of a short pickle, of a longer one both ends and an even choice between."""
    if len(data) <= 150:
        return [data[:n] for n in range(len(data))]
    cuts = {*range(50), *range(len(data) - 30, len(data)), *range(0, len(data), max(1, len(data) // 40))}
    return [data[:n] for n in sorted(cuts)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("group", list(corpus.GROUPS))
def test_prefixes(ours: ModuleType, group: str, protocol: int) -> None:
    wrong = []
    for name, value in corpus.GROUPS[group]():
        data = outcome(pickle.dumps, value, protocol)
        if not isinstance(data, Returned) or len(data.value) > 8_000:
            continue
        if not isinstance(outcome(pickle.loads, data.value), Returned):
            continue
        for prefix in prefixes(data.value):
            for how in (ours.loads, lambda d: ours.load(Trickle(d)), lambda d: ours.load(io.BytesIO(d))):
                try:
                    how(prefix)
                except (pickle.UnpicklingError, EOFError):
                    continue
                except Exception as exc:
                    wrong.append((name, len(prefix), prefix[-30:], repr(exc)))
                else:
                    wrong.append((name, len(prefix), prefix[-30:], "loaded"))
    assert not wrong, (len(wrong), wrong[:8])


def test_every_prefix_of_one_of_everything(ours: ModuleType) -> None:
    value = [
        None,
        True,
        -5,
        300,
        70_000,
        2**40,
        1.5,
        "s\xe9",
        b"b",
        bytearray(b"c"),
        (1, 2),
        {"k": {1}},
        frozenset([3]),
    ]
    for protocol in PROTOCOLS:
        data = pickle.dumps([value, value, pickle.PickleBuffer(b"x")] if protocol == 5 else [value, value], protocol)
        assert ours.loads(data)[0] == value
        for n in range(len(data)):
            with pytest.raises((pickle.UnpicklingError, EOFError)):
                ours.loads(data[:n])
            with pytest.raises((pickle.UnpicklingError, EOFError)):
                ours.load(Trickle(data[:n]))


@pytest.mark.beyond_reference
def test_prefixes_of_bad_literals_too(ours: ModuleType) -> None:
    """A text literal cut in the middle is a truncation, not a number."""
    for data in (
        b"I12345\n.",
        b"L12345L\n.",
        b"F1.25\n.",
        b"S'text'\n.",
        b"Vtext\n.",
        b"cbuiltins\nlist\n.",
        b"Pid\n.",
        b"(ibuiltins\nlist\n.",
        b"Np12\ng12\n.",
    ):
        for n in range(len(data) - 1):
            with pytest.raises((pickle.UnpicklingError, EOFError)):
                ours.loads(data[:n])
