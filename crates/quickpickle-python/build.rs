//! Makes the interpreter's version known to the code (`cfg(Py_3_x)`) and refuses versions whose objects it cannot read.

use pyo3_build_config::{PythonVersion, get};

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    println!(
        "cargo::rustc-check-cfg=cfg(py_sys_config, values(\"Py_DEBUG\", \"Py_REF_DEBUG\", \"Py_TRACE_REFS\"))"
    );
    let config = get();
    let version = config.version();
    let supported = PythonVersion {
        major: 3,
        minor: 10,
    }..=PythonVersion {
        major: 3,
        minor: 14,
    };
    if !supported.contains(&version) {
        println!(
            "cargo::error=quickpickle reads objects of CPython 3.10 to 3.14 directly, and was asked to build for {version}"
        );
    }
}
