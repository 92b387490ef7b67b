//! dict, read in insertion order.

use pyo3::ffi;

use super::object::Obj;

/// An exact dict.
#[derive(Clone, Copy)]
pub(crate) struct Dict<'q>(Obj<'q>);

impl<'q> Dict<'q> {
    /// Made only by [`super::types::classify`] and for instance dicts, which have looked at the type.
    #[inline(always)]
    pub(super) fn new(obj: Obj<'q>) -> Self {
        Dict(obj)
    }

    /// The object itself.
    #[inline(always)]
    pub(crate) fn obj(self) -> Obj<'q> {
        self.0
    }

    /// Number of items now.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: an exact dict.
        unsafe { (*self.0.as_ptr().cast::<ffi::PyDictObject>()).ma_used as usize }
    }

    /// Whether its keys may be held by other dicts too, so that their reference counts say nothing about this dict.
    #[inline(always)]
    pub(crate) fn shares_keys(self) -> bool {
        // SAFETY: an exact dict.
        unsafe {
            !(*self.0.as_ptr().cast::<ffi::PyDictObject>())
                .ma_values
                .is_null()
        }
    }

    /// The first item at or after position `*pos`, which is moved behind it.
    #[inline(always)]
    pub(crate) fn next(self, pos: &mut usize) -> Option<(Obj<'q>, Obj<'q>)> {
        // SAFETY: an exact dict, which holds its keys and values.
        unsafe {
            match super::dict_table::next(self.0.as_ptr(), pos) {
                Some(found) => found.map(|(key, value)| (Obj::from_raw(key), Obj::from_raw(value))),
                None => self.next_asked(pos),
            }
        }
    }

    /// [`Dict::next`] by asking the interpreter.
    #[inline(never)]
    fn next_asked(self, pos: &mut usize) -> Option<(Obj<'q>, Obj<'q>)> {
        let mut at = *pos as ffi::Py_ssize_t;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: an exact dict; the callee checks the position; the dict holds keys and values.
        unsafe {
            if ffi::PyDict_Next(self.0.as_ptr(), &mut at, &mut key, &mut value) == 0 {
                return None;
            }
            *pos = at as usize;
            Some((Obj::from_raw(key), Obj::from_raw(value)))
        }
    }
}
