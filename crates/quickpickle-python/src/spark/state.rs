//! State values of `transformWithState`: scalars of NumPy and pandas made Python's own, fields converted as the schema says,
//! and pickled, in one pass.
//!
//! Types are told by identity alone: `np.float64` is a `float` and `pd.Timestamp` a `datetime` to any other check. What is
//! not known here, rows and named tuples among it, is answered by None, and PySpark's own code does it all. What must stay
//! true: nothing has been called or changed when None is answered, and the bytes are those PySpark's code would give.

use std::borrow::Cow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList,
    PyModule, PyString, PyTimeAccess, PyTuple, PyType, PyTzInfoAccess,
};

use crate::ffi::buffer::Exported;
use crate::ffi::{clock, outside};
use crate::options::HIGHEST_PROTOCOL;
use crate::pickler::{Settings, with_engine};
use crate::unpickler::{Hooks, load_bytes};

/// Containers inside of containers, beyond which PySpark's own recursion may say what is wrong.
const DEEPEST: usize = 50;

/// What `PickleSerializer.dumps` is asked to do.
static SETTINGS: Settings = Settings {
    protocol: HIGHEST_PROTOCOL,
    fix_imports: true,
    fast: false,
    write: None,
    buffer_callback: None,
    persistent_id: None,
    reducer_override: None,
    dispatch_table: None,
    cloud: None,
};

/// PySpark's classes for schemas, whose methods have been found to be the known ones.
struct Schemas {
    of_structs: Py<PyType>,
    of_timestamps: Py<PyType>,
}

static SCHEMAS: PyOnceLock<Schemas> = PyOnceLock::new();

/// Classes of NumPy and pandas; looked up once NumPy is there.
struct Foreign {
    float64: Py<PyType>,
    /// Whose `tolist` gives Python's own.
    scalars: Vec<Py<PyType>>,
    /// None while pandas is not imported.
    timestamp: Option<Py<PyType>>,
}

static NUMPY_ALONE: PyOnceLock<Foreign> = PyOnceLock::new();
static WITH_PANDAS: PyOnceLock<Foreign> = PyOnceLock::new();

const SCALARS: [&str; 16] = [
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool_",
    "str_",
    "bytes_",
    "datetime64",
    "timedelta64",
    "complex128",
];

/// How a value is made Python's own.
enum Kind {
    /// It is already.
    Plain,
    Float64,
    Scalar,
    Timestamp,
    List,
    Tuple,
    Dict,
    Unknown,
}

/// Tell of PySpark's classes `StructType` and `TimestampType`.
#[pyfunction]
#[pyo3(signature = (struct_type, timestamp_type, /))]
pub(crate) fn spark_state_prepare(
    struct_type: Bound<'_, PyType>,
    timestamp_type: Bound<'_, PyType>,
) {
    let py = struct_type.py();
    // A second time, which is PySpark imported anew, changes nothing: then no schema is of a known class.
    let _ = SCHEMAS.set(
        py,
        Schemas {
            of_structs: struct_type.unbind(),
            of_timestamps: timestamp_type.unbind(),
        },
    );
}

/// The pickle of a row of state under its schema; None where PySpark's own code is to make it.
#[pyfunction]
#[pyo3(signature = (schema, data, /))]
pub(crate) fn spark_state_dumps<'py>(
    schema: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = schema.py();
    let Some(schemas) = SCHEMAS.get(py) else {
        return Ok(None);
    };
    if !schema.get_type().is(&schemas.of_structs) {
        return Ok(None);
    }
    let Ok(row) = data.cast_exact::<PyTuple>() else {
        return Ok(None);
    };
    let fields = schema.getattr(intern!(py, "fields"))?;
    let Ok(fields) = fields.cast_exact::<PyList>() else {
        return Ok(None);
    };
    if fields.len() != row.len() {
        return Ok(None);
    }
    // First of all look at everything, so that nothing is called twice.
    for value in row.iter_borrowed() {
        if !is_known(&value, 0) {
            return Ok(None);
        }
    }
    let conversions = if schema
        .getattr(intern!(py, "_needSerializeAnyField"))?
        .is_truthy()?
    {
        let needed = schema.getattr(intern!(py, "_needConversion"))?;
        match needed.cast_into_exact::<PyList>() {
            Ok(needed) if needed.len() == row.len() => Some(needed),
            _ => return Ok(None),
        }
    } else {
        None
    };
    let mut values = Vec::with_capacity(row.len());
    for (at, value) in row.iter().enumerate() {
        let converts = match &conversions {
            Some(needed) => needed.get_item(at)?.is_truthy()?,
            None => false,
        };
        values.push(if converts {
            converted(&fields.get_item(at)?, value, schemas)?
        } else {
            normal(value)?
        });
    }
    let row = PyTuple::new(py, values)?.into_any();
    with_engine(py, |engine| {
        engine.dump(&row, &SETTINGS)?;
        engine.take_bytes(py)
    })
    .map(Some)
}

/// What a row of state was pickled from by the JVM. `find_class` is asked for each name.
#[pyfunction]
#[pyo3(signature = (data, find_class, /))]
pub(crate) fn spark_state_loads<'py>(
    data: &Bound<'py, PyAny>,
    find_class: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let hooks = Hooks {
        fix_imports: true,
        encoding: Cow::Borrowed(c"bytes"),
        errors: Cow::Borrowed(c"strict"),
        buffers: None,
        find_class: Some(find_class),
        owner: None,
        persistent_load: None,
    };
    if let Ok(data) = data.cast_exact::<PyBytes>() {
        return load_bytes(py, data.as_bytes(), &hooks);
    }
    let exported = Exported::of(data)?;
    load_bytes(py, exported.bytes(), &hooks)
}

/// A value of a field that needs conversion, after that.
fn converted<'py>(
    field: &Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    schemas: &Schemas,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let field_type = field.getattr(intern!(py, "dataType"))?;
    let to_timestamp = field_type.get_type().is(&schemas.of_timestamps);
    if to_timestamp
        && matches!(kind(&value), Kind::Timestamp)
        && let Some(micros) = micros(&value)
        && value.getattr(intern!(py, "nanosecond"))?.eq(0)?
    {
        return Ok(PyInt::new(py, micros).into_any());
    }
    let value = normal(value)?;
    if to_timestamp
        && value.is_exact_instance_of::<PyDateTime>()
        && let Some(micros) = micros(&value)
    {
        return Ok(PyInt::new(py, micros).into_any());
    }
    outside::call1(&field.getattr(intern!(py, "toInternal"))?, &value)
}

/// Microseconds since 1970 of a datetime without a time zone, in the local one.
fn micros(value: &Bound<'_, PyAny>) -> Option<i64> {
    let time = value.cast::<PyDateTime>().ok()?;
    if time.get_tzinfo().is_some() {
        return None;
    }
    let date = [
        time.get_year(),
        i32::from(time.get_month()),
        i32::from(time.get_day()),
    ];
    let clock = [time.get_hour(), time.get_minute(), time.get_second()].map(i32::from);
    let seconds = clock::local_seconds(date, clock)?;
    Some(seconds * 1_000_000 + i64::from(time.get_microsecond()))
}

/// Whether a value, and all in it, is of known kinds.
fn is_known(value: &Bound<'_, PyAny>, depth: usize) -> bool {
    match kind(value) {
        Kind::Unknown => false,
        Kind::Plain | Kind::Float64 | Kind::Scalar | Kind::Timestamp => true,
        _ if depth >= DEEPEST => false,
        Kind::List => value
            .cast::<PyList>()
            .is_ok_and(|list| list.iter().all(|item| is_known(&item, depth + 1))),
        Kind::Tuple => value
            .cast::<PyTuple>()
            .is_ok_and(|tuple| tuple.iter_borrowed().all(|item| is_known(&item, depth + 1))),
        Kind::Dict => value.cast::<PyDict>().is_ok_and(|dict| {
            dict.iter()
                .all(|(key, value)| is_known(&key, depth + 1) && is_known(&value, depth + 1))
        }),
    }
}

/// The value as Python's own; containers are made anew, as PySpark makes them.
fn normal(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = value.py();
    Ok(match kind(&value) {
        Kind::Plain | Kind::Unknown => value,
        Kind::Float64 => PyFloat::new(py, value.cast::<PyFloat>()?.value()).into_any(),
        Kind::Scalar => outside::call0(&value.getattr(intern!(py, "tolist"))?)?,
        Kind::Timestamp => outside::call0(&value.getattr(intern!(py, "to_pydatetime"))?)?,
        Kind::List => {
            let made = PyList::empty(py);
            for item in value.cast::<PyList>()?.iter() {
                made.append(normal(item)?)?;
            }
            made.into_any()
        }
        Kind::Tuple => {
            let items: Vec<_> = value
                .cast::<PyTuple>()?
                .iter()
                .map(normal)
                .collect::<PyResult<_>>()?;
            PyTuple::new(py, items)?.into_any()
        }
        Kind::Dict => {
            let made = PyDict::new(py);
            for (key, value) in value.cast::<PyDict>()?.iter() {
                made.set_item(normal(key)?, normal(value)?)?;
            }
            made.into_any()
        }
    })
}

fn kind(value: &Bound<'_, PyAny>) -> Kind {
    let py = value.py();
    let class = value.get_type();
    let is = |other: &Bound<'_, PyType>| class.is(other);
    if value.is_none()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyString>()
    {
        return Kind::Plain;
    }
    if let Some(foreign) = foreign(py) {
        if is(foreign.float64.bind(py)) {
            return Kind::Float64;
        }
        if foreign
            .timestamp
            .as_ref()
            .is_some_and(|stamp| is(stamp.bind(py)))
        {
            return Kind::Timestamp;
        }
        if foreign.scalars.iter().any(|scalar| is(scalar.bind(py))) {
            return Kind::Scalar;
        }
    }
    if value.is_exact_instance_of::<PyList>() {
        return Kind::List;
    }
    if value.is_exact_instance_of::<PyTuple>() {
        return Kind::Tuple;
    }
    if value.is_exact_instance_of::<PyDict>() {
        return Kind::Dict;
    }
    if value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyDateTime>()
        || value.is_exact_instance_of::<PyDate>()
        || value.is_exact_instance_of::<PyDelta>()
    {
        return Kind::Plain;
    }
    Kind::Unknown
}

/// NumPy's and pandas' classes, if NumPy is imported: before that there can be no value of them.
fn foreign(py: Python<'_>) -> Option<&'static Foreign> {
    if let Some(found) = WITH_PANDAS.get(py) {
        return Some(found);
    }
    look(py)
}

#[cold]
fn look(py: Python<'_>) -> Option<&'static Foreign> {
    let imported = |name: &str| -> Option<Bound<'_, PyModule>> {
        let modules = py.import("sys").ok()?.getattr("modules").ok()?;
        modules.get_item(name).ok()?.cast_into::<PyModule>().ok()
    };
    let class = |module: &Bound<'_, PyModule>, name: &str| -> Option<Py<PyType>> {
        let found = module.as_any().getattr_opt(name).ok()??;
        found.cast_into::<PyType>().ok().map(Bound::unbind)
    };
    if let Some(found) = NUMPY_ALONE.get(py)
        && imported("pandas").is_none()
    {
        return Some(found);
    }
    let numpy = imported("numpy")?;
    let timestamp = imported("pandas").and_then(|pandas| class(&pandas, "Timestamp"));
    let complete = timestamp.is_some();
    let found = Foreign {
        float64: class(&numpy, "float64")?,
        scalars: SCALARS
            .iter()
            .filter_map(|name| class(&numpy, name))
            .collect(),
        timestamp,
    };
    let place = if complete { &WITH_PANDAS } else { &NUMPY_ALONE };
    let _ = place.set(py, found);
    place.get(py)
}
