//! Making objects: what the unpickler needs faster than the bindings have it.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use super::compat;
pub(crate) use super::outside::call_with as call;

/// Headers of objects as this interpreter makes them, to be copied: less work than asking for each object anew, and right
/// whatever the headers hold, as long as only length and value differ between objects of a kind.
struct Templates {
    /// Header of an ASCII str.
    text: ffi::PyASCIIObject,
    /// A positive and a negative int of one digit: refcount, type, and the word that holds sign and size.
    ints: [[usize; 3]; 2],
    /// The ints that the interpreter has ready.
    small: [*mut ffi::PyObject; SMALL],
}

/// Ints that every CPython keeps: -5 to 256.
const SMALL: usize = 262;
const SMALL_MIN: i32 = -5;

// SAFETY: plain values and pointers to objects that live as long as the interpreter; read with the GIL held.
unsafe impl Send for Templates {}
// SAFETY: as above.
unsafe impl Sync for Templates {}

static TEMPLATES: PyOnceLock<Templates> = PyOnceLock::new();

/// Whether objects may be made from copied headers: not where the interpreter counts or lists all objects it makes.
const COPIES_HEADERS: bool = cfg!(not(any(
    Py_GIL_DISABLED,
    py_sys_config = "Py_DEBUG",
    py_sys_config = "Py_REF_DEBUG",
    py_sys_config = "Py_TRACE_REFS"
)));

/// Makes the templates. Called once, when the module is imported.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    TEMPLATES
        .get_or_try_init(py, || {
            let mut small = [std::ptr::null_mut(); SMALL];
            // SAFETY: new objects are read as what they are, and kept alive until then; the small ints are never freed,
            // because a reference to each is kept for ever.
            unsafe {
                for (at, place) in small.iter_mut().enumerate() {
                    let value = at as i32 + SMALL_MIN;
                    *place = Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLong(value.into()))?
                        .into_ptr();
                }
                let int = |value| Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLong(value));
                let header = |value| -> PyResult<[usize; 3]> {
                    let mut words = *int(value)?.as_ptr().cast::<[usize; 3]>();
                    words[0] = fresh(words[0]);
                    Ok(words)
                };
                let text = Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_New(2, 127))?;
                let mut text_header = std::ptr::read(text.as_ptr().cast::<ffi::PyASCIIObject>());
                text_header.length = 0;
                let templates = Templates {
                    text: text_header,
                    ints: [header(1000)?, header(-1000)?],
                    small,
                };
                let accented = pyo3::types::PyString::new(py, "\u{e9}t\u{e9}");
                if !compat::is_compact_ascii(text.as_ptr())
                    || compat::is_compact_ascii(accented.as_ptr())
                {
                    return Err(PyImportError::new_err(
                        "strs of this CPython do not look as expected",
                    ));
                }
                // Only its header was wanted: fill it, so that what is dropped is a proper str.
                std::ptr::write_bytes(
                    text.as_ptr()
                        .cast::<ffi::PyASCIIObject>()
                        .add(1)
                        .cast::<u8>(),
                    b'x',
                    2,
                );
                Ok(templates)
            }
        })
        .map(drop)
}

/// The first word of an object to which there is one reference. It may hold flags beside the count.
fn fresh(word: usize) -> usize {
    debug_assert_eq!(word as u32, 1);
    word
}

/// An int.
#[inline(always)]
pub(crate) fn int(py: Python<'_>, value: i32) -> PyResult<Bound<'_, PyAny>> {
    let index = value.wrapping_sub(SMALL_MIN) as u32 as usize;
    if let Some(templates) = TEMPLATES.get(py) {
        if let Some(&small) = templates.small.get(index) {
            // SAFETY: a live object.
            return Ok(unsafe { Bound::from_borrowed_ptr(py, small) });
        }
        if COPIES_HEADERS && value.unsigned_abs() < 1 << 30 {
            // SAFETY: room for an int of one digit, filled as the interpreter does it: header, then the digit.
            unsafe {
                let made = ffi::PyObject_Malloc(INT_SIZE).cast::<usize>();
                if !made.is_null() {
                    made.cast::<[usize; 3]>()
                        .write(templates.ints[usize::from(value < 0)]);
                    made.add(3).cast::<u32>().write(value.unsigned_abs());
                    return Ok(Bound::from_owned_ptr(py, made.cast()));
                }
            }
        }
    }
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLong(value.into())) }
}

/// Bytes of an int of one digit.
const INT_SIZE: usize = 32;

/// A float.
#[inline(always)]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(value)) }
}

/// An int from little-endian two's complement.
pub(crate) fn long<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Some(small) = quickpickle_format::int::from_le_bytes(bytes) {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    // SAFETY: the bytes are alive during the call; a new reference, or null with an exception.
    unsafe {
        Bound::from_owned_ptr_or_err(py, _PyLong_FromByteArray(bytes.as_ptr(), bytes.len(), 1, 1))
    }
}

unsafe extern "C" {
    fn _PyLong_FromByteArray(
        bytes: *const u8,
        count: usize,
        little_endian: std::ffi::c_int,
        is_signed: std::ffi::c_int,
    ) -> *mut ffi::PyObject;
}

/// A str from UTF-8 in which lone surrogates may stand.
#[inline(always)]
pub(crate) fn text<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if !utf8.is_ascii() || utf8.len() <= 1 {
        return text_decoded(py, utf8);
    }
    if COPIES_HEADERS && let Some(templates) = TEMPLATES.get(py) {
        let header = size_of::<ffi::PyASCIIObject>();
        // SAFETY: room for a str of as many ASCII characters and the zero byte after them, filled as the interpreter does it.
        unsafe {
            let made = ffi::PyObject_Malloc(header + utf8.len() + 1);
            if !made.is_null() {
                let object = made.cast::<ffi::PyASCIIObject>();
                std::ptr::copy_nonoverlapping(&raw const templates.text, object, 1);
                (*object).length = utf8.len() as ffi::Py_ssize_t;
                let data = object.add(1).cast::<u8>();
                std::ptr::copy_nonoverlapping(utf8.as_ptr(), data, utf8.len());
                *data.add(utf8.len()) = 0;
                return Ok(Bound::from_owned_ptr(py, made.cast()));
            }
        }
    }
    // SAFETY: a new str for `len` ASCII characters, not yet seen by anyone, gets exactly as many; they follow the header.
    unsafe {
        let made = ffi::PyUnicode_New(utf8.len() as ffi::Py_ssize_t, 127);
        let bound = Bound::from_owned_ptr_or_err(py, made)?;
        let data = made.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
        std::ptr::copy_nonoverlapping(utf8.as_ptr(), data, utf8.len());
        Ok(bound)
    }
}

#[inline(never)]
fn text_decoded<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the bytes are alive during the call; a new reference, or null with an exception.
    unsafe {
        let data = utf8.as_ptr().cast();
        let made = ffi::PyUnicode_DecodeUTF8(
            data,
            utf8.len() as ffi::Py_ssize_t,
            c"surrogatepass".as_ptr(),
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// A str decoded as Python's `str(bytes, encoding, errors)`.
pub(crate) fn decoded<'py>(
    py: Python<'py>,
    bytes: &[u8],
    encoding: &std::ffi::CStr,
    errors: &std::ffi::CStr,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: all arguments are alive during the call; a new reference, or null with an exception.
    unsafe {
        let data = bytes.as_ptr().cast();
        let len = bytes.len() as ffi::Py_ssize_t;
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyUnicode_Decode(data, len, encoding.as_ptr(), errors.as_ptr()),
        )
    }
}

/// A str from a line in raw-unicode-escape.
pub(crate) fn raw_unicode_escaped<'py>(
    py: Python<'py>,
    line: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    decoded(py, line, c"raw-unicode-escape", c"strict")
}

/// bytes from a line with Python's backslash escapes.
pub(crate) fn escaped_bytes<'py>(py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    unsafe extern "C" {
        fn PyBytes_DecodeEscape(
            text: *const std::ffi::c_char,
            len: ffi::Py_ssize_t,
            errors: *const std::ffi::c_char,
            unicode: ffi::Py_ssize_t,
            recode: *const std::ffi::c_char,
        ) -> *mut ffi::PyObject;
    }
    // SAFETY: the line is alive during the call; a new reference, or null with an exception.
    unsafe {
        let null = std::ptr::null();
        let made = PyBytes_DecodeEscape(
            line.as_ptr().cast(),
            line.len() as ffi::Py_ssize_t,
            null,
            0,
            null,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// An int from text, as `int(text, base)`.
pub(crate) fn int_from_text<'py>(
    py: Python<'py>,
    text: &std::ffi::CStr,
    base: i32,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the text is alive during the call; a new reference, or null with an exception.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyLong_FromString(text.as_ptr(), std::ptr::null_mut(), base),
        )
    }
}

/// A float from a line of text; an error unless all of it is one.
pub(crate) fn float_from_text(py: Python<'_>, text: &std::ffi::CStr) -> PyResult<f64> {
    let mut end = std::ptr::null_mut();
    // SAFETY: the text is alive during the call, which leaves `end` inside of it.
    unsafe {
        let value = ffi::PyOS_string_to_double(text.as_ptr(), &mut end, std::ptr::null_mut());
        if value == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return Err(PyErr::fetch(py));
        }
        if !matches!(*end as u8, b'\n' | 0) {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "could not convert string to float",
            ));
        }
        Ok(value)
    }
}

/// `class.__new__(class, *args, **kwargs)`, through the class's slot.
pub(crate) fn new_instance<'py>(
    class: &Bound<'py, PyType>,
    args: &Bound<'py, PyAny>,
    kwargs: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ty = class.as_type_ptr();
    // SAFETY: the class is alive and the caller has checked that it has `tp_new`, that `args` is a tuple and `kwargs` a
    // dict.
    unsafe {
        match (*ty).tp_new {
            Some(new) => {
                let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
                let made = super::outside::new_instance(new, ty, args.as_ptr(), kwargs);
                Bound::from_owned_ptr_or_err(class.py(), made)
            }
            None => Err(pyo3::exceptions::PyTypeError::new_err(
                "class cannot be instantiated",
            )),
        }
    }
}

/// Interns a str: the one object of that text.
pub(crate) fn interned<'py>(text: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let py = text.py();
    // SAFETY: an exact str is replaced by the interned one, ownership included; anything else is left alone.
    unsafe {
        let mut ptr = text.into_ptr();
        if ffi::PyUnicode_CheckExact(ptr) != 0 {
            ffi::PyUnicode_InternInPlace(&mut ptr);
        }
        Bound::from_owned_ptr(py, ptr)
    }
}

/// Whether the cyclic collector is on.
pub(crate) fn collector_is_on(_py: Python<'_>) -> bool {
    // SAFETY: the GIL is held.
    unsafe { ffi::PyGC_IsEnabled() != 0 }
}

/// Switches the cyclic collector on or off.
pub(crate) fn switch_collector(_py: Python<'_>, on: bool) {
    // SAFETY: the GIL is held.
    unsafe {
        if on {
            ffi::PyGC_Enable()
        } else {
            ffi::PyGC_Disable()
        };
    }
}

/// `"".join(text)`: the str that Python shares for a character where there is one, else a new one.
pub(crate) fn copied_text<'py>(
    text: &Bound<'py, pyo3::types::PyString>,
) -> Option<Bound<'py, PyAny>> {
    let py = text.py();
    // SAFETY: a live str, whose data is `length` units of its kind; a new reference, or null with an exception, which is
    // given up.
    unsafe {
        let ptr = text.as_ptr();
        #[cfg(not(Py_3_12))]
        if ffi::PyUnicode_READY(ptr) < 0 {
            ffi::PyErr_Clear();
            return None;
        }
        let len = ffi::PyUnicode_GET_LENGTH(ptr);
        let made = if len == 1 {
            ffi::PyUnicode_FromOrdinal(ffi::PyUnicode_ReadChar(ptr, 0) as std::ffi::c_int)
        } else {
            let kind = ffi::PyUnicode_KIND(ptr) as std::ffi::c_int;
            ffi::PyUnicode_FromKindAndData(kind, ffi::PyUnicode_DATA(ptr), len)
        };
        if made.is_null() {
            ffi::PyErr_Clear();
        }
        Bound::from_owned_ptr_or_opt(py, made)
    }
}

/// A tuple for one argument, used again for the next where no one has kept it.
pub(crate) struct Single<'py>(Option<Bound<'py, PyTuple>>);

impl<'py> Single<'py> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Single(None)
    }

    /// The tuple of `item`.
    #[inline(always)]
    pub(crate) fn of(&mut self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        // Other code has run since it was given back, and may have found it by way of the collector.
        match self.0.take().filter(|tuple| references(tuple) == 1) {
            Some(tuple) => {
                // SAFETY: a tuple of one item which only this reference knows, so that no one sees it change; the item
                // that was in it, which is no container, is given up last.
                unsafe {
                    let place = &raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item[0];
                    let old = std::mem::replace(&mut *place, item.clone().into_ptr());
                    ffi::Py_DECREF(old);
                }
                Ok(tuple)
            }
            None => PyTuple::new(item.py(), [item]),
        }
    }

    /// Takes a tuple of a str back, to be used again, if no one else holds it. Not where tuples remember their hash.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, tuple: Bound<'py, PyTuple>) {
        if cfg!(any(Py_3_14, Py_GIL_DISABLED)) {
            return;
        }
        if references(&tuple) == 1 && tuple.len() == 1 {
            self.0 = Some(tuple);
        }
    }
}

/// How many references to the tuple exist.
fn references(tuple: &Bound<'_, PyTuple>) -> isize {
    // SAFETY: a live object.
    unsafe { ffi::Py_REFCNT(tuple.as_ptr()) }
}
