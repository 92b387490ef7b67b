"""Ways that have been published for a pickle to run something past a scanner, each rebuilt with a harmless payload.

Loading any of these runs ``true`` or evaluates ``1``; the tests never load them. ``PICKLES`` are bare pickles, ``files``
packs one in the ways that scanners have been fooled with.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import struct
import tarfile
import zipfile
import zlib


def text(value: str) -> bytes:
    """SHORT_BINUNICODE."""
    data = value.encode()
    return b"\x8c" + bytes([len(data)]) + data


def proto4(body: bytes) -> bytes:
    return b"\x80\x04" + body + b"."


def call(module: str, name: str, argument: str = "true") -> bytes:
    """The plainest form."""
    return proto4(text(module) + text(name) + b"\x93" + text(argument) + b"\x85R")


SYSTEM = call("posix", "system")
NESTED = pickle.dumps({"weights": [1.0, 2.0], "extra": SYSTEM})

# fmt: off
PICKLES: dict[str, bytes] = {
    # Direct calls, in every way of calling.
    "reduce": SYSTEM,
    "protocol 0": b"cos\nsystem\n(S'true'\ntR.",
    "protocol 0, Python 2's name": b"c__builtin__\neval\n(S'1'\ntR.",
    "inst": b"(S'true'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'true'\no.",
    "newobj": b"\x80\x02cos\nsystem\nU\x04true\x85\x81.",
    "newobj_ex": proto4(text("os") + text("system") + b"\x93" + text("true") + b"\x85}\x92"),
    "commands of Python 2": b"ccommands\ngetoutput\n(S'true'\ntR.",
    # Modules that lists have missed.
    "subprocess": call("subprocess", "Popen"),
    "pty": call("pty", "spawn"),
    "runpy": call("runpy", "_run_code"),
    "bdb": call("bdb", "Bdb"),
    "timeit": call("timeit", "timeit", "1"),
    "cProfile": call("cProfile", "run", "1"),
    "trace": call("trace", "Trace.run", "1"),
    "code": call("code", "InteractiveInterpreter"),
    "pydoc": call("pydoc", "pipepager"),
    "pip": call("pip", "main"),
    "importlib": call("importlib", "import_module", "os"),
    "asyncio": call("asyncio.unix_events", "_UnixSubprocessTransport._start"),
    "ctypes": call("ctypes", "CDLL"),
    "webbrowser": call("webbrowser", "open"),
    "requests": call("requests.api", "get"),
    "urllib": call("urllib.request", "urlretrieve"),
    "ssl": call("ssl", "get_server_certificate"),
    "shutil": call("shutil", "rmtree", "nowhere"),
    "file": call("builtins", "open", "nowhere"),
    "io": call("_io", "FileIO", "nowhere"),
    "numpy's runstring": call("numpy.testing._private.utils", "runstring", "1"),
    "numpy.f2py": call("numpy.f2py.crackfortran", "getlincoef", "1"),
    "torch.hub": call("torch.hub", "load_state_dict_from_url", "nowhere"),
    "torch inside": call("torch._inductor.codecache", "compile_file"),
    "torch's nested load": call("torch.storage", "_load_from_bytes", ""),
    "logging": call("logging.config", "listen", "0"),
    "uuid": call("uuid", "_get_command_stdout"),
    "idlelib": call("idlelib.pyshell", "ModifiedInterpreter.runcommand", "1"),
    "lib2to3": call("lib2to3.pgen2.grammar", "Grammar.loads", ""),
    "doctest": call("doctest", "debug_script", "1"),
    "distutils": call("distutils.file_util", "write_file", "nowhere"),
    "marshal": call("marshal", "loads", ""),
    "function from code": call("types", "FunctionType", ""),
    "joblib": call("joblib", "load", "nowhere"),
    "pandas.eval": call("pandas", "eval", "1"),
    "uninteresting module, interesting name": call("some.module", "exec", "1"),
    # Names that take a way round.
    "dotted name": call("os.path", "os.system"),
    "module behind a module": call("torch.serialization", "os.system"),
    "modules behind sys": call("collections", "abc.sys.modules"),
    "dunder of a harmless class": call("builtins", "str.__class__.__subclasses__"),
    "getattr chain": proto4(
        text("builtins") + text("getattr") + b"\x93\x94"
        + b"h\x00" + text("torch") + text("serialization") + b"\x93" + text("os") + b"\x86R\x94"
        + b"0h\x00h\x01" + text("system") + b"\x86R" + text("true") + b"\x85R"
    ),
    "getattr of an object": proto4(
        text("builtins") + text("getattr") + b"\x93" + text("x") + text("__class__") + b"\x86R"
    ),
    "getattr with a computed name": proto4(
        text("builtins") + text("getattr") + b"\x93" + text("x") + b"K\x01" + b"\x86R"
    ),
    "attrgetter": proto4(
        text("operator") + text("attrgetter") + b"\x93" + text("system") + b"\x85R"
        + text("some") + text("thing") + b"\x93\x85R"
    ),
    "import, then getattr": proto4(
        text("builtins") + text("getattr") + b"\x93" + text("builtins") + text("__import__") + b"\x93" + text("os")
        + b"\x85R" + text("system") + b"\x86R" + text("true") + b"\x85R"
    ),
    "cloudpickle's import": proto4(
        text("builtins") + text("getattr") + b"\x93" + text("cloudpickle.cloudpickle") + text("subimport") + b"\x93"
        + text("os") + b"\x85R" + text("system") + b"\x86R" + text("true") + b"\x85R"
    ),
    # STACK_GLOBAL with names from elsewhere.
    "names from the memo": proto4(text("posix") + b"\x94" + text("system") + b"\x940h\x00h\x01\x93" + text("true") + b"\x85R"),
    "names from numbered memo entries": proto4(
        text("system") + b"r\xff\x00\x00\x00" + b"0" + text("posix") + b"j\xff\x00\x00\x00\x93" + text("true") + b"\x85R"
    ),
    "names doubled with DUP": proto4(text("posix") + b"2" + b"0" + text("system") + b"\x93" + text("true") + b"\x85R"),
    "names in Python 2's strings": b"\x80\x04U\x05posixU\x06system\x93U\x04true\x85R.",
    "names in text lines": b"\x80\x04Vposix\nVs\\u0079stem\n\x93Vtrue\n\x85R.",
    "names in quoted lines": b"\x80\x04S'posix'\nS'sys\\x74em'\n\x93S'true'\n\x85R.",
    "names with marks between": proto4(text("posix") + b"(11" + b"(" + text("x") + b"1" + text("system") + b"\x93" + text("true") + b"\x85R"),
    "names that are computed": proto4(
        text("posix") + text("builtins") + text("str") + b"\x93" + text("system") + b"\x85R\x93" + text("true") + b"\x85R"
    ),
    "names in long strings": b"\x80\x04X\x05\0\0\0posix\x8d\x06\0\0\0\0\0\0\0system\x93" + text("true") + b"\x85R.",
    # Arguments and callables through the memo.
    "callable from the memo": proto4(text("posix") + text("system") + b"\x93\x94" + b"0h\x00" + text("true") + b"\x85R"),
    "arguments from the memo": proto4(text("true") + b"\x85\x940" + text("posix") + text("system") + b"\x93h\x00R"),
    # Extension codes.
    "extension code, registered on the way": proto4(
        text("copyreg") + text("add_extension") + b"\x93" + text("posix") + text("system") + b"K\xf0\x87R0" + b"\x82\xf0" + text("true") + b"\x85R"
    ),
    "extension cache": call("copyreg", "_extension_cache.update"),
    # Broken, unusual and doubled pickles.
    "broken after the call": SYSTEM[:-1] + b"\xff\xff",
    "no STOP": SYSTEM[:-1],
    "stack underflow after the call": SYSTEM[:-1] + b"000000.",
    "memo entry stored twice": proto4(b"N\x94q\x00" + SYSTEM[2:-1]),
    "second pickle": pickle.dumps([1, 2, 3]) + SYSTEM,
    "second pickle of protocol 0": b"N." + b"cos\nsystem\n(S'true'\ntR.",
    "objects left under the result": proto4(b"NNN" + SYSTEM[2:-1] + b"N"),
    "frame of a wrong length": b"\x80\x04\x95\x01\0\0\0\0\0\0\0" + SYSTEM[2:],
    "opcodes newer than the protocol": b"\x80\x00" + SYSTEM[2:],
    "no header": SYSTEM[2:],
    "several headers": b"\x80\x04" * 5 + SYSTEM[2:],
    "number that only C reads": b"\x80\x02I0x10\n0" + b"cos\nsystem\nU\x04true\x85R.",
    "text that pickletools refuses": b"\x80\x02U\x02\xff\xfe0" + b"cos\nsystem\nU\x04true\x85R.",
    "result thrown away": proto4(SYSTEM[2:-1] + b"0N"),
    # Pickles in pickles.
    "pickle.loads": call("pickle", "loads", ""),
    "pickle inside of bytes": NESTED,
    "pickle inside of text": pickle.dumps(["cos\nsystem\n(S'true'\ntR."]),
    "twice inside of bytes": pickle.dumps([NESTED]),
    # What is changed rather than called.
    "attributes of a class": proto4(text("some") + text("Class") + b"\x93}" + text("x") + b"Nsb"),
    "items of a module's dict": proto4(text("some") + text("REGISTRY") + b"\x93" + text("x") + b"Ns"),
    "function brought along and called": proto4(
        text("cloudpickle.cloudpickle") + text("_make_function") + b"\x93(t" + b"R(tR"
    ),
}
# fmt: on


def stored_zip(member: str, content: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("archive/version", "3\n")
        archive.writestr(member, content)
    return out.getvalue()


def patched(data: bytes, signature: bytes, at: int, new: bytes) -> bytes:
    """Every header of a kind, changed at a place."""
    copy, start = bytearray(data), 0
    while (start := copy.find(signature, start)) >= 0:
        copy[start + at : start + at + len(new)] = new
        start += 4
    return bytes(copy)


def npy_of_objects(content: bytes) -> bytes:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def tar(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("model/data.pkl")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def joblib_with_array(content: bytes) -> bytes:
    """An array between the operations, and the call behind it, where a scanner that stops at the array does not look."""
    state = (
        b"}("
        + text("subclass")
        + text("numpy")
        + text("ndarray")
        + b"\x93"
        + text("shape")
        + b"K\x02K\x03\x86"
        + text("order")
        + text("C")
        + text("dtype")
        + text("numpy")
        + text("dtype")
        + b"\x93"
        + text("f8")
        + b"\x89\x88\x87R"
        + text("allow_mmap")
        + b"\x88"
        + text("numpy_array_alignment_bytes")
        + b"K\x10u"
    )
    wrapper = text("joblib.numpy_pickle") + text("NumpyArrayWrapper") + b"\x93)\x81" + state + b"b"
    array = b"\x03\xff\xff\xff" + b"\xff" * 48
    return b"\x80\x04]" + wrapper + array + b"a" + content[2:-1] + b"a."


def files(content: bytes) -> dict[str, tuple[str, bytes]]:
    """One pickle, packed: description -> (file name, bytes)."""
    plain = stored_zip("archive/data.pkl", content)
    deflated = stored_zip("archive/data.pkl", content * 3, zipfile.ZIP_DEFLATED)
    encrypted = patched(patched(plain, b"PK\x01\x02", 8, b"\x01\x00"), b"PK\x03\x04", 6, b"\x01\x00")
    return {
        "torch": ("model.pt", plain),
        "deflated": ("model.pt", deflated),
        "zip, bzip2": ("a.zip", stored_zip("data.pkl", content, zipfile.ZIP_BZIP2)),
        "zip with another name": ("model.png", plain),
        "zip, member with another name": ("model.zip", stored_zip("readme.txt", content)),
        "zip, flags say encrypted": ("model.pt", encrypted),
        "zip, wrong checksums": ("model.pt", patched(plain, b"PK\x01\x02", 16, b"\1\2\3\4")),
        "zip, methods differ": ("model.pt", patched(deflated, b"PK\x01\x02", 10, b"\x00\x00")),
        "zip, sizes of zero": ("model.pt", patched(plain, b"PK\x03\x04", 18, b"\0" * 8)),
        "zip, directory is empty": ("model.pt", plain[: plain.index(b"PK\x01\x02")] + b"PK\x05\x06" + b"\0" * 18),
        "zip behind something else": ("model.pt", b"GIF89a" + plain),
        "wheel in a zip": ("all.zip", stored_zip("a-1-py3-none-any.whl", stored_zip("a/model.pkl", content))),
        "npy": ("a.npy", npy_of_objects(content)),
        "npz": ("a.npz", stored_zip("arr_0.npy", npy_of_objects(content), zipfile.ZIP_DEFLATED)),
        "tar": ("model.tar", tar(content)),
        "tar.gz": ("model.tar.gz", gzip.compress(tar(content))),
        "gzip": ("model.pkl.gz", gzip.compress(content)),
        "gzip, cut short": ("model.pkl.gz", gzip.compress(content + b"x" * 1000)[:-9]),
        "zlib, as joblib": ("model.joblib", zlib.compress(content)),
        "bzip2": ("model.joblib", bz2.compress(content)),
        "xz": ("model.joblib", lzma.compress(content)),
        "lzma": ("model.joblib", lzma.compress(content, lzma.FORMAT_ALONE)),
        "joblib, behind an array": ("model.joblib", joblib_with_array(content)),
        "wrong extension": ("notes.txt", content),
        "no extension": ("model", content),
        "gzip in gzip": ("x.gz", gzip.compress(gzip.compress(content))),
    }
