//! Strings and buffers that are too large, too odd or too old-fashioned for the walk: payloads outside of frames, lone
//! surrogates, protocol 0 text, bytearrays, PickleBuffers.

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use quickpickle_format::opcode::byte;

use crate::ffi::buffer::Exported;
use crate::ffi::object::{Anchor, quiet};
use crate::ffi::outside;
use crate::python_types::pickling_error;

use super::engine::{Engine, Output, Settings};
use super::leaves::Fresh;

impl Engine {
    /// Saves a str, bytes or float that the walk gave back.
    pub(super) fn save_payload(
        &mut self,
        obj: Bound<'_, PyAny>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = obj.py();
        if let Ok(text) = obj.cast_exact::<PyString>() {
            if settings.protocol == 0 {
                let points =
                    text.call_method1(intern!(py, "encode"), ("utf-32-le", "surrogatepass"))?;
                self.out
                    .line(byte::UNICODE, &raw_unicode_escape(points.extract()?));
            } else {
                let utf8 = text.call_method1(intern!(py, "encode"), ("utf-8", "surrogatepass"))?;
                let utf8 = utf8.cast_into::<PyBytes>()?;
                let len = utf8.as_bytes().len();
                self.payload_with(
                    |out| out.unicode_header(len),
                    utf8.as_bytes(),
                    utf8.as_any(),
                    "string",
                    settings,
                )?;
            }
        } else if let Ok(bytes) = obj.cast_exact::<PyBytes>() {
            if settings.protocol < 3 {
                return self.reduce(obj, settings);
            }
            let len = bytes.as_bytes().len();
            self.payload_with(
                |out| out.bytes_header(len),
                bytes.as_bytes(),
                &obj,
                "bytes object",
                settings,
            )?;
        } else {
            let text = obj.repr()?;
            self.out.line(byte::FLOAT, text.to_str()?.as_bytes());
            return Ok(());
        }
        self.remember_object(&obj);
        Ok(())
    }

    /// Saves a bytearray or PickleBuffer, in band or out of band.
    pub(super) fn save_buffer(
        &mut self,
        obj: Bound<'_, PyAny>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = obj.py();
        if let Ok(bytes) = obj.cast_exact::<PyByteArray>() {
            let len = bytes.len();
            let header = |out: &mut Output| {
                out.bytearray_header(len);
                true
            };
            if Output::bypasses_frame(len) && self.to_file {
                self.payload_with(header, &[], &obj, "bytearray", settings)?;
            } else {
                // Nothing runs between asking for the length and copying.
                let anchor = Anchor::of(&obj);
                quiet(py, |q| {
                    if let crate::ffi::types::Kind::ByteArray(bytes) =
                        crate::ffi::types::classify(anchor.obj(q))
                    {
                        self.payload_in_memory(header, bytes.as_slice(q));
                    }
                });
            }
            self.remember_object(&obj);
            return Ok(());
        }
        if settings.protocol < 5 {
            // The wording, up to 3.12, is the reference's.
            let verb = if cfg!(Py_3_13) {
                "be pickled"
            } else {
                "pickled"
            };
            return Err(pickling_error(
                py,
                format!("PickleBuffer can only {verb} with protocol >= 5"),
            ));
        }
        // A view of our own, which lasts where the callback releases the buffer.
        let Some(view) = Exported::in_one_piece(&obj)? else {
            let message =
                "PickleBuffer can not be pickled when pointing to a non-contiguous buffer";
            return Err(pickling_error(py, message));
        };
        let readonly = view.is_readonly();
        let mut in_band = true;
        if let Some(callback) = &settings.buffer_callback {
            self.exposed();
            in_band = outside::call1(callback.bind(py), &obj)?.is_truthy()?;
        }
        if !in_band {
            self.out.opcode(byte::NEXT_BUFFER);
            if readonly {
                self.out.opcode(byte::READONLY_BUFFER);
            }
            return Ok(());
        }
        let len = view.bytes().len();
        let header = |out: &mut Output| {
            if readonly {
                return out.bytes_header(len);
            }
            out.bytearray_header(len);
            true
        };
        if Output::bypasses_frame(len) && self.to_file {
            self.payload_with(header, &[], &obj, "bytes object", settings)?;
        } else {
            self.payload_in_memory(header, view.bytes());
        }
        self.remember_object(&obj);
        Ok(())
    }

    /// Writes a payload: outside of frames if it is large, and then to a file as the `object` that it is.
    fn payload_with(
        &mut self,
        header: impl FnOnce(&mut Output) -> bool,
        bytes: &[u8],
        object: &Bound<'_, PyAny>,
        what: &str,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = object.py();
        let large = !self.to_file || bytes.is_empty() || Output::bypasses_frame(bytes.len());
        let written = if self.to_file && large {
            self.out.close_frame();
            let fits = header(&mut self.out);
            if fits {
                self.flush(py, settings)?;
                self.write(object, settings)?;
            }
            self.out.open_frame();
            fits
        } else {
            self.payload_in_memory(header, bytes)
        };
        if written {
            return Ok(());
        }
        Err(PyOverflowError::new_err(format!(
            "serializing a {what} larger than 4 GiB requires pickle protocol 4 or higher"
        )))
    }

    fn payload_in_memory(
        &mut self,
        header: impl FnOnce(&mut Output) -> bool,
        bytes: &[u8],
    ) -> bool {
        if Output::bypasses_frame(bytes.len()) {
            return self.payload(header, bytes);
        }
        let fits = header(&mut self.out);
        if fits {
            self.out.raw(bytes);
        }
        fits
    }

    fn remember_object(&mut self, obj: &Bound<'_, PyAny>) {
        let anchor = Anchor::of(obj);
        quiet(obj.py(), |q| self.remember(anchor.obj(q), Fresh::Shared));
        self.memo.settle(obj.py());
    }
}

/// Code points (UTF-32, little-endian) to the text of a UNICODE line: as Python's raw-unicode-escape, and escaping what
/// would end the line or be taken for an escape.
fn raw_unicode_escape(points: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(points.len() / 4);
    for point in points.chunks_exact(4) {
        let point = u32::from_le_bytes([point[0], point[1], point[2], point[3]]);
        match point {
            0x10000.. => line.extend_from_slice(format!("\\U{point:08x}").as_bytes()),
            0x100.. | 0x5c | 0 | 0x0a | 0x0d | 0x1a => {
                line.extend_from_slice(format!("\\u{point:04x}").as_bytes())
            }
            _ => line.push(point as u8),
        }
    }
    line
}
