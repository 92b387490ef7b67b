//! The C library's calendar: seconds since 1970 of a date and time of day in the local time zone.
//!
//! `mktime` looks at the file of the zone whenever it is called while `TZ` is not set, which costs more than all else it
//! does. So in that case the zone's offset is asked for, a day before and a day after; where they are the same, nothing
//! happens to clocks in between, and the answer is a subtraction. All other times go to `mktime`.

use std::sync::atomic::{AtomicBool, Ordering};

/// A day and more, because offsets are up to 14 hours.
const AROUND: i64 = 2 * 86_400;

/// Whether `TZ` was set when it was last looked at; then the library has to be told when it is gone.
static NAMED: AtomicBool = AtomicBool::new(true);

unsafe extern "C" {
    safe fn tzset();
}

/// What `time.mktime` gives for the time tuple of such a `datetime`; None where the C library's answer is -1, which may be
/// an error.
pub(crate) fn local_seconds(date: [i32; 3], clock: [i32; 3]) -> Option<i64> {
    // SAFETY: a name that ends in 0. Called with the GIL held; the interpreter changes the environment with the GIL held.
    let is_named = !unsafe { libc::getenv(c"TZ".as_ptr()) }.is_null();
    if NAMED.swap(is_named, Ordering::Relaxed) && !is_named {
        tzset();
    }
    if !is_named {
        let seconds = seconds(date, clock);
        if let (Some(before), Some(after)) = (offset(seconds - AROUND), offset(seconds + AROUND))
            && before == after
            && seconds - before != -1
        {
            return Some(seconds - before);
        }
    }
    by_library(date, clock)
}

/// Seconds since 1970 as if the local time were UTC.
fn seconds(date: [i32; 3], clock: [i32; 3]) -> i64 {
    let [year, month, day] = date.map(i64::from);
    let [hour, minute, second] = clock.map(i64::from);
    // Years from March to March, so that leap days come last; of the proleptic Gregorian calendar, as datetime's.
    let year = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    days * 86_400 + hour * 3_600 + minute * 60 + second
}

/// Seconds that local time is ahead of UTC at a time.
fn offset(at: i64) -> Option<i64> {
    // SAFETY: all fields of the C struct are integers or a pointer that may be null.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that live through the call; the zone's name in the result is not read.
    let made = unsafe { libc::localtime_r(&raw const at, &raw mut parts) };
    (!made.is_null()).then_some(parts.tm_gmtoff)
}

fn by_library(date: [i32; 3], clock: [i32; 3]) -> Option<i64> {
    let [year, month, day] = date;
    let [hour, minute, second] = clock;
    // SAFETY: as above.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    parts.tm_year = year - 1900;
    parts.tm_mon = month - 1;
    parts.tm_mday = day;
    parts.tm_hour = hour;
    parts.tm_min = minute;
    parts.tm_sec = second;
    // Whether it is summer is for the library to find out, as in the tuple of a naive datetime.
    parts.tm_isdst = -1;
    // SAFETY: the struct is alive, and ours alone. The library reads TZ, as it does when `time.mktime` asks, also with the
    // GIL held.
    let seconds = unsafe { libc::mktime(&raw mut parts) };
    (seconds != -1).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::{by_library, local_seconds, offset, seconds};

    #[test]
    fn days_are_counted_as_the_library_counts_them() {
        for (date, expected) in [
            ([1970, 1, 1], 0),
            ([1969, 12, 31], -1),
            ([2000, 2, 29], 11_016),
            ([2000, 3, 1], 11_017),
            ([1900, 3, 1], -25_508),
            ([1, 1, 1], -719_162),
            ([9999, 12, 31], 2_932_896),
        ] {
            assert_eq!(seconds(date, [0, 0, 0]), expected * 86_400, "{date:?}");
        }
    }

    #[test]
    fn the_same_as_the_library_in_the_zone_of_this_machine() {
        for day in 0..4_000 {
            let date = [1960 + day / 50, day % 12 + 1, day % 28 + 1];
            let clock = [day % 24, day % 60, day % 59];
            assert_eq!(
                local_seconds(date, clock),
                by_library(date, clock),
                "{date:?}"
            );
        }
        assert!(offset(0).is_some());
    }
}
