//! File descriptors and signals, where the standard library has no safe way.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// A descriptor of one's own for what `number` is open on; closed when dropped, and not passed on to programs.
pub(crate) fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: the call takes numbers only, and says if they are none of an open file.
    let made = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nobody else knows of it.
    Ok(unsafe { File::from_raw_fd(made) })
}

/// Leave all signals to the process's other threads.
pub(crate) fn refuse_signals() {
    // SAFETY: the set is a plain struct that the first call fills; the calls change nothing but this thread's mask.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}
