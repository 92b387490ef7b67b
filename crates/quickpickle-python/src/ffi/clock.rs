//! The C library's calendar: seconds since 1970 of a date and time of day in the local time zone.

/// What `time.mktime` gives for the time tuple of such a `datetime`; None where the C library's answer is -1, which may be
/// an error.
pub(crate) fn local_seconds(date: [i32; 3], clock: [i32; 3]) -> Option<i64> {
    let [year, month, day] = date;
    let [hour, minute, second] = clock;
    // SAFETY: all fields of the C struct are integers, or a pointer that the C library does not read but sets.
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
    // GIL held; the interpreter changes the environment with the GIL held only.
    let seconds = unsafe { libc::mktime(&raw mut parts) };
    (seconds != -1).then_some(seconds)
}
