//! The walk: from objects to opcodes without running Python.
//!
//! [`Engine::walk`] goes on until the object is written or something needs Python: a reducer, a name, a hook, a file.
//! Then it returns an [`Ask`]; [`super::engine`] answers it and walks on. Order and choice of opcodes are CPython's.
//!
//! Leaves (atoms, strings, what has been written before) are written in the loops over containers; a container met there
//! is begun at once, and if all it holds are leaves it is ended at once. Only otherwise a frame is pushed.

use quickpickle_format::Sink;
use quickpickle_format::opcode::byte;
use quickpickle_format::run::{RUN, Run};

use crate::ffi::dict::Dict;
use crate::ffi::instance::{Attributes, Place, Values};
use crate::ffi::memo::Vacant;
use crate::ffi::object::{Anchor, Obj, Quiet};
use crate::ffi::types::{
    Bytes, Int, Kind, List, Set, Str, Tuple, classify, classify_float, classify_int,
};

use super::engine::{Engine, Output};
use super::frame::{
    BATCH, DictFrame, Frame, FrozenSetFrame, ListFrame, SetFrame, TupleFrame, ValuesFrame,
};
use super::items::ItemStep;
use super::plan::{Plan, Step};
use super::verdict::Verdict;

/// What the walk needs Python for.
pub(super) enum Ask {
    /// Nothing: the object is written.
    Finished,
    /// Write a complete frame to the file.
    Flush,
    /// Save a str or bytes too large to be buffered, or a str that needs encoding.
    Payload(Anchor),
    /// Save an object that only a reducer, or its name, can tell.
    Reduce(Anchor),
    /// Judge the class of an instance, then go on with it.
    Judge(Anchor),
    /// Save the class of an instance that is walked, then go on with it.
    Instance(Anchor),
    /// Ask for the persistent id of an object.
    PersistentId(Anchor),
    /// Fetch the next item of the iterator of the plan on top.
    NextItem,
    /// Raise.
    Fail(Fault),
}

impl Ask {
    /// The object it is about.
    pub(super) fn anchor(&self) -> Option<Anchor> {
        match *self {
            Ask::Payload(obj)
            | Ask::Reduce(obj)
            | Ask::Judge(obj)
            | Ask::Instance(obj)
            | Ask::PersistentId(obj)
            | Ask::Fail(Fault::Cyclic(obj)) => Some(obj),
            Ask::Finished | Ask::Flush | Ask::NextItem | Ask::Fail(_) => None,
        }
    }
}

/// Why the walk cannot go on.
pub(super) enum Fault {
    /// A list's size is not what it was.
    ListChanged,
    /// A dict's size is not what it was.
    DictChanged,
    /// A set's size is not what it was.
    SetChanged,
    /// More frames than the limit.
    TooDeep,
    /// fast mode met an object inside itself.
    Cyclic(Anchor),
}

/// What became of an object, or of a frame gone on with.
pub(super) enum Progress<'q> {
    /// It is written.
    Done,
    /// It is begun; go on with an object inside.
    Enter(Frame, Obj<'q>),
    /// It is begun: answer, then go on with the frame.
    Pause(Frame, Ask),
    /// Not begun: answer first.
    Ask(Ask),
}

/// Why an item of a container could not be written at once.
enum Below<'q> {
    /// It has not been looked at.
    Enter,
    /// It has been begun.
    Begun(Progress<'q>),
}

/// Bytes of complete frames that may wait to be written to a file, besides those that the memo's size allows for.
const FLUSH_SIZE: usize = 1024 * 1024;

/// Numbers that must be left in a list for a run to be worth its array.
const RUN_MIN: usize = 8;

/// A number of a run.
enum Number {
    Int(i32),
    Float(f64),
}

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
    fn of(sole: bool) -> Self {
        if sole { Fresh::Sole } else { Fresh::Shared }
    }

    fn is_sole(self) -> bool {
        matches!(self, Fresh::Sole)
    }
}

impl Engine {
    /// Begins with the root, and walks until the end or until Python is needed.
    #[inline(always)]
    pub(super) fn start<'q>(&mut self, q: Quiet<'q>, root: Obj<'q>) -> Ask {
        if self.asks_persistent_id {
            return Ask::PersistentId(root.anchor());
        }
        let kind = classify(root);
        if self.leaf(q, root, &kind) {
            return Ask::Finished;
        }
        match self.open(q, root, kind) {
            Progress::Done => Ask::Finished,
            progress => self.go_on(q, progress),
        }
    }

    /// Walks on until the end or until Python is needed.
    pub(super) fn walk<'q>(&mut self, q: Quiet<'q>) -> Ask {
        let progress = match self.next.take() {
            Some(next) => self.begin(q, next.obj(q)),
            None => Progress::Done,
        };
        self.go_on(q, progress)
    }

    fn go_on<'q>(&mut self, q: Quiet<'q>, mut progress: Progress<'q>) -> Ask {
        loop {
            progress = match progress {
                Progress::Done => match self.pop() {
                    Some(frame) => self.resume(q, frame),
                    None => return Ask::Finished,
                },
                Progress::Enter(frame, inside) => {
                    if !self.push(frame) {
                        return Ask::Fail(Fault::TooDeep);
                    }
                    self.begin(q, inside)
                }
                Progress::Pause(frame, ask) => {
                    if !self.push(frame) {
                        return Ask::Fail(Fault::TooDeep);
                    }
                    return ask;
                }
                Progress::Ask(ask) => return ask,
            }
        }
    }

    fn resume<'q>(&mut self, q: Quiet<'q>, frame: Frame) -> Progress<'q> {
        match frame {
            Frame::List(frame) => self.fill_list::<true>(q, frame),
            Frame::Tuple(frame) => self.fill_tuple::<true>(q, frame),
            Frame::Dict(frame) => self.fill_dict::<true>(q, frame),
            Frame::Set(frame) => self.fill_set::<true>(q, frame),
            Frame::FrozenSet(frame) => self.fill_frozenset::<true>(q, frame),
            Frame::Values(frame) => self.fill_values::<true>(q, frame),
            Frame::Plan(plan) => self.follow(q, plan),
        }
    }

    /// Begins any object, at an opcode boundary.
    pub(super) fn begin<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>) -> Progress<'q> {
        if self.boundary() || self.flush_is_due {
            self.next = Some(obj.anchor());
            return Progress::Ask(Ask::Flush);
        }
        if self.asks_persistent_id && !std::mem::take(&mut self.has_no_persistent_id) {
            return Progress::Ask(Ask::PersistentId(obj.anchor()));
        }
        let kind = classify(obj);
        let shared = usize::from(std::mem::take(&mut self.next_is_shared));
        self.open += shared;
        let is_leaf = self.leaf(q, obj, &kind);
        self.open -= shared;
        if is_leaf {
            Progress::Done
        } else {
            self.open(q, obj, kind)
        }
    }

    /// At an opcode boundary: closes a full frame. True where frames should be written to the file before long.
    #[inline(always)]
    pub(super) fn boundary(&mut self) -> bool {
        self.out.frame_is_full() && self.cut()
    }

    /// Closes a frame and opens the next.
    ///
    /// Writing to a file is other code, before which the memo has to be settled, so complete frames wait until they have
    /// some size. The more is remembered the longer they may wait: the log takes less memory than the reference's table.
    #[cold]
    fn cut(&mut self) -> bool {
        self.out.close_frame();
        if self.to_file {
            self.cuts.push(self.out.sink().len());
            self.flush_is_due = self.out.sink().len() >= FLUSH_SIZE + 16 * self.memo.len();
        }
        self.out.open_frame();
        self.flush_is_due
    }

    /// Writes an item of a container where that needs no frame. Of items that are containers themselves, only those met
    /// when going on with a frame are begun here (`DEEP`), so that this never calls itself.
    #[inline(always)]
    fn save<'q, const DEEP: bool>(&mut self, q: Quiet<'q>, item: Obj<'q>) -> Result<(), Below<'q>> {
        if self.boundary() || self.asks_persistent_id {
            return Err(Below::Enter);
        }
        let kind = classify(item);
        if self.leaf(q, item, &kind) {
            return Ok(());
        }
        if !DEEP {
            return Err(Below::Enter);
        }
        match self.open(q, item, kind) {
            Progress::Done => Ok(()),
            begun => Err(Below::Begun(begun)),
        }
    }

    /// Leaves the loop over a container for an item that needs more.
    fn descend<'q>(&mut self, frame: Frame, item: Obj<'q>, below: Below<'q>) -> Progress<'q> {
        match below {
            Below::Enter => Progress::Enter(frame, item),
            Below::Begun(Progress::Ask(ask)) => Progress::Pause(frame, ask),
            Below::Begun(begun) => {
                if self.push(frame) {
                    begun
                } else {
                    Progress::Ask(Ask::Fail(Fault::TooDeep))
                }
            }
        }
    }

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
    fn fresh(&mut self, obj: Obj<'_>) -> Option<Fresh> {
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
    fn enter_memo(&mut self, obj: Obj<'_>, fresh: Fresh) -> usize {
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
    fn long_string(&mut self, utf8: &[u8]) -> bool {
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
    fn byte_string<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, bytes: Bytes<'q>) -> bool {
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
    fn big_int<'q>(&mut self, q: Quiet<'q>, int: Int<'q>) {
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

    /// Begins an object that is no leaf.
    fn open<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, kind: Kind<'q>) -> Progress<'q> {
        match kind {
            Kind::Tuple(tuple) => self.open_tuple(q, tuple),
            Kind::List(list) => self.open_list(q, list),
            Kind::Dict(dict) => match self.fresh(obj) {
                None => Progress::Done,
                Some(fresh) => self.open_dict(q, dict, fresh, false),
            },
            Kind::Set(set) if self.out.protocol() >= 4 => self.open_set(q, set),
            Kind::FrozenSet(set) if self.out.protocol() >= 4 => self.open_frozenset(q, set),
            Kind::Str(_) | Kind::Float(_) => Progress::Ask(Ask::Payload(obj.anchor())),
            Kind::Other if !self.overrides_reducers && !self.asks_persistent_id => {
                self.open_instance(q, obj)
            }
            _ => match self.memo.get(obj) {
                Some(number) => {
                    self.out.get(number);
                    Progress::Done
                }
                None if matches!(kind, Kind::Bytes(_)) => Progress::Ask(Ask::Payload(obj.anchor())),
                None => Progress::Ask(Ask::Reduce(obj.anchor())),
            },
        }
    }

    fn open_tuple<'q>(&mut self, q: Quiet<'q>, tuple: Tuple<'q>) -> Progress<'q> {
        let len = tuple.len();
        if len == 0 {
            // Never remembered, so the memo is not asked either.
            if self.out.protocol() >= 1 {
                self.out.opcode(byte::EMPTY_TUPLE);
            } else {
                self.out.opcodes([byte::MARK, byte::TUPLE]);
            }
            return Progress::Done;
        }
        let Some(fresh) = self.fresh(tuple.obj()) else {
            return Progress::Done;
        };
        let sole = fresh.is_sole();
        self.open += usize::from(!sole);
        if !self.is_short(len) {
            self.out.opcode(byte::MARK);
        }
        self.fill_tuple::<false>(
            q,
            TupleFrame {
                tuple: tuple.obj().anchor(),
                index: 0,
                sole,
            },
        )
    }

    /// Whether a tuple of this length needs no MARK.
    #[inline(always)]
    fn is_short(&self, len: usize) -> bool {
        len <= 3 && self.out.protocol() >= 2
    }

    #[inline(always)]
    fn fill_tuple<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: TupleFrame,
    ) -> Progress<'q> {
        let obj = frame.tuple.obj(q);
        let Kind::Tuple(tuple) = classify(obj) else {
            return Progress::Done;
        };
        while let Some(item) = tuple.get(frame.index) {
            frame.index += 1;
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Tuple(frame), item, below);
            }
        }
        self.close_tuple(tuple, frame.sole);
        Progress::Done
    }

    fn close_tuple(&mut self, tuple: Tuple<'_>, sole: bool) {
        self.open -= usize::from(!sole);
        let len = tuple.len();
        let short = self.is_short(len);
        // The tuple may have been met, and written, below itself.
        let fresh = if sole {
            Ok(Fresh::Sole)
        } else {
            self.memo
                .look(tuple.obj())
                .map_or_else(|vacant| Ok(Fresh::At(vacant)), Err)
        };
        if let Err(number) = fresh {
            if short || self.out.protocol() == 0 {
                for _ in 0..len + usize::from(!short) {
                    self.out.opcode(byte::POP);
                }
            } else {
                self.out.opcode(byte::POP_MARK);
            }
            self.out.get(number);
            return;
        }
        self.out.opcode(match len {
            _ if !short => byte::TUPLE,
            1 => byte::TUPLE1,
            2 => byte::TUPLE2,
            _ => byte::TUPLE3,
        });
        if let Ok(fresh) = fresh {
            self.remember(tuple.obj(), fresh);
        }
    }

    fn open_list<'q>(&mut self, q: Quiet<'q>, list: List<'q>) -> Progress<'q> {
        let obj = list.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        if !self.enter(obj) {
            return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
        }
        if self.out.protocol() >= 1 {
            self.out.opcode(byte::EMPTY_LIST);
        } else {
            self.out.opcodes([byte::MARK, byte::LIST]);
        }
        self.remember(obj, fresh);
        let size = list.len();
        let single = size == 1 || self.out.protocol() == 0;
        self.fill_list::<false>(
            q,
            ListFrame {
                list: obj.anchor(),
                index: 0,
                in_batch: 0,
                single,
                size,
            },
        )
    }

    #[inline(always)]
    fn fill_list<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: ListFrame,
    ) -> Progress<'q> {
        let obj = frame.list.obj(q);
        let Kind::List(list) = classify(obj) else {
            return Progress::Done;
        };
        let mut begun = DEEP;
        loop {
            // The item begun last is complete.
            if begun {
                if frame.single {
                    self.out.opcode(byte::APPEND);
                    if self.out.protocol() > 0 {
                        break;
                    }
                } else if frame.in_batch == BATCH {
                    self.out.opcode(byte::APPENDS);
                    frame.in_batch = 0;
                    if cfg!(Py_3_14) && list.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::ListChanged));
                    }
                }
            }
            let Some(item) = list.get(frame.index) else {
                if frame.in_batch > 0 {
                    self.out.opcode(byte::APPENDS);
                    if cfg!(Py_3_14) && list.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::ListChanged));
                    }
                }
                break;
            };
            frame.index += 1;
            if !frame.single {
                if frame.in_batch == 0 {
                    self.out.opcode(byte::MARK);
                }
                frame.in_batch += 1;
            }
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::List(frame), item, below);
            }
            begun = true;
            if !frame.single {
                let done = self.number_run(
                    q,
                    list,
                    item,
                    frame.index,
                    (BATCH - frame.in_batch) as usize,
                );
                frame.index += done;
                frame.in_batch += done as u32;
            }
        }
        self.leave(obj);
        Progress::Done
    }

    /// After a number: writes numbers of the same type that follow it in the list, at most `limit`; returns how many.
    ///
    /// Runs of numbers are common, and most of what one costs is finding out that nothing else has to be done for it: here
    /// that is asked once for many.
    #[inline(always)]
    fn number_run<'q>(
        &mut self,
        q: Quiet<'q>,
        list: List<'q>,
        last: Obj<'q>,
        from: usize,
        limit: usize,
    ) -> usize {
        match classify(last) {
            Kind::Int(_) => self.run_of(q, list, from, limit, |obj| {
                classify_int(obj)?.small().map(Number::Int)
            }),
            Kind::Float(_) => self.run_of(q, list, from, limit, |obj| {
                Some(Number::Float(classify_float(obj)?))
            }),
            _ => 0,
        }
    }

    #[inline(always)]
    fn run_of<'q>(
        &mut self,
        _q: Quiet<'q>,
        list: List<'q>,
        from: usize,
        limit: usize,
        number: impl Fn(Obj<'q>) -> Option<Number>,
    ) -> usize {
        if self.asks_persistent_id || self.out.protocol() == 0 || list.len() < from + RUN_MIN {
            return 0;
        }
        let mut at = from;
        while at < from + limit && self.out.has_frame_room(RUN) {
            let mut run = Run::new();
            while at < from + limit && run.has_room() {
                match list.get(at).and_then(&number) {
                    Some(Number::Int(value)) => run.int(value),
                    Some(Number::Float(value)) => run.float(value),
                    None => {
                        self.out.raw(run.bytes());
                        return at - from;
                    }
                }
                at += 1;
            }
            self.out.raw(run.bytes());
        }
        at - from
    }

    /// Begins a dict that has not been written, or (`build`) an instance's state that is one.
    fn open_dict<'q>(
        &mut self,
        q: Quiet<'q>,
        dict: Dict<'q>,
        fresh: Fresh,
        build: bool,
    ) -> Progress<'q> {
        let obj = dict.obj();
        if !self.enter(obj) {
            return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
        }
        self.empty_dict();
        self.remember(obj, fresh);
        let size = dict.len();
        if size == 0 {
            self.leave(obj);
            if build {
                self.out.opcode(byte::BUILD);
            }
            return Progress::Done;
        }
        let single = size == 1 || self.out.protocol() == 0;
        if !single {
            self.out.opcode(byte::MARK);
        }
        let frame = DictFrame {
            dict: obj.anchor(),
            pos: 0,
            value: None,
            in_batch: 0,
            single,
            build,
            size,
        };
        self.fill_dict::<false>(q, frame)
    }

    fn empty_dict(&mut self) {
        if self.out.protocol() >= 1 {
            self.out.opcode(byte::EMPTY_DICT);
        } else {
            self.out.opcodes([byte::MARK, byte::DICT]);
        }
    }

    #[inline(always)]
    fn fill_dict<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: DictFrame,
    ) -> Progress<'q> {
        let obj = frame.dict.obj(q);
        let Kind::Dict(dict) = classify(obj) else {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        };
        let mut value = if DEEP {
            frame.value.take().map(|value| value.obj(q))
        } else {
            None
        };
        // Whether a pair is complete.
        let mut begun = DEEP && value.is_none();
        let shares_keys = dict.shares_keys();
        let mut items = dict.items(frame.pos);
        loop {
            let item = match value.take() {
                Some(item) => item,
                None => {
                    if begun && self.end_pair(dict, &mut frame) {
                        break;
                    }
                    let Some((key, item)) = items.next() else {
                        if !frame.single {
                            self.out.opcode(byte::SETITEMS);
                        }
                        if dict.len() != frame.size {
                            return Progress::Ask(Ask::Fail(Fault::DictChanged));
                        }
                        break;
                    };
                    // Keys that other dicts share may be met again, however few references they have.
                    let saved = if shares_keys {
                        self.save_shared::<DEEP>(q, key)
                    } else {
                        self.save::<DEEP>(q, key)
                    };
                    if let Err(below) = saved {
                        frame.pos = items.at;
                        frame.value = Some(item.anchor());
                        return self.descend(Frame::Dict(frame), key, below);
                    }
                    item
                }
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                frame.pos = items.at;
                return self.descend(Frame::Dict(frame), item, below);
            }
            begun = true;
        }
        if dict.len() != frame.size && (!frame.single || self.out.protocol() == 0) {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        }
        self.leave(obj);
        if frame.build {
            self.out.opcode(byte::BUILD);
        }
        Progress::Done
    }

    /// Ends a pair of a dict, and its batch if that is full; true where the dict is complete.
    #[inline(always)]
    fn end_pair(&mut self, dict: Dict<'_>, frame: &mut DictFrame) -> bool {
        if frame.single {
            self.out.opcode(byte::SETITEM);
            return self.out.protocol() > 0 || dict.len() != frame.size;
        }
        frame.in_batch += 1;
        if frame.in_batch == BATCH {
            self.out.opcode(byte::SETITEMS);
            if dict.len() != frame.size {
                return true;
            }
            // Also where nothing follows: so does CPython.
            self.out.opcode(byte::MARK);
            frame.in_batch = 0;
        }
        false
    }

    /// Writes an object whose count of references says nothing.
    #[inline(always)]
    fn save_shared<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        key: Obj<'q>,
    ) -> Result<(), Below<'q>> {
        self.open += 1;
        let saved = self.save::<DEEP>(q, key);
        self.open -= 1;
        self.next_is_shared = matches!(saved, Err(Below::Enter));
        saved
    }

    fn open_set<'q>(&mut self, q: Quiet<'q>, set: Set<'q>) -> Progress<'q> {
        let obj = set.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        if self.sorts_sets() {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        self.out.opcode(byte::EMPTY_SET);
        self.remember(obj, fresh);
        let size = set.len();
        if size == 0 {
            return Progress::Done;
        }
        self.out.opcode(byte::MARK);
        self.fill_set::<false>(
            q,
            SetFrame {
                set: obj.anchor(),
                pos: 0,
                in_batch: 0,
                size,
            },
        )
    }

    #[inline(always)]
    fn fill_set<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: SetFrame,
    ) -> Progress<'q> {
        let Kind::Set(set) = classify(frame.set.obj(q)) else {
            return Progress::Done;
        };
        let mut begun = DEEP;
        loop {
            if begun {
                frame.in_batch += 1;
                if frame.in_batch == BATCH {
                    self.out.opcode(byte::ADDITEMS);
                    if set.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::SetChanged));
                    }
                    // Also where nothing follows: so does CPython.
                    self.out.opcode(byte::MARK);
                    frame.in_batch = 0;
                }
            }
            let Some(item) = set.next(&mut frame.pos) else {
                break;
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Set(frame), item, below);
            }
            begun = true;
        }
        self.out.opcode(byte::ADDITEMS);
        if set.len() != frame.size {
            return Progress::Ask(Ask::Fail(Fault::SetChanged));
        }
        Progress::Done
    }

    fn open_frozenset<'q>(&mut self, q: Quiet<'q>, set: Set<'q>) -> Progress<'q> {
        let obj = set.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        let sole = fresh.is_sole();
        if self.sorts_sets() || !self.sorted.is_empty() && self.is_sorted_set(obj) {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        self.open += usize::from(!sole);
        self.out.opcode(byte::MARK);
        self.fill_frozenset::<false>(
            q,
            FrozenSetFrame {
                set: obj.anchor(),
                pos: 0,
                sole,
            },
        )
    }

    #[inline(always)]
    fn fill_frozenset<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: FrozenSetFrame,
    ) -> Progress<'q> {
        let obj = frame.set.obj(q);
        let Kind::FrozenSet(set) = classify(obj) else {
            return Progress::Done;
        };
        while let Some(item) = set.next(&mut frame.pos) {
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::FrozenSet(frame), item, below);
            }
        }
        self.open -= usize::from(!frame.sole);
        // It may have been met, and written, below itself.
        if !frame.sole
            && let Some(number) = self.memo.get(obj)
        {
            self.out.opcode(byte::POP_MARK);
            self.out.get(number);
        } else {
            self.out.opcode(byte::FROZENSET);
            self.remember(obj, Fresh::of(frame.sole));
        }
        Progress::Done
    }

    /// Begins an object of any other type.
    fn open_instance<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>) -> Progress<'q> {
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        let ty = obj.type_ptr();
        if self.out.protocol() < 2 || self.cloud.is_some() && ty.is_code_or_cell() {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        let class = ty.as_obj(q);
        let place = match self.verdicts.on(class.address(), ty, self.epoch) {
            Verdict::Walk
                if ty.place() != Place::Unknown && !self.has_special_name(q, obj, ty.place()) =>
            {
                ty.place()
            }
            Verdict::Time(time) => return self.open_time(q, obj, time, fresh),
            Verdict::Unknown => return Progress::Ask(Ask::Judge(obj.anchor())),
            _ => return Progress::Ask(Ask::Reduce(obj.anchor())),
        };
        match self.memo.get(class) {
            Some(number) => self.out.get(number),
            None => return Progress::Ask(Ask::Instance(obj.anchor())),
        }
        self.instance_body(q, obj, place, fresh)
    }

    /// Whether the instance has an attribute that could change how it is reduced.
    #[inline(always)]
    fn has_special_name<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, place: Place) -> bool {
        fn is_special<'q>(q: Quiet<'q>, key: Obj<'q>) -> bool {
            matches!(classify(key), Kind::Str(name) if name.utf8(q).is_some_and(|name| name.starts_with(b"__")))
        }
        match obj.attributes(q, place) {
            Attributes::Empty => false,
            Attributes::Foreign => true,
            Attributes::Dict(dict) => dict.items(0).any(|(key, _)| is_special(q, key)),
            Attributes::Values(values) => {
                let class = obj.type_ptr().as_obj(q).address();
                let keys = values.keys_id();
                if self.verdicts.is_harmless(class, keys) {
                    return false;
                }
                let special = values.keys(q).any(|key| is_special(q, key));
                if !special {
                    self.verdicts.harmless(class, keys);
                }
                special
            }
        }
    }

    /// Writes an instance whose class is on the stack.
    fn instance_body<'q>(
        &mut self,
        q: Quiet<'q>,
        obj: Obj<'q>,
        place: Place,
        fresh: Fresh,
    ) -> Progress<'q> {
        self.boundary();
        self.out.opcodes([byte::EMPTY_TUPLE, byte::NEWOBJ]);
        self.remember(obj, fresh);
        match obj.attributes(q, place) {
            Attributes::Foreign => Progress::Ask(Ask::Fail(Fault::DictChanged)),
            Attributes::Empty => Progress::Done,
            Attributes::Dict(dict) => {
                if dict.len() == 0 {
                    return Progress::Done;
                }
                self.boundary();
                match self.fresh(dict.obj()) {
                    None => {
                        self.out.opcode(byte::BUILD);
                        Progress::Done
                    }
                    Some(fresh) => self.open_dict(q, dict, fresh, true),
                }
            }
            Attributes::Values(values) => {
                let size = values.len();
                if size == 0 {
                    return Progress::Done;
                }
                self.boundary();
                if !self.enter(obj) {
                    return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
                }
                self.empty_dict();
                // No one else can have a dict that does not exist.
                self.skip();
                if size > 1 {
                    self.out.opcode(byte::MARK);
                }
                self.fill_values::<false>(
                    q,
                    ValuesFrame {
                        instance: obj.anchor(),
                        index: 0,
                        value: None,
                        size,
                    },
                )
            }
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
    fn fill_values<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: ValuesFrame,
    ) -> Progress<'q> {
        let values: Values<'q> = match frame.instance.obj(q).attributes(q, Place::Managed) {
            Attributes::Values(values) => values,
            Attributes::Empty | Attributes::Foreign => {
                return Progress::Ask(Ask::Fail(Fault::DictChanged));
            }
            // Other code has asked for `__dict__`: go on with that.
            Attributes::Dict(dict) => {
                self.leave(frame.instance.obj(q));
                if !self.enter(dict.obj()) {
                    return Progress::Ask(Ask::Fail(Fault::Cyclic(dict.obj().anchor())));
                }
                let (pos, size) = (frame.index, frame.size);
                let in_batch = (pos as u32).saturating_sub(1);
                return self.fill_dict::<DEEP>(
                    q,
                    DictFrame {
                        dict: dict.obj().anchor(),
                        pos,
                        value: frame.value,
                        in_batch,
                        single: size == 1,
                        build: true,
                        size,
                    },
                );
            }
        };
        let mut value = if DEEP {
            frame.value.take().map(|value| value.obj(q))
        } else {
            None
        };
        loop {
            let item = match value.take() {
                Some(item) => item,
                None => {
                    let Some((key, item)) = values.get(frame.index) else {
                        break;
                    };
                    frame.index += 1;
                    if let Err(below) = self.save_shared::<DEEP>(q, key) {
                        frame.value = Some(item.anchor());
                        return self.descend(Frame::Values(frame), key, below);
                    }
                    item
                }
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Values(frame), item, below);
            }
        }
        if frame.index != frame.size {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        }
        self.out.opcodes([
            if frame.size == 1 {
                byte::SETITEM
            } else {
                byte::SETITEMS
            },
            byte::BUILD,
        ]);
        self.leave(frame.instance.obj(q));
        Progress::Done
    }

    /// Writes a class or function as STACK_GLOBAL of its module's name and its own; false, and nothing is written, where
    /// these are not short strs, or a frame is about to end.
    pub(super) fn write_stack_global<'q>(
        &mut self,
        q: Quiet<'q>,
        [module, name, obj]: [Obj<'q>; 3],
    ) -> bool {
        let is_short = |text: Obj<'q>| matches!(classify(text), Kind::Str(text) if text.utf8(q).is_some_and(|utf8| utf8.len() < 256));
        if !is_short(module) || !is_short(name) || !self.out.has_frame_room(1024) {
            return false;
        }
        // Held by others too, whatever their counts say.
        self.open += 1;
        for text in [module, name] {
            self.leaf(q, text, &classify(text));
        }
        self.open -= 1;
        self.out.opcode(byte::STACK_GLOBAL);
        self.remember(obj, Fresh::Shared);
        true
    }

    /// Writes `obj` as the call that `value`, a pair of class and arguments, says; false, and nothing is written, where
    /// that takes more than leaves and a class that has been written.
    ///
    /// The pair and the tuple of arguments have been made for the purpose and are dropped after: what only they hold can
    /// never be met again, and only uses up its number.
    pub(super) fn write_simple<'q>(&mut self, q: Quiet<'q>, value: Obj<'q>, obj: Obj<'q>) -> bool {
        let Kind::Tuple(pair) = classify(value) else {
            return false;
        };
        let (Some(class), Some(args)) = (pair.get(0), pair.get(1)) else {
            return false;
        };
        let (Kind::Type, Kind::Tuple(items)) = (classify(class), classify(args)) else {
            return false;
        };
        let len = items.len();
        let Some(number) = self.memo.get(class) else {
            return false;
        };
        if !(1..=3).contains(&len) || self.out.protocol() < 3 || !self.out.has_frame_room(1024) {
            return false;
        }
        let is_leaf = |item: Obj<'q>| match classify(item) {
            Kind::Str(text) => text.utf8(q).is_some_and(|utf8| utf8.len() < 256),
            Kind::Bytes(bytes) => bytes.as_slice(q).len() < 256,
            Kind::Int(int) => int.small().is_some(),
            Kind::Float(_) | Kind::None | Kind::Bool(_) => true,
            _ => false,
        };
        if !value.is_sole()
            || !args.is_sole()
            || !(0..len).all(|at| items.get(at).is_some_and(is_leaf))
            || self.names_a_constructor(q, class)
        {
            return false;
        }
        self.out.get(number);
        for at in 0..len {
            let Some(item) = items.get(at) else { break };
            let open = std::mem::take(&mut self.open);
            if item.is_sole() {
                self.leaf_once(q, item);
            } else {
                self.open = open + 1;
                self.leaf(q, item, &classify(item));
            }
            self.open = open;
        }
        self.out
            .opcode([byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1]);
        self.skip();
        self.out.opcode(byte::REDUCE);
        self.remember(obj, Fresh::Shared);
        true
    }

    /// Writes a leaf that is dropped right after.
    fn leaf_once<'q>(&mut self, q: Quiet<'q>, item: Obj<'q>) {
        match classify(item) {
            Kind::Str(text) => {
                if let Some(utf8) = text.utf8(q) {
                    if self.out.protocol() >= 4 {
                        self.out.short_unicode(utf8);
                    } else {
                        let _ = self.out.unicode_header(utf8.len());
                        self.out.raw(utf8);
                    }
                    self.skip();
                }
            }
            Kind::Bytes(bytes) => {
                let bytes = bytes.as_slice(q);
                let _ = self.out.bytes_header(bytes.len());
                self.out.raw(bytes);
                self.skip();
            }
            kind => {
                self.leaf(q, item, &kind);
            }
        }
    }

    /// Whether the class is called like one of copyreg's constructors, which mean something else.
    fn names_a_constructor<'q>(&mut self, q: Quiet<'q>, class: Obj<'q>) -> bool {
        class.type_name(q).starts_with(b"__newobj")
    }

    /// Goes on with a plan.
    fn follow<'q>(&mut self, q: Quiet<'q>, mut plan: Box<Plan>) -> Progress<'q> {
        while let Some(step) = plan.steps.get_mut(plan.at) {
            match step {
                Step::Save(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    return Progress::Enter(Frame::Plan(plan), object);
                }
                Step::SaveAsIs(object) => {
                    self.has_no_persistent_id = true;
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    return Progress::Enter(Frame::Plan(plan), object);
                }
                Step::Write(bytes) => self.out.raw(bytes),
                step @ (Step::None
                | Step::Int(_)
                | Step::Opcode(_)
                | Step::Number
                | Step::Boundary
                | Step::Helper(..)) => self.simple_step(q, step),
                Step::Remember(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    if self.remember_built(object) {
                        break;
                    }
                }
                Step::RememberPart(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    self.remember_built(object);
                }
                Step::BeginObject => {
                    self.open += 1;
                    plan.unremembered += 1;
                }
                Step::Text(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    if !self.write_text(q, object) {
                        plan.at += 1;
                        return Progress::Enter(Frame::Plan(plan), object);
                    }
                }
                Step::Globals(globals) => {
                    self.boundary();
                    if !self.known_globals(globals.of.as_ref()) {
                        let steps = self.globals_steps(globals);
                        let next = plan.at + 1;
                        plan.steps.splice(next..next, steps);
                    }
                }
                Step::RememberName(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    self.remember(object, Fresh::Shared);
                }
                Step::Instance(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    if self.time_body(q, object, Fresh::Shared) {
                        continue;
                    }
                    let place = object.type_ptr().place();
                    match self.instance_body(q, object, place, Fresh::Shared) {
                        Progress::Done => continue,
                        begun => {
                            return self.descend(Frame::Plan(plan), object, Below::Begun(begun));
                        }
                    }
                }
                Step::ListItems(_) | Step::DictItems(_) => match self.items(q, step) {
                    ItemStep::Save(object) => return Progress::Enter(Frame::Plan(plan), object),
                    ItemStep::Fetch => return Progress::Pause(Frame::Plan(plan), Ask::NextItem),
                    ItemStep::End => {}
                },
            }
            plan.at += 1;
        }
        self.spent.push(plan);
        Progress::Done
    }
}
