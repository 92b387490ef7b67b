//! The engine of the pickler: its state, and the loop that walks, answers what the walk asks for, and walks on.
//!
//! Between two walks Python runs. Before it does, [`Engine::settle`] takes references to all that the walk will look at
//! again; that is the one place where the borrowed pointers of quiet sections are made to last.

use std::cell::Cell;
use std::collections::HashSet;

use pyo3::exceptions::{PyRecursionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyTuple};
use quickpickle_format::Writer;

use crate::cloud::Cloud;
use crate::cloud::special::special;
use crate::ffi::bytes::GrowingBytes;
use crate::ffi::memo::Memo;
use crate::ffi::object::{Anchor, Obj, quiet};
use crate::ffi::outside;

use super::frame::Frame;
use super::plan::{Items, Plan, Step};
use super::verdict::Verdicts;
use super::walk::{Ask, Fault};

/// Containers that may be open at a time, so that an endless one ends. An object that is reduced counts for itself and for
/// what holds its arguments or state.
pub(crate) const MAX_DEPTH: usize = 1_100_000;

/// Nesting from which fast mode looks for cycles.
const FAST_NESTING: usize = 50;

/// Where opcodes are written.
pub(super) type Output = Writer<GrowingBytes>;

/// What a dump is asked to do; the hooks of a Pickler.
#[derive(Default)]
pub(crate) struct Settings {
    /// Protocol, 0 to 5.
    pub(crate) protocol: u8,
    /// Whether names are mapped to Python 2's in protocols below 3.
    pub(crate) fix_imports: bool,
    /// Whether nothing is remembered.
    pub(crate) fast: bool,
    /// `file.write`, where the pickle goes to a file.
    pub(crate) write: Option<Py<PyAny>>,
    /// `buffer_callback`.
    pub(crate) buffer_callback: Option<Py<PyAny>>,
    /// `persistent_id`.
    pub(crate) persistent_id: Option<Py<PyAny>>,
    /// `reducer_override`.
    pub(crate) reducer_override: Option<Py<PyAny>>,
    /// The Pickler's own `dispatch_table`.
    pub(crate) dispatch_table: Option<Py<PyAny>>,
    /// How to write what travels by value; None where nothing does.
    pub(crate) cloud: Option<Cloud>,
}

/// State of a pickler; reused from dump to dump.
pub(crate) struct Engine {
    pub(super) out: Output,
    pub(super) memo: Memo,
    pub(super) frames: Vec<Frame>,
    /// Frames below this have references taken for them.
    kept_frames: usize,
    /// References taken for frames, until the end of the dump.
    pub(super) keep: Vec<Py<PyAny>>,
    /// How many containers are open that could be met again but are not remembered yet. Only while there are none can
    /// an object with a single reference be met only once.
    pub(super) open: usize,
    /// What to begin with when walking on.
    pub(super) next: Option<Anchor>,
    /// Whether `next` is held by more than its references tell.
    pub(super) next_is_shared: bool,
    /// Whether `next` is not to be asked for its persistent id.
    pub(super) has_no_persistent_id: bool,
    /// Plans worked off, to be dropped outside of the walk.
    #[expect(
        clippy::vec_box,
        reason = "the boxes exist already; they are only collected"
    )]
    pub(super) spent: Vec<Box<Plan>>,
    /// Objects to be dropped outside of the walk.
    pub(super) spent_objects: Vec<Py<PyAny>>,
    pub(super) verdicts: Verdicts,
    /// Counts dumps and runs of other code.
    pub(super) epoch: u64,
    /// Ends of complete frames that wait to be written to the file.
    pub(super) cuts: Vec<usize>,
    /// Whether those should be written now.
    pub(super) flush_is_due: bool,
    pub(super) to_file: bool,
    pub(super) fast: bool,
    pub(super) asks_persistent_id: bool,
    /// Whether instances always go to a hook first.
    pub(super) overrides_reducers: bool,
    /// Whether other code has run, for which things were kept that are dropped after the dump.
    has_rest: bool,
    /// Whether reducers may be replaced by a table.
    has_table: bool,
    /// How to write what travels by value.
    pub(super) cloud: Option<Cloud>,
    /// What a script could not answer itself, to be answered next.
    pub(super) asked: Option<Ask>,
    /// Globals of functions written so far, and the numbers under which they are remembered.
    pub(super) globals: Vec<(Py<PyAny>, usize)>,
    /// frozensets that are written in an order of their own.
    pub(super) sorted: Vec<(Py<PyAny>, Py<PyTuple>)>,
    /// Whether nothing of a dump is to be remembered after it.
    forgets: bool,
    /// In fast mode: addresses of lists and dicts being written.
    inside: HashSet<usize>,
    /// In fast mode: how many lists and dicts are being written.
    fast_nesting: usize,
}

impl Engine {
    /// An engine without any memory of its own yet.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Engine {
            out: Writer::new(GrowingBytes::new(), 0),
            memo: Memo::new(),
            frames: Vec::new(),
            kept_frames: 0,
            keep: Vec::new(),
            open: 0,
            next: None,
            next_is_shared: false,
            has_no_persistent_id: false,
            spent: Vec::new(),
            spent_objects: Vec::new(),
            verdicts: Verdicts::new(),
            epoch: 0,
            cuts: Vec::new(),
            flush_is_due: false,
            to_file: false,
            fast: false,
            asks_persistent_id: false,
            overrides_reducers: false,
            has_rest: false,
            has_table: false,
            cloud: None,
            asked: None,
            globals: Vec::new(),
            sorted: Vec::new(),
            forgets: false,
            inside: HashSet::new(),
            fast_nesting: 0,
        })
    }

    /// Writes `obj`. The bytes are in the output after, up to what has been written to the file.
    pub(crate) fn dump(&mut self, obj: &Bound<'_, PyAny>, settings: &Settings) -> PyResult<()> {
        let py = obj.py();
        self.to_file = settings.write.is_some();
        self.fast = settings.fast;
        self.asks_persistent_id = settings.persistent_id.is_some();
        self.overrides_reducers = settings.reducer_override.is_some();
        self.has_table = settings.dispatch_table.is_some();
        self.cloud = settings.cloud;
        self.epoch += 1;
        if self.to_file {
            self.cuts.clear();
            self.flush_is_due = false;
        }
        self.out.restart(settings.protocol);
        // A reference beside the caller's, so that the root is always remembered: the caller's need not be counted.
        let root = obj.clone();
        let anchor = Anchor::of(&root);
        let written = match quiet(py, |q| self.start(q, anchor.obj(q))) {
            Ask::Finished => Ok(()),
            ask => self.run(py, ask, settings),
        };
        match &written {
            Ok(()) => self.out.end(),
            Err(error) => self.add_notes(&root, error),
        }
        if written.is_err() || self.has_rest {
            self.rest(py);
        }
        written
    }

    /// Answers what the walk asks for and walks on, until all is written.
    #[inline(never)]
    fn run(&mut self, py: Python<'_>, mut ask: Ask, settings: &Settings) -> PyResult<()> {
        self.has_rest = true;
        loop {
            if matches!(ask, Ask::Finished) {
                return Ok(());
            }
            // First of all: what settling drops may run code that takes the object out of its container.
            let _held = ask.anchor().map(|anchor| anchor.pin(py));
            self.settle(py);
            self.answer(py, ask, settings)?;
            ask = match self.asked.take() {
                Some(ask) => ask,
                None => quiet(py, |q| self.walk(q)),
            };
        }
    }

    /// Drops what the dump leaves behind. The memo stays, holding references.
    #[inline(never)]
    fn rest(&mut self, py: Python<'_>) {
        self.has_rest = false;
        self.next = None;
        self.asked = None;
        self.next_is_shared = false;
        self.has_no_persistent_id = false;
        self.open = 0;
        self.inside.clear();
        self.fast_nesting = 0;
        self.kept_frames = 0;
        if self.frames.is_empty()
            && self.spent.is_empty()
            && self.keep.is_empty()
            && self.spent_objects.is_empty()
        {
            return;
        }
        // Before anything is dropped: a freed object's address must not stay in the memo.
        if self.forgets {
            self.forget(py);
        } else {
            self.memo.settle(py);
        }
        let frames = std::mem::take(&mut self.frames);
        let spent = std::mem::take(&mut self.spent);
        let objects = std::mem::take(&mut self.spent_objects);
        let mut keep = std::mem::take(&mut self.keep);
        let sorted = std::mem::take(&mut self.sorted);
        keep.clear();
        // Kept for the next dump, unless code that ran above has begun to use it.
        if keep.capacity() <= 1024 && self.keep.capacity() == 0 {
            self.keep = keep;
        }
        drop((frames, spent, objects, sorted));
    }

    /// Makes the memo last beyond the dump.
    pub(crate) fn keep_memo(&mut self, py: Python<'_>) {
        self.memo.settle(py);
    }

    /// After a dump of a Pickler, or its failure: the memo lasts, memory that is not worth keeping goes.
    pub(crate) fn give_back(&mut self, py: Python<'_>) {
        self.memo.settle(py);
        self.out.sink_mut().shrink();
    }

    /// Empties the memo.
    pub(crate) fn forget(&mut self, py: Python<'_>) {
        self.memo.clear(py);
        if !self.globals.is_empty() {
            let mut globals = std::mem::take(&mut self.globals);
            globals.clear();
            if globals.capacity() <= 64 {
                self.globals = globals;
            }
        }
    }

    /// Whether hooks or tables may have a say in what becomes of an object.
    pub(crate) fn asks_hooks(&self) -> bool {
        self.asks_persistent_id || self.overrides_reducers || self.has_table
    }

    /// Takes references to all that the walk will look at again; drops what it is done with.
    pub(super) fn settle(&mut self, py: Python<'_>) {
        self.memo.settle(py);
        for frame in &mut self.frames[self.kept_frames..] {
            frame.anchors(|anchor| self.keep.push(anchor.pin(py).unbind()));
            // Other code could make it reachable by a second way.
            if let Frame::Tuple(super::frame::TupleFrame { sole, .. })
            | Frame::FrozenSet(super::frame::FrozenSetFrame { sole, .. }) = frame
                && *sole
            {
                *sole = false;
                self.open += 1;
            }
        }
        self.kept_frames = self.frames.len();
        if let Some(next) = self.next {
            self.keep.push(next.pin(py).unbind());
        }
        if !self.spent.is_empty() {
            drop(std::mem::take(&mut self.spent));
        }
        if !self.spent_objects.is_empty() {
            drop(std::mem::take(&mut self.spent_objects));
        }
    }

    fn answer(&mut self, py: Python<'_>, ask: Ask, settings: &Settings) -> PyResult<()> {
        match ask {
            Ask::Finished => Ok(()),
            Ask::Flush => self.flush_cuts(py, settings),
            Ask::Payload(obj) => self.save_payload(obj.pin(py), settings),
            Ask::Reduce(obj) => self.reduce(obj.pin(py), settings),
            Ask::Judge(obj) => {
                let obj = obj.pin(py);
                if self.cloud.is_some() && special(&obj.get_type())?.is_some() {
                    return self.reduce(obj, settings);
                }
                let table = settings.dispatch_table.as_ref().map(|table| table.bind(py));
                if self.verdicts.judge(&obj.get_type(), table, self.epoch)? {
                    // It has been asked about already.
                    self.has_no_persistent_id = self.asks_persistent_id;
                    self.begin_with(obj);
                    Ok(())
                } else {
                    self.reduce(obj, settings)
                }
            }
            Ask::Instance(obj) => {
                let obj = obj.pin(py);
                let class = obj.get_type().into_any().unbind();
                self.plan(vec![Step::Save(class), Step::Instance(obj.unbind())], true)
            }
            Ask::PersistentId(obj) => self.persistent_id(obj.pin(py), settings),
            Ask::NextItem => self.next_item(py),
            Ask::Fail(fault) => Err(fault_error(py, fault)),
        }
    }

    /// Goes on with an object, which is kept until the end of the dump.
    pub(super) fn begin_with(&mut self, obj: Bound<'_, PyAny>) {
        self.next = Some(Anchor::of(&obj));
        self.keep.push(obj.unbind());
    }

    /// Puts a plan on top, to be worked off next.
    pub(super) fn plan(&mut self, steps: Vec<Step>, unremembered: bool) -> PyResult<()> {
        self.open += usize::from(unremembered);
        if self.push(Frame::Plan(Box::new(Plan::new(steps, unremembered)))) {
            return Ok(());
        }
        Err(too_deep())
    }

    /// Puts a frame on top; false where there are too many.
    #[inline(always)]
    pub(super) fn push(&mut self, frame: Frame) -> bool {
        self.frames.push(frame);
        self.frames.len() <= MAX_DEPTH
    }

    /// Takes the frame on top.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop();
        self.kept_frames = self.kept_frames.min(self.frames.len());
        frame
    }

    /// In fast mode: notes that a list or dict is being written; false if it is inside itself. Asked only below a certain
    /// depth, as CPython does.
    #[inline(always)]
    pub(super) fn enter(&mut self, obj: Obj<'_>) -> bool {
        if !self.fast {
            return true;
        }
        self.fast_nesting += 1;
        self.fast_nesting < FAST_NESTING || self.inside.insert(obj.address())
    }

    /// Undoes [`Engine::enter`].
    #[inline(always)]
    pub(super) fn leave(&mut self, obj: Obj<'_>) {
        if self.fast {
            if self.fast_nesting >= FAST_NESTING {
                self.inside.remove(&obj.address());
            }
            self.fast_nesting -= 1;
        }
    }

    /// Other code may have run: what was found out about classes is to be checked again.
    pub(super) fn exposed(&mut self) {
        self.epoch += 1;
    }

    /// Fetches for the iterator of the plan on top: the first two items of a batch, or one more.
    fn next_item(&mut self, py: Python<'_>) -> PyResult<()> {
        self.exposed();
        let Some(Frame::Plan(mut plan)) = self.pop() else {
            return Ok(());
        };
        let at = plan.at;
        let fetched = match &mut plan.steps[at] {
            Step::ListItems(items) => fetch(py, items, false),
            Step::DictItems(items) => fetch(py, items, true),
            _ => Ok(()),
        };
        self.push(Frame::Plan(plan));
        fetched
    }

    fn persistent_id(&mut self, obj: Bound<'_, PyAny>, settings: &Settings) -> PyResult<()> {
        let py = obj.py();
        let Some(hook) = &settings.persistent_id else {
            return Ok(());
        };
        self.exposed();
        let id = outside::call1(hook.bind(py), &obj)?;
        if id.is_none() {
            self.has_no_persistent_id = true;
            self.begin_with(obj);
            return Ok(());
        }
        use quickpickle_format::opcode::byte;
        if settings.protocol >= 1 {
            return self.plan(
                vec![Step::SaveAsIs(id.unbind()), Step::Opcode(byte::BINPERSID)],
                false,
            );
        }
        let text = id.str()?;
        let text = text
            .to_str()
            .ok()
            .filter(|text| text.is_ascii())
            .ok_or_else(|| {
                crate::python_types::pickling_error(
                    py,
                    "persistent IDs in protocol 0 must be ASCII strings",
                )
            })?;
        self.out.line(byte::PERSID, text.as_bytes());
        Ok(())
    }

    /// Writes complete frames to the file, one call for each.
    fn flush_cuts(&mut self, py: Python<'_>, settings: &Settings) -> PyResult<()> {
        self.flush_is_due = false;
        let mut from = 0;
        for to in std::mem::take(&mut self.cuts) {
            let frame = PyBytes::new(py, &self.out.sink().as_slice()[from..to]);
            from = to;
            self.write(frame.as_any(), settings)?;
        }
        self.out.drop_front(from);
        Ok(())
    }

    /// Writes all that is buffered to the file. No frame may be open.
    pub(crate) fn flush(&mut self, py: Python<'_>, settings: &Settings) -> PyResult<()> {
        self.flush_cuts(py, settings)?;
        let rest = self.out.sink_mut().take(py)?;
        self.write(rest.as_any(), settings)
    }

    /// Calls the file's `write`.
    pub(super) fn write(&mut self, data: &Bound<'_, PyAny>, settings: &Settings) -> PyResult<()> {
        if let Some(write) = &settings.write {
            self.exposed();
            outside::call1(write.bind(data.py()), data)?;
        }
        Ok(())
    }

    /// The bytes written, where they did not go to a file.
    pub(crate) fn take_bytes<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.out.sink_mut().take(py)
    }

    /// For the cyclic collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (globals, _) in &self.globals {
            visit.call(globals)?;
        }
        self.memo.visit(visit)
    }

    /// The memo, for `Pickler.memo`.
    pub(crate) fn memo(&mut self) -> &mut Memo {
        &mut self.memo
    }
}

fn fetch(py: Python<'_>, items: &mut Items, pairs: bool) -> PyResult<()> {
    let iterator = items.iterator.bind(py).cast::<PyIterator>()?.clone();
    let next = || -> PyResult<Option<Py<PyAny>>> {
        let Some(item) = outside::next(iterator.as_any())? else {
            return Ok(None);
        };
        if !pairs || item.is_exact_instance_of::<PyTuple>() && item.len()? == 2 {
            return Ok(Some(item.unbind()));
        }
        match item.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => Ok(Some(
                PyTuple::new(py, [pair.get_item(0)?, pair.get_item(1)?])?
                    .into_any()
                    .unbind(),
            )),
            _ => Err(PyTypeError::new_err(
                "dict items iterator must return 2-tuples",
            )),
        }
    };
    let current = next()?;
    if current.is_none() {
        items.ended = true;
        return Ok(());
    }
    // A lone item is written without MARK: look whether there is a second. Protocol 0 knows no batches.
    if items.in_batch == 0 && !items.single {
        items.ahead = next()?;
        items.single = items.ahead.is_none();
    }
    items.current = current;
    Ok(())
}

pub(super) fn too_deep() -> PyErr {
    PyRecursionError::new_err("maximum recursion depth exceeded while pickling an object")
}

fn fault_error(py: Python<'_>, fault: Fault) -> PyErr {
    match fault {
        Fault::ListChanged => PyRuntimeError::new_err("list changed size during iteration"),
        Fault::DictChanged => PyRuntimeError::new_err("dictionary changed size during iteration"),
        Fault::SetChanged => PyRuntimeError::new_err("set changed size during iteration"),
        Fault::TooDeep => too_deep(),
        Fault::Cyclic(obj) => {
            let obj = obj.pin(py);
            // The state of an instance is a dict, though none may have been made.
            let is_list = obj.is_exact_instance_of::<pyo3::types::PyList>();
            PyValueError::new_err(format!(
                "fast mode: can't pickle cyclic objects including object type {} at {:p}",
                if is_list { "list" } else { "dict" },
                obj.as_ptr()
            ))
        }
    }
}

thread_local! {
    static SPARE: Cell<Option<Box<Engine>>> = const { Cell::new(None) };
}

/// Runs `body` with an engine whose memo is empty, reusing the thread's spare one.
pub(crate) fn with_engine<R>(
    py: Python<'_>,
    body: impl FnOnce(&mut Engine) -> PyResult<R>,
) -> PyResult<R> {
    // Taken out of its place while in use: what `body` calls may get here again. At the end of a thread there is no place.
    let mut body = Some(body);
    let mut run = |engine: &mut Engine| match body.take() {
        Some(body) => body(engine),
        None => Err(PyRuntimeError::new_err("ran already")),
    };
    SPARE
        .try_with(|spare| {
            let mut engine = spare.take().unwrap_or_else(Engine::new);
            engine.forgets = true;
            let result = run(&mut engine);
            engine.forget(py);
            engine.out.sink_mut().shrink();
            spare.set(Some(engine));
            result
        })
        .unwrap_or_else(|_| run(&mut Engine::new()))
}
