//! The walk: from objects to opcodes without running Python.
//!
//! [`Engine::walk`] goes on until the object is written or something needs Python: a reducer, a name, a hook, a file.
//! Then it returns an [`Ask`]; [`super::engine`] answers it and walks on. Order and choice of opcodes are CPython's.
//!
//! Leaves (atoms, strings, what has been written before) are written in the loops over containers; a container met there
//! is begun at once, and if all it holds are leaves it is ended at once. Only otherwise a frame is pushed.

use super::engine::Engine;
use super::frame::Frame;
use crate::ffi::object::{Anchor, Obj, Quiet};
use crate::ffi::types::{Kind, classify};
use quickpickle_format::Sink;

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
pub(super) enum Below<'q> {
    /// It has not been looked at.
    Enter,
    /// It has been begun.
    Begun(Progress<'q>),
}

/// Bytes of complete frames that may wait to be written to a file, besides those that the memo's size allows for.
const FLUSH_SIZE: usize = 1024 * 1024;

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

    pub(super) fn go_on<'q>(&mut self, q: Quiet<'q>, mut progress: Progress<'q>) -> Ask {
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

    pub(super) fn resume<'q>(&mut self, q: Quiet<'q>, frame: Frame) -> Progress<'q> {
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
    pub(super) fn cut(&mut self) -> bool {
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
    pub(super) fn save<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        item: Obj<'q>,
    ) -> Result<(), Below<'q>> {
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
    pub(super) fn descend<'q>(
        &mut self,
        frame: Frame,
        item: Obj<'q>,
        below: Below<'q>,
    ) -> Progress<'q> {
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

    /// Begins an object that is no leaf.
    pub(super) fn open<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>, kind: Kind<'q>) -> Progress<'q> {
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
}
