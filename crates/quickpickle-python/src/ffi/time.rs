//! The value types of `datetime`: what they hold, read from the objects, and made from what they pickle to.
//!
//! Which types these are comes from the C API that the module itself publishes, and is asked for only once a class of that
//! name has been met: importing `datetime` is left to whoever uses it. The types are static, so nothing can change how
//! they reduce themselves.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::compat;
use super::object::{Obj, Quiet};

/// One of the types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Temporal {
    /// `datetime.date`
    Date,
    /// `datetime.datetime`
    DateTime,
    /// `datetime.time`
    Time,
    /// `datetime.timedelta`
    Delta,
}

/// What such an object passes to its class to be made again.
pub(crate) enum State {
    /// The bytes that are its only argument, and how many of them.
    Bytes([u8; 10], usize),
    /// Days, seconds and microseconds.
    Delta([i32; 3]),
}

const ALL: [Temporal; 4] = [
    Temporal::Date,
    Temporal::DateTime,
    Temporal::Time,
    Temporal::Delta,
];

/// The addresses of the types, in the order of `ALL`; 0 until they are known.
static TYPES: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// The type that `class` is, looked up in the module's C API if need be.
#[inline(always)]
pub(crate) fn of_class(class: &Bound<'_, PyAny>) -> Option<Temporal> {
    let address = class.as_ptr() as usize;
    if TYPES[0].load(Ordering::Relaxed) == 0 && compat::is_static_class_of(class, "datetime") {
        ask();
    }
    known(address)
}

/// Looks the types up.
#[cold]
fn ask() {
    // SAFETY: called with the GIL held. The capsule is imported, from a module that exists since one of its classes does;
    // its types live as long as the interpreter.
    unsafe {
        ffi::PyDateTime_IMPORT();
        let api = ffi::PyDateTimeAPI();
        if api.is_null() {
            ffi::PyErr_Clear();
            return;
        }
        let types = [
            (*api).DateType,
            (*api).DateTimeType,
            (*api).TimeType,
            (*api).DeltaType,
        ];
        for (place, ty) in TYPES.iter().zip(types) {
            place.store(ty as usize, Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn known(address: usize) -> Option<Temporal> {
    let at = TYPES
        .iter()
        .position(|ty| ty.load(Ordering::Relaxed) == address)?;
    Some(ALL[at])
}

/// The type of an object, if it is one of these.
#[inline(always)]
pub(crate) fn of(obj: Obj<'_>) -> Option<Temporal> {
    known(obj.type_ptr().as_ptr() as usize)
}

/// What an object of that exact type reduces to in `protocol` (3 or later); None where it has a time zone.
pub(crate) fn state<'q>(
    _q: Quiet<'q>,
    obj: Obj<'q>,
    time: Temporal,
    protocol: u8,
) -> Option<State> {
    if of(obj) != Some(time) {
        return None;
    }
    let mut bytes = [0; 10];
    // A repeated hour's second run is marked in a bit that is free; protocol 3 has no place for it.
    let mark = |fold: u8| if fold != 0 && protocol > 3 { 0x80 } else { 0 };
    // SAFETY: the object is of the exact type whose struct is read; nothing changes it while it is alive.
    unsafe {
        match time {
            Temporal::Date => {
                let date = &*obj.as_ptr().cast::<ffi::PyDateTime_Date>();
                bytes[..4].copy_from_slice(&date.data);
                Some(State::Bytes(bytes, 4))
            }
            Temporal::DateTime => {
                let time = obj.as_ptr().cast::<ffi::PyDateTime_DateTime>();
                if (*time).hastzinfo != 0 {
                    return None;
                }
                bytes = (*time).data;
                bytes[2] |= mark((*time).fold);
                Some(State::Bytes(bytes, 10))
            }
            Temporal::Time => {
                let time = obj.as_ptr().cast::<ffi::PyDateTime_Time>();
                if (*time).hastzinfo != 0 {
                    return None;
                }
                bytes[..6].copy_from_slice(&(*time).data);
                bytes[0] |= mark((*time).fold);
                Some(State::Bytes(bytes, 6))
            }
            Temporal::Delta => {
                let delta = &*obj.as_ptr().cast::<ffi::PyDateTime_Delta>();
                Some(State::Delta([
                    delta.days,
                    delta.seconds,
                    delta.microseconds,
                ]))
            }
        }
    }
}

/// `class(*args)`, made directly where the arguments are those of a pickle and within their ranges; None otherwise, and
/// where there is no memory: then calling the class says what is wrong.
#[inline(always)]
pub(crate) fn make<'py>(
    class: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> Option<Bound<'py, PyAny>> {
    let time = of_class(class)?;
    if time == Temporal::Delta {
        return make_delta(args);
    }
    let state = args.get_borrowed_item(0).ok().filter(|_| args.len() == 1)?;
    make_of(
        class.py(),
        time,
        state.cast_exact::<PyBytes>().ok()?.as_bytes(),
    )
}

fn fits(value: i32, limit: i32) -> bool {
    (0..limit).contains(&value)
}

#[inline(never)]
fn make_delta<'py>(args: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyAny>> {
    if args.len() != 3 {
        return None;
    }
    let number = |at| {
        let item = args.get_borrowed_item(at).ok()?;
        compat::exact_small_int(&item)
    };
    let (days, seconds, micros) = (number(0)?, number(1)?, number(2)?);
    if !fits(seconds, 86_400) || !fits(micros, 1_000_000) || days.abs() > 999_999_999 {
        return None;
    }
    // SAFETY: the type is known, so the API is there; within these ranges it makes an object, or there is no memory.
    unsafe {
        let api = &*ffi::PyDateTimeAPI();
        made(
            args.py(),
            (api.Delta_FromDelta)(days, seconds, micros, 0, api.DeltaType),
        )
    }
}

/// The date, time or both that `state` says; as [`make`].
#[inline(never)]
pub(crate) fn make_of<'py>(
    py: Python<'py>,
    time: Temporal,
    state: &[u8],
) -> Option<Bound<'py, PyAny>> {
    let date = |high: u8, low: u8, month: u8, day: u8| {
        let year = i32::from(high) << 8 | i32::from(low);
        let (month, day) = (i32::from(month), i32::from(day));
        let sane =
            (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        sane.then_some((year, month, day))
    };
    let clock = |h: u8, m: u8, s: u8, micros: [u8; 3]| {
        let [high, middle, low] = micros.map(i32::from);
        let micros = high << 16 | middle << 8 | low;
        let sane = h < 24 && m < 60 && s < 60 && fits(micros, 1_000_000);
        sane.then_some((i32::from(h), i32::from(m), i32::from(s), micros))
    };
    // SAFETY: the types are known, so the API is there. It checks all that is not within range here, and makes an object
    // of exactly the type given, or an exception.
    unsafe {
        let api = &*ffi::PyDateTimeAPI();
        let none = ffi::Py_None();
        let object = match (time, state) {
            (Temporal::Date, &[high, low, month, day]) => {
                let (year, month, day) = date(high, low, month, day)?;
                (api.Date_FromDate)(year, month, day, api.DateType)
            }
            (Temporal::DateTime, &[high, low, month, day, h, m, s, a, b, c]) => {
                let (year, month, day) = date(high, low, month, day)?;
                let (h, m, s, micros) = clock(h, m, s, [a, b, c])?;
                let class = api.DateTimeType;
                (api.DateTime_FromDateAndTime)(year, month, day, h, m, s, micros, none, class)
            }
            (Temporal::Time, &[h, m, s, a, b, c]) => {
                let (h, m, s, micros) = clock(h, m, s, [a, b, c])?;
                (api.Time_FromTime)(h, m, s, micros, none, api.TimeType)
            }
            _ => return None,
        };
        made(py, object)
    }
}

/// # Safety
/// `object` is a new reference, or null with an exception set, which is dropped.
unsafe fn made(py: Python<'_>, object: *mut ffi::PyObject) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the caller's promise.
    unsafe {
        let made = Bound::from_owned_ptr_or_opt(py, object);
        if made.is_none() {
            ffi::PyErr_Clear();
        }
        made
    }
}
