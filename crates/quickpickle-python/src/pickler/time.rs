//! Values of datetime: written as what they reduce to, without making it.

use quickpickle_format::opcode::byte;

use crate::ffi::object::{Obj, Quiet};
use crate::ffi::time::{self, State, Temporal};

use super::engine::Engine;
use super::leaves::Fresh;
use super::walk::{Ask, Progress};

impl Engine {
    /// Begins a value whose class is left to itself: not listed in a table of reducers.
    pub(super) fn open_time<'q>(
        &mut self,
        q: Quiet<'q>,
        obj: Obj<'q>,
        time: Temporal,
        fresh: Fresh,
    ) -> Progress<'q> {
        let protocol = self.out.protocol();
        // Protocol 2 has no bytes. What a time zone is only its class can tell.
        if protocol < 3 || time::state(q, obj, time, protocol).is_none() {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        match self.memo.get(obj.type_ptr().as_obj(q)) {
            Some(number) => self.out.get(number),
            None => return Progress::Ask(Ask::Instance(obj.anchor())),
        }
        self.time_body(q, obj, fresh);
        Progress::Done
    }

    /// Writes a value whose class is on the stack; false, and nothing is written, where it is no such value.
    ///
    /// The arguments exist only in the pickle, where they use up their numbers.
    pub(super) fn time_body<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, fresh: Fresh) -> bool {
        let protocol = self.out.protocol();
        let Some(state) = time::of(obj).and_then(|time| time::state(q, obj, time, protocol)) else {
            return false;
        };
        self.boundary();
        match state {
            State::Bytes(bytes, len) => {
                self.boundary();
                self.out.short_bytes(&bytes[..len.min(bytes.len())]);
                self.skip();
                self.out.opcode(byte::TUPLE1);
            }
            State::Delta(numbers) => {
                for number in numbers {
                    self.boundary();
                    self.out.int(number);
                }
                self.out.opcode(byte::TUPLE3);
            }
        }
        self.skip();
        self.out.opcode(byte::REDUCE);
        self.remember(obj, fresh);
        true
    }
}
