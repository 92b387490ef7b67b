//! Where a load reads from: bytes in memory, or a file.
//!
//! A file is never consumed past STOP. How far it is read ahead depends on what it can do: bytes that can be peeked at are
//! looked at before they are taken; a buffered file that can seek is read in large pieces, and what was not needed is
//! given back; anything else is asked for exactly what is needed, frame by frame.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quickpickle_format::{Error, ErrorKind, SliceSource, Source};

use super::fail::Fail;
use crate::ffi::buffer::Exported;
use crate::ffi::outside;

/// Bytes read ahead at a time.
const AHEAD: usize = 128 * 1024;
/// The most that is read on the word of a length before it has been seen that the data is there.
const STEP: usize = 1024 * 1024;

/// Payloads of these sizes are taken over as the bytes object that `read` returns. Larger ones are read step by step, so
/// that a length alone claims no memory.
const WHOLE_MIN: usize = 64 * 1024;
const WHOLE_MAX: usize = 256 * 1024 * 1024;

/// A source that a load can use.
pub(super) trait Feed: Source {
    /// The next `len` bytes are one frame.
    fn frame(&mut self, len: u64) -> Result<(), Self::Error>;

    /// The next `len` bytes as the object that the file hands out for them; None where they are to be taken as any others.
    fn whole<'py>(
        &mut self,
        py: Python<'py>,
        len: usize,
    ) -> Result<Option<Bound<'py, PyBytes>>, Self::Error> {
        let _ = (py, len);
        Ok(None)
    }
}

impl Feed for SliceSource<'_> {
    #[inline(always)]
    fn frame(&mut self, len: u64) -> Result<(), Error> {
        if self.remaining().is_some_and(|left| left < len) {
            return Err(Error::new(ErrorKind::Truncated, self.offset()));
        }
        Ok(())
    }
}

/// How a file is read ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// `peek` shows what comes.
    Peek,
    /// Read pieces, `seek` back at the end.
    Seek,
    /// Read what is needed.
    Exact,
}

/// The methods of a file that loads use.
pub(super) struct File {
    read: Py<PyAny>,
    readline: Py<PyAny>,
    peek: Option<Py<PyAny>>,
    seek: Option<Py<PyAny>>,
    /// The object itself, where it is an `io.BytesIO`.
    memory: Option<Py<PyAny>>,
}

impl File {
    /// Looks up the methods.
    pub(super) fn of(file: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = file.py();
        let method = |name| file.getattr_opt(name);
        let peek = method(intern!(py, "peek"))?;
        let (Some(read), Some(readline)) = (
            method(intern!(py, "read"))?,
            method(intern!(py, "readline"))?,
        ) else {
            return Err(PyTypeError::new_err(
                "file must have 'read' and 'readline' attributes",
            ));
        };
        let io = py.import(intern!(py, "io"))?;
        let is = |name: &str| -> PyResult<bool> { Ok(file.get_type().is(&io.getattr(name)?)) };
        let memory = is("BytesIO")?.then(|| file.clone().unbind());
        let seek =
            if is("BufferedReader")? && file.call_method0(intern!(py, "seekable"))?.is_truthy()? {
                method(intern!(py, "seek"))?.map(Bound::unbind)
            } else {
                None
            };
        Ok(File {
            read: read.unbind(),
            readline: readline.unbind(),
            peek: peek.map(Bound::unbind),
            seek,
            memory,
        })
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        let copy = |method: &Option<Py<PyAny>>| method.as_ref().map(|method| method.clone_ref(py));
        File {
            read: self.read.clone_ref(py),
            readline: self.readline.clone_ref(py),
            peek: copy(&self.peek),
            seek: copy(&self.seek),
            memory: copy(&self.memory),
        }
    }

    pub(super) fn visit(&self, visit: &pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.read)?;
        visit.call(&self.readline)?;
        visit.call(&self.peek)?;
        visit.call(&self.seek)?;
        visit.call(&self.memory)
    }

    /// The rest of an `io.BytesIO` from where it stands, and where that is. The bytes are shared, not copied.
    pub(super) fn in_memory<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, usize)>> {
        let Some(file) = &self.memory else {
            return Ok(None);
        };
        let file = file.bind(py);
        let content = file
            .call_method0(intern!(py, "getvalue"))?
            .cast_into::<PyBytes>()?;
        let at: usize = file.call_method0(intern!(py, "tell"))?.extract()?;
        let at = at.min(content.as_bytes().len());
        Ok(Some((content, at)))
    }

    /// Moves an `io.BytesIO` to where a load of [`File::in_memory`] ended.
    pub(super) fn move_to(&self, py: Python<'_>, at: usize) -> PyResult<()> {
        if let Some(file) = &self.memory {
            file.bind(py).call_method1(intern!(py, "seek"), (at,))?;
        }
        Ok(())
    }
}

/// Bytes of a file.
pub(super) struct FileSource<'py> {
    py: Python<'py>,
    file: File,
    mode: Mode,
    /// Bytes read or peeked at, of which those before `at` are consumed.
    buffer: Vec<u8>,
    at: usize,
    /// Bytes consumed before the buffer.
    before: u64,
    /// How many bytes of the buffer have only been peeked at: all of them, or none.
    peeked: bool,
    /// The last line, where it did not fit the buffer.
    line: Vec<u8>,
}

impl<'py> FileSource<'py> {
    pub(super) fn new(py: Python<'py>, file: File) -> Self {
        let mode = if file.seek.is_some() {
            Mode::Seek
        } else if file.peek.is_some() {
            Mode::Peek
        } else {
            Mode::Exact
        };
        FileSource {
            py,
            file,
            mode,
            buffer: Vec::new(),
            at: 0,
            before: 0,
            peeked: false,
            line: Vec::new(),
        }
    }

    /// What is at hand of the file's first bytes, where nothing has been taken off the buffer.
    pub(super) fn start(&self) -> &[u8] {
        if self.before == 0 { &self.buffer } else { &[] }
    }

    /// Leaves the file right behind what was consumed.
    pub(super) fn finish(&mut self) -> PyResult<()> {
        self.take_peeked()?;
        let unused = self.buffer.len() - self.at;
        if unused > 0
            && let Some(seek) = &self.file.seek
        {
            seek.bind(self.py).call1((-(unused as i64), 1))?;
        }
        if unused == 0 || self.file.seek.is_some() {
            self.drop_buffer();
        }
        Ok(())
    }

    /// Consumes from the file what was consumed of the bytes peeked at.
    fn take_peeked(&mut self) -> PyResult<()> {
        if self.peeked {
            self.peeked = false;
            let mut left = self.at;
            // Nothing of what was peeked at is in the file any more; what is left of it is peeked at again later.
            self.buffer.truncate(self.at);
            while left > 0 {
                let taken = self.call_read(left)?.len();
                if taken == 0 {
                    break;
                }
                left -= taken.min(left);
            }
        }
        Ok(())
    }

    /// Forgets the buffer, of which all that is not consumed is in the file again.
    fn drop_buffer(&mut self) {
        self.before += self.at as u64;
        self.buffer.clear();
        self.at = 0;
    }

    /// `file.read(n)`.
    fn call_read(&self, n: usize) -> PyResult<Vec<u8>> {
        Self::as_bytes(&outside::call1(
            self.file.read.bind(self.py),
            &n.into_pyobject(self.py)?.into_any(),
        )?)
    }

    fn as_bytes(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Ok(bytes.as_bytes().to_vec());
        }
        Ok(Exported::of(data)?.bytes().to_vec())
    }

    /// Makes at least `n` bytes follow `at` in the buffer; fewer at the end of the file.
    #[cold]
    #[inline(never)]
    fn load(&mut self, n: usize) -> PyResult<()> {
        if self.mode == Mode::Peek {
            self.take_peeked()?;
            self.drop_buffer();
            if n < AHEAD {
                if let Some(peek) = &self.file.peek {
                    match outside::call1(
                        peek.bind(self.py),
                        &AHEAD.into_pyobject(self.py)?.into_any(),
                    ) {
                        Ok(data) => {
                            self.buffer = Self::as_bytes(&data)?;
                            self.peeked = true;
                        }
                        Err(error) if error.is_instance_of::<PyNotImplementedError>(self.py) => {
                            self.mode = Mode::Exact
                        }
                        Err(error) => return Err(error),
                    }
                }
                if self.buffer.len() >= n {
                    return Ok(());
                }
                self.peeked = false;
                self.buffer.clear();
            }
        }
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.before += self.at as u64;
            self.at = 0;
        }
        while self.buffer.len() < n {
            let missing = n - self.buffer.len();
            let ask = if self.mode == Mode::Seek {
                missing.max(AHEAD)
            } else {
                missing
            };
            let data = self.call_read(ask.min(STEP.max(AHEAD)))?;
            self.buffer.extend_from_slice(&data);
            // A read that falls short is the end, as it is for the reference; one that was cut into steps goes on.
            if data.len() < missing.min(STEP.max(AHEAD)) {
                break;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn need(&mut self, n: usize, kind: ErrorKind) -> Result<(), Fail> {
        if self.buffer.len() - self.at >= n {
            return Ok(());
        }
        self.load(n)?;
        if self.buffer.len() - self.at >= n {
            return Ok(());
        }
        Err(Error::new(kind, self.before + self.buffer.len() as u64).into())
    }
}

impl Source for FileSource<'_> {
    type Error = Fail;

    #[inline(always)]
    fn opcode(&mut self) -> Result<u8, Fail> {
        let Some(&byte) = self.buffer.get(self.at) else {
            self.need(1, ErrorKind::UnexpectedEnd)?;
            self.at += 1;
            return Ok(self.buffer[self.at - 1]);
        };
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fail> {
        let Some(&byte) = self.buffer.get(self.at) else {
            self.need(1, ErrorKind::Truncated)?;
            self.at += 1;
            return Ok(self.buffer[self.at - 1]);
        };
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fail> {
        if self.buffer.len() < self.at + N {
            self.need(N, ErrorKind::Truncated)?;
        }
        let mut array = [0; N];
        array.copy_from_slice(&self.buffer[self.at..self.at + N]);
        self.at += N;
        Ok(array)
    }

    #[inline(always)]
    fn bytes(&mut self, n: usize) -> Result<&[u8], Fail> {
        if self.buffer.len() - self.at < n {
            self.need(n, ErrorKind::Truncated)?;
        }
        let at = self.at;
        self.at += n;
        Ok(&self.buffer[at..at + n])
    }

    fn line(&mut self) -> Result<&[u8], Fail> {
        let ahead = &self.buffer[self.at..];
        if let Some(len) = ahead.iter().position(|&byte| byte == b'\n') {
            let at = self.at;
            self.at += len + 1;
            return Ok(&self.buffer[at..at + len]);
        }
        // The buffer does not hold the whole line: the file has the rest of it.
        let mut line = if self.peeked {
            self.take_peeked()?;
            Vec::new()
        } else {
            ahead.to_vec()
        };
        self.at = self.buffer.len().max(self.at);
        let held = line.len();
        self.drop_buffer();
        let more = outside::call0(self.file.readline.bind(self.py))?;
        line.extend(Self::as_bytes(&more)?);
        self.before += (line.len() - held) as u64;
        if line.pop() != Some(b'\n') {
            return Err(Error::new(ErrorKind::Truncated, self.before).into());
        }
        self.line = line;
        Ok(&self.line)
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Fail> {
        let ready = (self.buffer.len() - self.at).min(into.len());
        into[..ready].copy_from_slice(&self.buffer[self.at..self.at + ready]);
        self.at += ready;
        let mut rest = &mut into[ready..];
        if rest.is_empty() {
            return Ok(());
        }
        self.take_peeked()?;
        self.drop_buffer();
        while !rest.is_empty() {
            let step = rest.len().min(STEP);
            let data = self.call_read(step)?;
            if data.is_empty() {
                return Err(Error::new(ErrorKind::Truncated, self.before).into());
            }
            rest[..data.len()].copy_from_slice(&data);
            self.before += data.len() as u64;
            rest = &mut rest[data.len()..];
        }
        Ok(())
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    #[inline(always)]
    fn peek(&self) -> &[u8] {
        &self.buffer[self.at..]
    }
}

impl Feed for FileSource<'_> {
    fn frame(&mut self, len: u64) -> Result<(), Fail> {
        // Read as a whole, so that its operations need no calls: as far as it is not absurdly long.
        if let Ok(len) = usize::try_from(len)
            && self.buffer.len() - self.at < len
        {
            self.need(len, ErrorKind::Truncated)?;
        }
        Ok(())
    }

    fn whole<'py>(
        &mut self,
        py: Python<'py>,
        len: usize,
    ) -> Result<Option<Bound<'py, PyBytes>>, Fail> {
        if !(WHOLE_MIN..=WHOLE_MAX).contains(&len) || self.buffer.len() - self.at >= len {
            return Ok(None);
        }
        self.finish()?;
        if !self.buffer.is_empty() {
            return Ok(None);
        }
        let size = len.into_pyobject(py).map_err(PyErr::from)?.into_any();
        let data = outside::call1(self.file.read.bind(py), &size)?;
        let Ok(data) = data.cast_into_exact::<PyBytes>() else {
            let message = "read() from the underlying stream did not return bytes";
            return Err(PyValueError::new_err(message).into());
        };
        if data.as_bytes().len() == len {
            self.before += len as u64;
            return Ok(Some(data));
        }
        // A short read: what there is goes into the buffer, and reading on decides.
        self.buffer.extend_from_slice(data.as_bytes());
        Ok(None)
    }
}
