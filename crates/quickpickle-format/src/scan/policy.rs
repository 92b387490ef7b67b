//! What names of globals say about them: lists, and rules for dotted names.
//!
//! A global is harmless only if it is on the list; every other one is unknown at best. The dangerous ones are listed for the sake of the
//! verdict and its reason, so that a gap there turns "dangerous" into "unknown" and never into "ok". Names of Python 2 count as well,
//! because unpicklers translate them.

use super::Verdict;

/// Top-level modules all of whose names are dangerous, and why.
const DANGEROUS_MODULES: &[(&[&str], &str)] = &[
    (
        &[
            "os",
            "posix",
            "nt",
            "subprocess",
            "_posixsubprocess",
            "commands",
            "popen2",
            "pty",
            "shutil",
            "pexpect",
            "sh",
            "fabric",
            "plumbum",
            "_winapi",
            "winreg",
            "_winreg",
            "msvcrt",
            "resource",
            "signal",
            "fcntl",
            "mmap",
        ],
        "runs commands or acts on files and processes",
    ),
    (
        &[
            "sys",
            "_frozen_importlib",
            "_frozen_importlib_external",
            "importlib",
            "imp",
            "_imp",
            "pkgutil",
            "zipimport",
            "runpy",
            "site",
            "gc",
            "atexit",
            "sysconfig",
            "modulefinder",
        ],
        "reaches into the interpreter or imports by name",
    ),
    (
        &[
            "code",
            "codeop",
            "pdb",
            "bdb",
            "cProfile",
            "profile",
            "_lsprof",
            "timeit",
            "trace",
            "doctest",
            "rlcompleter",
            "pydoc",
            "unittest",
            "test",
            "idlelib",
            "lib2to3",
            "ctypes",
            "_ctypes",
            "cffi",
            "_cffi_backend",
            "marshal",
            "_xxsubinterpreters",
            "_interpreters",
            "dis",
            "py_compile",
            "compileall",
            "IPython",
            "nose",
            "cgitb",
            "symtable",
            "_pyrepl",
            "execnet",
        ],
        "runs or makes code",
    ),
    (
        &[
            "pickle",
            "_pickle",
            "cPickle",
            "dill",
            "shelve",
            "pickletools",
            "jsonpickle",
            "klepto",
            "quickpickle",
            "_compat_pickle",
        ],
        "loads other pickles",
    ),
    (
        &[
            "socket",
            "_socket",
            "socketserver",
            "SocketServer",
            "ssl",
            "_ssl",
            "http",
            "httplib",
            "urllib",
            "urllib2",
            "urllib3",
            "requests",
            "httpx",
            "aiohttp",
            "ftplib",
            "smtplib",
            "smtpd",
            "telnetlib",
            "poplib",
            "imaplib",
            "nntplib",
            "xmlrpc",
            "xmlrpclib",
            "webbrowser",
            "paramiko",
            "asyncio",
            "antigravity",
            "wsgiref",
            "select",
            "selectors",
            "asyncore",
        ],
        "talks to the network or opens programs",
    ),
    (&["_thread", "thread", "_dummy_thread"], "starts threads"),
    (
        &[
            "io",
            "_io",
            "tempfile",
            "glob",
            "fileinput",
            "linecache",
            "zipfile",
            "tarfile",
            "sqlite3",
            "_sqlite3",
            "dbm",
            "anydbm",
            "codecs",
            "tokenize",
            "pathlib2",
            "filecmp",
            "mailbox",
            "nturl2path",
            "fnmatch",
            "gzip",
            "bz2",
            "lzma",
        ],
        "opens files",
    ),
    (
        &[
            "pip",
            "setuptools",
            "distutils",
            "ensurepip",
            "venv",
            "virtualenv",
            "pkg_resources",
            "zipapp",
            "turtledemo",
            "tkinter",
            "_tkinter",
            "_osx_support",
            "_aix_support",
        ],
        "installs or runs programs",
    ),
];

/// Names that are dangerous although their module is not on the list above.
const DANGEROUS_NAMES: &[(&[&str], &[&str], &str)] = &[
    (
        &["builtins", "__builtin__", "__builtins__"],
        &[
            "eval",
            "exec",
            "execfile",
            "compile",
            "open",
            "file",
            "input",
            "raw_input",
            "__import__",
            "breakpoint",
            "setattr",
            "delattr",
            "globals",
            "locals",
            "vars",
            "apply",
            "reload",
            "help",
            "exit",
            "quit",
            "__build_class__",
        ],
        "runs code, or reaches into the interpreter",
    ),
    (
        &["copyreg", "copy_reg"],
        &[
            "add_extension",
            "remove_extension",
            "clear_extension_cache",
            "_extension_registry",
            "_inverted_registry",
            "_extension_cache",
            "dispatch_table",
            "pickle",
            "constructor",
        ],
        "changes what pickles mean",
    ),
    (
        &["types"],
        &[
            "FunctionType",
            "LambdaType",
            "CodeType",
            "ModuleType",
            "MethodType",
        ],
        "makes code",
    ),
    (
        &["functools"],
        &["reduce", "singledispatch"],
        "calls what it is given",
    ),
    (
        &["operator", "_operator"],
        &["call", "setitem", "delitem"],
        "calls or changes what it is given",
    ),
    (
        &["numpy", "numpy.lib.npyio", "numpy.lib._npyio_impl"],
        &[
            "load",
            "save",
            "savez",
            "fromfile",
            "loadtxt",
            "genfromtxt",
            "memmap",
            "DataSource",
        ],
        "opens files, or loads pickles from them",
    ),
    (
        &[
            "torch",
            "torch.serialization",
            "torch.storage",
            "torch.hub",
            "torch.jit",
            "torch.package",
            "torch.utils.model_zoo",
        ],
        &[
            "load",
            "save",
            "_load_from_bytes",
            "load_state_dict_from_url",
            "_legacy_load",
            "download_url_to_file",
            "_load",
            "load_url",
            "PackageImporter",
        ],
        "loads other pickles or files",
    ),
    (
        &[
            "joblib",
            "joblib.numpy_pickle",
            "sklearn.externals.joblib",
            "cloudpickle",
            "cloudpickle.cloudpickle",
            "cloudpickle.cloudpickle_fast",
            "pyspark.cloudpickle",
            "pyspark.cloudpickle.cloudpickle",
            "joblib.externals.cloudpickle",
        ],
        &["load", "loads", "dump", "register_pickle_by_value"],
        "loads other pickles",
    ),
    (
        &[
            "pandas",
            "pandas.io.pickle",
            "pandas.io.common",
            "pandas.core.computation.eval",
            "pandas.io.parsers",
        ],
        &[
            "read_pickle",
            "to_pickle",
            "read_csv",
            "read_hdf",
            "read_sql",
            "eval",
            "get_handle",
            "urlopen",
            "ExcelFile",
            "HDFStore",
        ],
        "opens files, loads pickles or evaluates code",
    ),
    (
        &["threading", "sched"],
        &["Thread", "Timer", "scheduler"],
        "starts threads",
    ),
    (
        &[
            "multiprocessing",
            "multiprocessing.util",
            "multiprocessing.process",
            "multiprocessing.context",
            "multiprocessing.pool",
            "concurrent.futures",
            "concurrent.futures.process",
            "concurrent.futures.thread",
        ],
        &[
            "Process",
            "Pool",
            "spawnv_passfds",
            "BaseProcess",
            "SpawnProcess",
            "ForkProcess",
            "ProcessPoolExecutor",
            "ThreadPoolExecutor",
            "get_context",
        ],
        "starts processes",
    ),
    (
        &["uuid"],
        &["_get_command_stdout", "_popen", "_find_mac", "_ip_getnode"],
        "runs commands",
    ),
    (
        &["logging", "logging.config", "logging.handlers"],
        &["FileHandler", "listen", "fileConfig", "dictConfig"],
        "opens files or sockets",
    ),
    (
        &["dataclasses", "collections", "typing", "_collections_abc"],
        &["_create_fn", "_eval_type", "get_type_hints", "ForwardRef"],
        "evaluates code",
    ),
    (
        &["dill._dill"],
        &[
            "_create_code",
            "_create_function",
            "_import_module",
            "_load_type",
            "_eval_repr",
        ],
        "makes code",
    ),
    (
        &["numexpr", "sympy", "numexpr.necompiler"],
        &["evaluate", "sympify", "lambdify"],
        "evaluates code",
    ),
    (
        &["yaml"],
        &["load", "unsafe_load", "full_load"],
        "makes any objects",
    ),
];

/// Modules of which every name below them is dangerous: packages that are mostly harmless otherwise.
const DANGEROUS_PREFIXES: &[(&str, &str)] = &[
    ("numpy.testing", "runs code from text"),
    ("numpy.distutils", "runs commands"),
    ("numpy.f2py", "runs commands"),
    ("torch.distributed", "starts processes"),
    ("torch.multiprocessing", "starts processes"),
    ("torch._inductor", "compiles and runs code"),
    ("torch._dynamo", "compiles and runs code"),
    ("torch.utils.cpp_extension", "runs compilers"),
    ("torch.utils.bottleneck", "runs scripts"),
    ("torch.utils.collect_env", "runs commands"),
    ("torch.utils._config_module", "evaluates code"),
    ("torch.fx", "makes code"),
    ("torch.testing", "runs code"),
    ("tensorflow.python.platform", "opens files"),
    ("distutils", "runs commands"),
];

/// Parts of dotted names, and names of attributes, behind which anything can be reached.
const REACHING: &[&str] = &[
    "os",
    "posix",
    "nt",
    "sys",
    "subprocess",
    "builtins",
    "__builtin__",
    "importlib",
    "shutil",
    "socket",
    "pickle",
    "_pickle",
    "ctypes",
    "marshal",
    "modules",
    "runpy",
    "pty",
    "system",
    "popen",
    "eval",
    "exec",
    "execfile",
    "spawn",
    "check_output",
    "check_call",
    "Popen",
    "import_module",
    "getoutput",
    "getstatusoutput",
    "unlink",
    "rmtree",
    "gi_frame",
    "f_globals",
    "f_builtins",
    "f_locals",
    "cr_frame",
    "tb_frame",
    "func_globals",
    "func_code",
    "loader",
    "load_module",
    "exec_module",
    "commands",
    "run_module",
    "run_path",
    "_import_module",
];

/// Attributes with underscores at both ends that say nothing.
const HARMLESS_ATTRIBUTES: &[&str] = &[
    "__new__",
    "__name__",
    "__doc__",
    "__class_getitem__",
    "__newobj__",
    "__newobj_ex__",
];

/// Globals that only make data. `*` stands for every name of the module that has no dot and no underscore in front.
const HARMLESS: &[(&[&str], &[&str])] = &[
    (
        &["builtins", "__builtin__"],
        &[
            "set",
            "frozenset",
            "list",
            "dict",
            "tuple",
            "bytes",
            "bytearray",
            "complex",
            "object",
            "int",
            "float",
            "str",
            "bool",
            "slice",
            "range",
            "xrange",
            "unicode",
            "long",
            "basestring",
            "NotImplemented",
            "Ellipsis",
            "BaseException",
            "Exception",
            "StopIteration",
            "StopAsyncIteration",
            "KeyboardInterrupt",
            "GeneratorExit",
            "SystemExit",
            "BaseExceptionGroup",
            "ExceptionGroup",
            "enumerate",
            "zip",
            "reversed",
            "iter",
        ],
    ),
    (&["exceptions"], &["*"]),
    (
        &["collections", "_collections"],
        &[
            "OrderedDict",
            "defaultdict",
            "deque",
            "Counter",
            "ChainMap",
            "UserDict",
            "UserList",
            "UserString",
        ],
    ),
    (
        &["datetime"],
        &[
            "date",
            "time",
            "datetime",
            "timedelta",
            "timezone",
            "tzinfo",
        ],
    ),
    (
        &["_pydatetime"],
        &["date", "time", "datetime", "timedelta", "timezone"],
    ),
    (&["zoneinfo"], &["ZoneInfo", "ZoneInfo._unpickle"]),
    (
        &["decimal", "_decimal", "_pydecimal"],
        &["Decimal", "Context", "DecimalTuple"],
    ),
    (&["fractions"], &["Fraction"]),
    (&["uuid"], &["UUID", "SafeUUID"]),
    (&["ipaddress"], &["*"]),
    (
        &["pathlib", "pathlib._local"],
        &[
            "PurePosixPath",
            "PosixPath",
            "PureWindowsPath",
            "WindowsPath",
            "Path",
            "PurePath",
        ],
    ),
    (&["array"], &["array", "_array_reconstructor"]),
    (
        &["copyreg", "copy_reg"],
        &["_reconstructor", "__newobj__", "__newobj_ex__"],
    ),
    (&["_codecs", "codecs"], &["encode"]),
    (&["io", "_io"], &["BytesIO", "StringIO"]),
    (&["re"], &["_compile"]),
    (&["random"], &["Random"]),
    (&["signal"], &["Signals", "Handlers"]),
    (&["socket"], &["AddressFamily", "SocketKind"]),
    (&["http"], &["HTTPStatus", "HTTPMethod"]),
    (&["http.cookies"], &["SimpleCookie", "BaseCookie", "Morsel"]),
    (
        &["http.cookiejar"],
        &["CookieJar", "Cookie", "DefaultCookiePolicy"],
    ),
    (
        &["urllib.parse"],
        &[
            "ParseResult",
            "SplitResult",
            "DefragResult",
            "ParseResultBytes",
            "SplitResultBytes",
            "DefragResultBytes",
        ],
    ),
    (
        &["types"],
        &[
            "SimpleNamespace",
            "NoneType",
            "EllipsisType",
            "NotImplementedType",
        ],
    ),
    (
        &["os"],
        &[
            "stat_result",
            "terminal_size",
            "times_result",
            "uname_result",
            "statvfs_result",
            "sched_param",
        ],
    ),
    (&["time"], &["struct_time"]),
    (
        &[
            "numpy.core.multiarray",
            "numpy._core.multiarray",
            "numpy.core._multiarray_umath",
            "numpy._core._multiarray_umath",
        ],
        &["_reconstruct", "scalar", "ndarray", "dtype"],
    ),
    (
        &["numpy.core.numeric", "numpy._core.numeric"],
        &["_frombuffer"],
    ),
    (
        &["numpy"],
        &[
            "ndarray",
            "dtype",
            "matrix",
            "recarray",
            "record",
            "bool_",
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "longdouble",
            "complex64",
            "complex128",
            "str_",
            "bytes_",
            "void",
            "object_",
            "datetime64",
            "timedelta64",
            "intc",
            "uintc",
            "longlong",
            "ulonglong",
        ],
    ),
    (&["numpy.dtypes"], &["*"]),
    (
        &["numpy.ma.core"],
        &["_mareconstruct", "MaskedArray", "MaskedConstant"],
    ),
    (
        &["numpy.random._pickle"],
        &[
            "__generator_ctor",
            "__bit_generator_ctor",
            "__randomstate_ctor",
        ],
    ),
    (&["numpy.random._mt19937"], &["MT19937"]),
    (&["numpy.random._pcg64"], &["PCG64"]),
    (&["joblib.numpy_pickle"], &["NumpyArrayWrapper"]),
    (
        &[
            "pandas.core.frame",
            "pandas.core.series",
            "pandas",
            "pandas.core.api",
        ],
        &[
            "DataFrame",
            "Series",
            "Index",
            "RangeIndex",
            "MultiIndex",
            "DatetimeIndex",
            "CategoricalIndex",
            "StringDtype",
            "CategoricalDtype",
            "DatetimeTZDtype",
        ],
    ),
    (
        &[
            "pandas.core.indexes.base",
            "pandas.core.indexes.range",
            "pandas.core.indexes.datetimes",
            "pandas.core.indexes.multi",
            "pandas.core.indexes.category",
            "pandas.core.indexes.interval",
            "pandas.core.indexes.period",
            "pandas.core.indexes.timedeltas",
            "pandas.core.indexes.numeric",
            "pandas.core.indexes.frozen",
        ],
        &[
            "_new_Index",
            "_new_DatetimeIndex",
            "_new_PeriodIndex",
            "Index",
            "RangeIndex",
            "DatetimeIndex",
            "MultiIndex",
            "CategoricalIndex",
            "IntervalIndex",
            "PeriodIndex",
            "TimedeltaIndex",
            "Int64Index",
            "UInt64Index",
            "Float64Index",
            "FrozenList",
        ],
    ),
    (
        &[
            "pandas.core.internals.managers",
            "pandas._libs.internals",
            "pandas.core.internals.blocks",
        ],
        &[
            "BlockManager",
            "SingleBlockManager",
            "_unpickle_block",
            "new_block",
            "make_block",
        ],
    ),
    (&["pandas.core.flags"], &["Flags"]),
    (
        &[
            "pandas._libs.tslibs.timestamps",
            "pandas._libs.tslibs.timedeltas",
            "pandas._libs.tslibs.period",
            "pandas._libs.tslibs.offsets",
            "pandas._libs.tslibs.nattype",
            "pandas._libs.interval",
            "pandas._libs.missing",
        ],
        &[
            "_unpickle_timestamp",
            "_timedelta_unpickle",
            "Timestamp",
            "Timedelta",
            "Period",
            "NaTType",
            "_nat_unpickle",
            "Interval",
            "NAType",
            "Day",
            "Hour",
            "Minute",
            "Second",
            "Milli",
            "Micro",
            "Nano",
            "MonthEnd",
            "MonthBegin",
            "BusinessDay",
            "Week",
        ],
    ),
    (&["pandas._libs.arrays"], &["__pyx_unpickle_NDArrayBacked"]),
    (
        &[
            "pandas.arrays",
            "pandas.core.arrays.categorical",
            "pandas.core.arrays.datetimes",
            "pandas.core.arrays.timedeltas",
            "pandas.core.arrays.period",
            "pandas.core.arrays.integer",
            "pandas.core.arrays.floating",
            "pandas.core.arrays.boolean",
            "pandas.core.arrays.string_",
            "pandas.core.arrays.string_arrow",
            "pandas.core.arrays.interval",
            "pandas.core.arrays.numpy_",
            "pandas.core.arrays.sparse.array",
            "pandas.core.dtypes.dtypes",
        ],
        &["*"],
    ),
    (
        &["torch._utils"],
        &[
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
            "_rebuild_qtensor",
            "_rebuild_sparse_tensor",
            "_rebuild_sparse_csr_tensor",
            "_rebuild_meta_tensor_no_storage",
            "_rebuild_device_tensor_from_numpy",
        ],
    ),
    (&["torch._tensor"], &["_rebuild_from_type_v2"]),
    (
        &["torch", "torch.cuda", "torch.storage"],
        &[
            "FloatStorage",
            "DoubleStorage",
            "HalfStorage",
            "LongStorage",
            "IntStorage",
            "ShortStorage",
            "CharStorage",
            "ByteStorage",
            "BoolStorage",
            "BFloat16Storage",
            "ComplexFloatStorage",
            "ComplexDoubleStorage",
            "UntypedStorage",
            "TypedStorage",
            "Tensor",
            "Size",
            "device",
            "dtype",
            "float16",
            "float32",
            "float64",
            "bfloat16",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "bool",
            "complex64",
            "complex128",
            "strided",
            "QUInt8Storage",
            "QInt8Storage",
            "QInt32Storage",
        ],
    ),
    (&["torch.nn.parameter"], &["Parameter", "Buffer"]),
    (&["torch.serialization"], &["_get_layout"]),
    (
        &[
            "scipy.sparse._csr",
            "scipy.sparse._csc",
            "scipy.sparse._coo",
            "scipy.sparse.csr",
            "scipy.sparse.csc",
        ],
        &[
            "csr_matrix",
            "csc_matrix",
            "coo_matrix",
            "csr_array",
            "csc_array",
            "coo_array",
        ],
    ),
];

/// Helpers of cloudpickle and its like, and what they do with code.
const BY_VALUE: &[&str] = &[
    "_make_function",
    "_make_skel_func",
    "_fill_function",
    "_make_skeleton_class",
    "_make_skeleton_enum",
    "_builtin_type",
    "_class_setstate",
    "_function_setstate",
    "_make_cell",
    "_make_empty_cell",
    "_cell_set",
    "cell_set",
    "subimport",
    "dynamic_subimport",
    "_make_typevar",
    "_make_dict_keys",
    "_make_dict_values",
    "_make_dict_items",
    "instance",
    "_get_cell_contents",
    "_file_reconstructor",
    "_rehydrate_skeleton_class",
    "_make__new__factory",
    "_get_dataclass_field_type_sentinel",
];

/// What a name says, and why if it is not harmless.
#[must_use]
pub fn judge(module: &str, name: &str) -> (Verdict, &'static str) {
    if is_harmless(module, name) {
        return (Verdict::Ok, "");
    }
    if is_by_value(module, name) {
        return (
            Verdict::Unknown,
            "rebuilds functions and classes from code in the pickle",
        );
    }
    match danger(module, name) {
        // Exceptions of any library travel between processes all the time, and their classes do no more than hold a message.
        Some(_) if is_exception(name) => {}
        Some(reason) => return (Verdict::Dangerous, reason),
        None => {}
    }
    (Verdict::Unknown, "is on no list")
}

/// Whether this is a helper that rebuilds what travels by value.
#[must_use]
pub fn is_by_value(module: &str, name: &str) -> bool {
    module
        .split('.')
        .any(|part| matches!(part, "cloudpickle" | "cloudpickle_fast"))
        && BY_VALUE.contains(&name)
        || module == "quickpickle._native" && BY_VALUE.contains(&name)
}

/// Whether looking up this attribute may reach anything at all.
#[must_use]
pub fn is_reaching(attribute: &str) -> bool {
    attribute.split('.').any(|part| {
        REACHING.contains(&part)
            || (part.starts_with("__")
                && part.ends_with("__")
                && !HARMLESS_ATTRIBUTES.contains(&part))
    })
}

fn is_exception(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ["Error", "Exception", "Warning"]
            .iter()
            .any(|end| name.ends_with(end))
}

fn is_harmless(module: &str, name: &str) -> bool {
    let plain = !name.starts_with('_') && !name.contains('.');
    // Python has many exceptions built in.
    if matches!(module, "builtins" | "__builtin__") && is_exception(name) {
        return true;
    }
    HARMLESS.iter().any(|(modules, names)| {
        modules.contains(&module) && (names.contains(&name) || (plain && names.contains(&"*")))
    })
}

fn danger(module: &str, name: &str) -> Option<&'static str> {
    let top = module.split('.').next().unwrap_or_default();
    let by_module = DANGEROUS_MODULES
        .iter()
        .find(|(modules, _)| modules.contains(&top))
        .map(|(_, reason)| *reason);
    let first = name.split('.').next().unwrap_or_default();
    let by_name = DANGEROUS_NAMES
        .iter()
        .find(|(modules, names, _)| modules.contains(&module) && names.contains(&first))
        .map(|(_, _, reason)| *reason);
    let by_prefix = DANGEROUS_PREFIXES
        .iter()
        .find(|(prefix, _)| {
            module
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(|(_, reason)| *reason);
    let reaching = (is_reaching(name) && !is_by_value(module, name))
        .then_some("goes through an attribute behind which anything can be reached");
    by_module.or(by_name).or(by_prefix).or(reaching)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_is_listed_and_nothing_else() {
        for (module, name) in [
            ("builtins", "set"),
            ("builtins", "KeyError"),
            ("datetime", "date"),
            ("numpy", "dtype"),
        ] {
            assert_eq!(judge(module, name).0, Verdict::Ok, "{module}.{name}");
        }
        for (module, name) in [
            ("__main__", "Point"),
            ("sklearn.svm", "SVC"),
            ("builtins", "getattr"),
            ("datetime", "date.today"),
        ] {
            assert_eq!(judge(module, name).0, Verdict::Unknown, "{module}.{name}");
        }
    }

    #[test]
    fn ways_to_what_is_dangerous() {
        for (module, name) in [
            ("os", "system"),
            ("posix", "popen"),
            ("builtins", "eval"),
            ("__builtin__", "execfile"),
            ("os.path", "os.system"),
            ("torch.serialization", "os"),
            ("collections", "abc.sys.modules"),
            ("datetime", "sys"),
            ("numpy.testing._private.utils", "runstring"),
            ("builtins", "str.__class__"),
            ("commands", "getoutput"),
            ("asyncio.unix_events", "x"),
            ("mymodule", "eval"),
            ("builtins", "__import__"),
            ("copyreg", "add_extension"),
            ("ipaddress", "sys.modules"),
        ] {
            assert_eq!(judge(module, name).0, Verdict::Dangerous, "{module}.{name}");
        }
    }
}
