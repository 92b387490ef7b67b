//! What holds no other objects, and what is remembered: numbers, strings, bytes.

use crate::ffi::memo::Vacant;
use crate::ffi::object::{Obj, Quiet};
use crate::ffi::types::{Bytes, Int, Kind, Str};

use super::engine::{Engine, Output};

/// What is known of an object that has not been written before.
#[derive(Clone, Copy)]
pub(super) enum Fresh {
    /// It cannot be met again until other code runs.
    Sole,
    /// It can; this is its place in the memo, as long as nothing else is put there.
    At(Vacant),
    /// It can.
    Shared,
}

impl Fresh {
    pub(super) fn of(sole: bool) -> Self {
        if sole { Fresh::Sole } else { Fresh::Shared }
    }

    pub(super) fn is_sole(self) -> bool {
        matches!(self, Fresh::Sole)
    }
}

impl Engine {
    /// Writes an object that holds no others; false if it is not such, or needs more than the usual.
    #[inline(always)]
    pub(super) fn leaf<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, kind: &Kind<'q>) -> bool {
        match *kind {
            Kind::Int(int) => {
                match int.small() {
                    Some(value) => self.out.int(value),
                    None => self.big_int(q, int),
                }
                true
            }
            Kind::Str(text) => self.string(q, obj, text),
            Kind::None => {
                self.out.none();
                true
            }
            Kind::Bool(value) => {
                self.out.boolean(value);
                true
            }
            Kind::Float(value) => {
                if self.out.protocol() == 0 {
                    return false;
                }
                self.out.float(value);
                true
            }
            Kind::Bytes(bytes) => self.byte_string(q, obj, bytes),
            _ => false,
        }
    }

    /// What is known of `obj` if it has not been written; None, and a GET is written, if it has.
    #[inline(always)]
    pub(super) fn fresh(&mut self, obj: Obj<'_>) -> Option<Fresh> {
        if self.open == 0 && obj.is_sole() {
            return Some(Fresh::Sole);
        }
        match self.memo.look(obj) {
            Ok(number) => {
                self.out.get(number);
                None
            }
            Err(vacant) => Some(Fresh::At(vacant)),
        }
    }

    /// Remembers an object just written; returns its number.
    #[inline(always)]
    pub(super) fn enter_memo(&mut self, obj: Obj<'_>, fresh: Fresh) -> usize {
        match fresh {
            Fresh::Sole => self.memo.log(obj),
            Fresh::At(vacant) => self.memo.put_at(vacant, obj),
            Fresh::Shared => self.memo.put(obj),
        }
    }

    /// Remembers an object just written, and says so in the pickle.
    #[inline(always)]
    pub(super) fn remember(&mut self, obj: Obj<'_>, fresh: Fresh) {
        if !self.fast {
            let number = self.enter_memo(obj, fresh);
            self.out.put(number);
        }
    }

    /// Uses up a number of the memo.
    pub(super) fn skip(&mut self) {
        if !self.fast {
            let number = self.memo.skip();
            self.out.put(number);
        }
    }

    #[inline(always)]
    pub(super) fn string<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, text: Str<'q>) -> bool {
        let Some(fresh) = self.fresh(obj) else {
            return true;
        };
        let Some(utf8) = text.utf8(q) else {
            return false;
        };
        if utf8.len() > 255 || self.out.protocol() < 4 {
            if !self.long_string(utf8) {
                return false;
            }
            self.remember(obj, fresh);
        } else if self.fast {
            self.out.short_unicode(utf8);
        } else {
            self.out.short_unicode_memoized(utf8);
            self.enter_memo(obj, fresh);
        }
        true
    }

    #[inline(never)]
    pub(super) fn long_string(&mut self, utf8: &[u8]) -> bool {
        if self.out.protocol() == 0 {
            return false;
        }
        if Output::bypasses_frame(utf8.len()) {
            return !self.to_file && self.payload(|out| out.unicode_header(utf8.len()), utf8);
        }
        // A payload this short always has an opcode.
        let _ = self.out.unicode_header(utf8.len());
        self.out.raw(utf8);
        true
    }

    /// A payload large enough to stand outside of frames, into memory. False where the protocol has no opcode for it.
    pub(super) fn payload(
        &mut self,
        header: impl FnOnce(&mut Output) -> bool,
        bytes: &[u8],
    ) -> bool {
        self.out.close_frame();
        let fits = header(&mut self.out);
        if fits {
            self.out.raw(bytes);
        }
        self.out.open_frame();
        fits
    }

    #[inline(always)]
    pub(super) fn byte_string<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, bytes: Bytes<'q>) -> bool {
        if self.out.protocol() < 3 {
            return false;
        }
        let Some(fresh) = self.fresh(obj) else {
            return true;
        };
        let bytes = bytes.as_slice(q);
        if Output::bypasses_frame(bytes.len()) {
            if self.to_file || !self.payload(|out| out.bytes_header(bytes.len()), bytes) {
                return false;
            }
        } else {
            let _ = self.out.bytes_header(bytes.len());
            self.out.raw(bytes);
        }
        self.remember(obj, fresh);
        true
    }

    #[inline(never)]
    pub(super) fn big_int<'q>(&mut self, q: Quiet<'q>, int: Int<'q>) {
        if let Some(value) = int.middle() {
            return self.out.int(value);
        }
        let bytes = int.to_le_bytes(q);
        if self.out.protocol() >= 2 {
            self.out.long(&bytes);
        } else {
            self.out
                .long_text(quickpickle_format::int::decimal(&bytes).as_bytes());
        }
    }
}
