//! The extension module `quickpickle._native`: a table of what Python sees.

#[cfg(Py_GIL_DISABLED)]
compile_error!(
    "quickpickle rests on reference counts and on the GIL; free-threaded builds of CPython are not supported yet"
);

mod api;
mod cloud;
mod ffi;
mod hook;
mod options;
mod pickler;
mod python_types;
mod recovery;
mod slot;
mod spark;
mod tools;
mod unpickler;

use pyo3::prelude::*;

/// Implementation of quickpickle; use the names in `quickpickle`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::api::{dump, load};
    #[pymodule_export]
    use super::cloud::api::{
        _class_items, _extract_code_globals, _is_by_reference, _lookup, _pickle_by_value_modules,
        _reduce_file, _set_default_reducers, _set_reducers, _types_name, _which_module, cloud_dump,
    };
    #[pymodule_export]
    use super::cloud::by_value::{
        list_registry_pickle_by_value, register_pickle_by_value, unregister_pickle_by_value,
    };
    #[pymodule_export]
    use super::cloud::reconstruct::{Reconstructor, reset_classes};
    #[pymodule_export]
    use super::pickler::{CloudPickler, DefaultTable, Pickler, PicklerMemo};
    #[pymodule_export]
    use super::recovery::{RecoveryEngine, recovery_codec_name};
    #[pymodule_export]
    use super::spark::{TimelyWriter, spark_state_dumps, spark_state_loads, spark_state_prepare};
    #[pymodule_export]
    use super::tools::{
        tools_dis, tools_explain, tools_optimize, tools_scan, tools_scan_rules, tools_stats,
    };
    #[pymodule_export]
    use super::unpickler::{Unpickler, UnpicklerMemo};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::ffi::build::prepare(module.py())?;
        crate::ffi::instance::check_layout(module.py())?;
        crate::ffi::dict_table::check_layout(module.py())?;
        #[cfg(Py_3_13)]
        crate::hook::prepare(module.py());
        let dumps = wrap_pyfunction!(crate::api::dumps, module)?.into_any();
        let loads = wrap_pyfunction!(crate::api::loads, module)?.into_any();
        crate::cloud::known::prepare(module.py());
        crate::cloud::reconstruct::add(module)?;
        let cloud_dumps = wrap_pyfunction!(crate::cloud::api::cloud_dumps, module)?.into_any();
        crate::ffi::fastcall::add(module, [dumps, loads, cloud_dumps])?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
