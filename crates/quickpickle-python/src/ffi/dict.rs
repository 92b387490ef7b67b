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

    /// Its items from position `at` on, in the order of insertion.
    #[inline(always)]
    pub(crate) fn items(self, at: usize) -> Items<'q> {
        // SAFETY: an exact dict.
        let (first, count, size) = unsafe {
            super::dict_table::entries(self.0.as_ptr()).unwrap_or((std::ptr::null(), 0, 0))
        };
        Items {
            dict: self,
            first,
            count,
            size,
            at,
        }
    }
}

/// Items of a dict: see [`Dict::items`]. Where its table is cannot change during `'q`, nor what is in it.
pub(crate) struct Items<'q> {
    dict: Dict<'q>,
    /// The first entry; null where the interpreter is asked instead.
    first: *const u8,
    count: usize,
    size: usize,
    /// The position of the next item.
    pub(crate) at: usize,
}

impl<'q> Iterator for Items<'q> {
    /// Key and value.
    type Item = (Obj<'q>, Obj<'q>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.first.is_null() {
            return self.next_asked();
        }
        while self.at < self.count {
            // SAFETY: an entry of the table, which holds key and value unless it has been emptied.
            unsafe {
                let [key, value] = *self
                    .first
                    .add(self.at * self.size)
                    .cast::<[*mut ffi::PyObject; 2]>();
                self.at += 1;
                if !value.is_null() {
                    return Some((Obj::from_raw(key), Obj::from_raw(value)));
                }
            }
        }
        None
    }
}

impl<'q> Items<'q> {
    #[inline(never)]
    fn next_asked(&mut self) -> Option<(Obj<'q>, Obj<'q>)> {
        let mut at = self.at as ffi::Py_ssize_t;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: an exact dict; the callee checks the position; the dict holds keys and values.
        unsafe {
            if ffi::PyDict_Next(self.dict.0.as_ptr(), &mut at, &mut key, &mut value) == 0 {
                return None;
            }
            self.at = at as usize;
            Some((Obj::from_raw(key), Obj::from_raw(value)))
        }
    }
}
