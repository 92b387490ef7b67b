//! Borrowed objects, the sections in which they may be used, and anchors that carry them from one section to the next.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;

/// Proof that a quiet section is running. `'q` is unique to the section, so no [`Obj`] can leave it.
#[derive(Clone, Copy)]
pub(crate) struct Quiet<'q>(PhantomData<fn(&'q ()) -> &'q ()>);

/// Runs `section` with nothing else running: see the rules of the [module](super).
#[inline(always)]
pub(crate) fn quiet<R>(_py: Python<'_>, section: impl for<'q> FnOnce(Quiet<'q>) -> R) -> R {
    section(Quiet(PhantomData))
}

/// An object's type, for comparing by identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypePtr(*mut ffi::PyTypeObject);

impl TypePtr {
    /// The type as the object that it is.
    #[inline(always)]
    pub(crate) fn as_obj<'q>(self, _q: Quiet<'q>) -> Obj<'q> {
        // SAFETY: a type pointer is only made from a live object, which holds its type for at least the section.
        unsafe { Obj::from_raw(self.0.cast()) }
    }

    /// # Safety
    /// `ty` is a live type, and stays alive for the quiet section.
    pub(super) unsafe fn of_type(ty: *mut ffi::PyTypeObject) -> Self {
        TypePtr(ty)
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut ffi::PyTypeObject {
        self.0
    }
}

/// A borrowed object, alive for the quiet section `'q`.
#[derive(Clone, Copy)]
pub(crate) struct Obj<'q> {
    ptr: NonNull<ffi::PyObject>,
    section: PhantomData<fn(&'q ()) -> &'q ()>,
}

impl PartialEq for Obj<'_> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.ptr == other.ptr
    }
}

impl<'q> Obj<'q> {
    /// # Safety
    /// `ptr` is a live object that stays alive for the section `'q`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(ptr: *mut ffi::PyObject) -> Self {
        debug_assert!(!ptr.is_null());
        // SAFETY: the caller's promise.
        let ptr = unsafe { NonNull::new_unchecked(ptr) };
        Obj {
            ptr,
            section: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut ffi::PyObject {
        self.ptr.as_ptr()
    }

    /// Its address, which is what memo tables are keyed by.
    #[inline(always)]
    pub(crate) fn address(self) -> usize {
        self.ptr.as_ptr() as usize
    }

    /// Its exact type.
    #[inline(always)]
    pub(crate) fn type_ptr(self) -> TypePtr {
        // SAFETY: the object is alive for 'q.
        TypePtr(unsafe { ffi::Py_TYPE(self.as_ptr()) })
    }

    /// Whether exactly one reference to it exists: that of the container it was found in. Always false where reference
    /// counts do not tell (free-threaded builds).
    #[inline(always)]
    pub(crate) fn is_sole(self) -> bool {
        if cfg!(Py_GIL_DISABLED) {
            return false;
        }
        // SAFETY: the object is alive for 'q.
        unsafe { ffi::Py_REFCNT(self.as_ptr()) == 1 }
    }

    /// How many references to it exist; None where counts do not tell.
    #[inline(always)]
    pub(crate) fn references(self) -> Option<isize> {
        if cfg!(Py_GIL_DISABLED) {
            return None;
        }
        // SAFETY: the object is alive for 'q.
        Some(unsafe { ffi::Py_REFCNT(self.as_ptr()) })
    }

    /// Carries the object out of the section. Whoever keeps the anchor sees to it that the object stays alive.
    #[inline(always)]
    pub(crate) fn anchor(self) -> Anchor {
        Anchor(self.ptr)
    }
}

/// An object between two quiet sections: a pointer without a lifetime.
///
/// The one rule: an anchor that will be looked at again is kept alive, either because what holds it has not been left to
/// other code since, or because [`Anchor::pin`] took a reference before other code ran.
#[derive(Clone, Copy)]
pub(crate) struct Anchor(NonNull<ffi::PyObject>);

// SAFETY: a pointer; it is only looked at with the GIL held, which quiet sections and `pin` ask a token for.
unsafe impl Send for Anchor {}

impl Anchor {
    /// An anchor for an object that the caller holds.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Self {
        // SAFETY: a Bound's pointer is never null.
        Anchor(unsafe { NonNull::new_unchecked(object.as_ptr()) })
    }

    /// An anchor for an object that the caller's reference keeps alive.
    #[inline(always)]
    pub(crate) fn of_owned(object: &Py<PyAny>) -> Self {
        // SAFETY: a Py's pointer is never null.
        Anchor(unsafe { NonNull::new_unchecked(object.as_ptr()) })
    }

    /// # Safety
    /// `field` is a live object, kept as the rule above says.
    #[inline(always)]
    pub(super) unsafe fn from_field(field: *mut ffi::PyObject) -> Self {
        debug_assert!(!field.is_null());
        // SAFETY: the caller's promise.
        Anchor(unsafe { NonNull::new_unchecked(field) })
    }

    /// The object again, in a new section.
    #[inline(always)]
    pub(crate) fn obj<'q>(self, _q: Quiet<'q>) -> Obj<'q> {
        // SAFETY: the rule above.
        unsafe { Obj::from_raw(self.0.as_ptr()) }
    }

    /// A reference of its own.
    #[inline(always)]
    pub(crate) fn pin(self, py: Python<'_>) -> Bound<'_, PyAny> {
        // SAFETY: the object is alive by the rule above; a new reference is taken.
        unsafe { Bound::from_borrowed_ptr(py, self.0.as_ptr()) }
    }
}
