//! Dynamic classes and the ids they travel under: the same class in, the same class out.
//!
//! A class that was defined at run time gets a random id when it is first dumped; whoever loads that id again, in this
//! process or back from another one, gets the class that has it. Both sides use this: dumping asks [`id_of`], loading
//! asks [`find`] and [`lookup_or_track`]. Type variables are tracked as classes are.
//!
//! What must stay true: classes are held weakly and by identity; a dead class's entry is never handed out, and dead
//! entries never outnumber the live ones by much; no Python code runs while the table is locked. A class is *complete*
//! once the state of a load has been put into it; until then every load that meets it fills it itself, so that no load
//! returns a class that lacks something. A class is *at home* in the process that drew its id.
//!
//! Copies of cloudpickle that the process has imported keep tables of their own, under the same ids. They are looked at
//! before a class is made anew and told of classes tracked here, so that both see one class; none is imported for that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyWeakrefMethods, PyWeakrefReference};

use super::base::Base;
use crate::ffi::compat;

/// Modules that keep a table like this one, where they are imported.
const PEERS: [&str; 4] = [
    "cloudpickle.cloudpickle",
    "pyspark.cloudpickle.cloudpickle",
    "ray.cloudpickle.cloudpickle",
    "joblib.externals.cloudpickle.cloudpickle",
];

/// Entries below which dead ones are not looked for.
const SWEEP_AT_LEAST: usize = 256;

struct Entry {
    class: Py<PyWeakrefReference>,
    id: Py<PyString>,
    complete: bool,
    /// The process that drew the id, if it was drawn by one that shares this memory.
    home: Option<u32>,
    /// What the last load has put into the class.
    base: Option<Arc<Base>>,
}

/// What is known of a class.
pub(crate) enum Standing {
    /// It has no id.
    Untracked,
    /// It is being filled, or has been filled by others.
    Incomplete,
    /// It was filled by a load, which has put this into it.
    Loaded(Option<Arc<Base>>),
    /// It was defined in this process.
    Home,
}

#[derive(Default)]
struct Table {
    /// By the class's address. The entry of a dead class may be found under the address of a new one.
    by_class: HashMap<usize, Entry>,
    by_id: HashMap<Box<str>, Py<PyWeakrefReference>>,
    /// Number of entries at which dead ones are removed.
    sweep_at: usize,
    /// The peers' modules that have been told all that is here.
    told: Vec<Py<PyWeakrefReference>>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// The table, locked. No Python code may run before it is unlocked: that could come back here.
struct Locked(MutexGuard<'static, Option<Table>>);

impl Locked {
    fn take() -> Self {
        Locked(TABLE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn table(&mut self) -> &mut Table {
        self.0.get_or_insert_with(Table::default)
    }
}

/// What is under a weak reference, if it lives.
fn alive<'py>(py: Python<'py>, class: &Py<PyWeakrefReference>) -> Option<Bound<'py, PyAny>> {
    class.bind(py).upgrade()
}

impl Table {
    fn entry(&self, class: &Bound<'_, PyAny>) -> Option<&Entry> {
        self.by_class
            .get(&(class.as_ptr() as usize))
            .filter(|entry| alive(class.py(), &entry.class).is_some_and(|found| found.is(class)))
    }

    fn entry_mut(&mut self, class: &Bound<'_, PyAny>) -> Option<&mut Entry> {
        self.by_class
            .get_mut(&(class.as_ptr() as usize))
            .filter(|entry| alive(class.py(), &entry.class).is_some_and(|found| found.is(class)))
    }

    /// The class of an id, if it lives.
    fn by_id<'py>(&self, py: Python<'py>, id: &str) -> Option<Bound<'py, PyAny>> {
        alive(py, self.by_id.get(id)?)
    }

    /// Enters a class. What is replaced is returned, to be dropped once the table is unlocked.
    fn insert(
        &mut self,
        class: &Bound<'_, PyAny>,
        reference: Py<PyWeakrefReference>,
        id: &Bound<'_, PyString>,
        text: &str,
        complete: bool,
        home: Option<u32>,
    ) -> Replaced {
        let py = class.py();
        let mut replaced = Replaced::default();
        if self.by_class.len().max(self.by_id.len()) >= self.sweep_at.max(SWEEP_AT_LEAST) {
            self.sweep(py, &mut replaced);
        }
        let entry = Entry {
            class: reference.clone_ref(py),
            id: id.clone().unbind(),
            complete,
            home,
            base: None,
        };
        replaced
            .entries
            .extend(self.by_class.insert(class.as_ptr() as usize, entry));
        replaced
            .references
            .extend(self.by_id.insert(text.into(), reference));
        replaced
    }

    /// All classes and their ids, if the peer's module has not been told yet; it then counts as told.
    fn untold<'py>(
        &mut self,
        module: &Bound<'py, PyAny>,
        reference: Py<PyWeakrefReference>,
    ) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyString>)> {
        let py = module.py();
        if self
            .told
            .iter()
            .any(|told| alive(py, told).is_some_and(|told| told.is(module)))
        {
            return Vec::new();
        }
        self.told.push(reference);
        self.by_class
            .values()
            .filter_map(|entry| Some((alive(py, &entry.class)?, entry.id.bind(py).clone())))
            .collect()
    }

    /// Takes out the entries of dead classes.
    fn sweep(&mut self, py: Python<'_>, replaced: &mut Replaced) {
        let dead = |class: &Py<PyWeakrefReference>| alive(py, class).is_none();
        replaced.entries.extend(
            self.by_class
                .extract_if(|_, entry| dead(&entry.class))
                .map(|(_, entry)| entry),
        );
        replaced.references.extend(
            self.by_id
                .extract_if(|_, class| dead(class))
                .map(|(_, class)| class),
        );
        self.sweep_at = 2 * self.by_class.len().max(self.by_id.len());
    }
}

/// What an insertion took out of the table; dropped with the table unlocked.
#[derive(Default)]
struct Replaced {
    entries: Vec<Entry>,
    references: Vec<Py<PyWeakrefReference>>,
}

/// The id of a class; a new random one if it has none yet.
pub(crate) fn id_of<'py>(class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = class.py();
    if let Some(entry) = Locked::take().table().entry(class) {
        return Ok(entry.id.bind(py).clone());
    }
    if let Some(id) = peers_id(class)? {
        track(class, &id, true)?;
        return Ok(id);
    }
    let id = PyString::new(py, &uuid::Uuid::new_v4().simple().to_string());
    track_home(class, &id)?;
    // Another thread may have been faster.
    match Locked::take().table().entry(class) {
        Some(entry) => Ok(entry.id.bind(py).clone()),
        None => Ok(id),
    }
}

/// The class that has an id, here or in a copy of cloudpickle that is imported.
pub(crate) fn find<'py>(id: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = id.py();
    let text = id.to_str()?;
    if let Some(class) = Locked::take().table().by_id(py, text) {
        return Ok(Some(class));
    }
    for peer in peers(py)? {
        if let Some(class) = peer.by_id(id)? {
            // A peer does not say whether it is still filling the class: it is filled once more.
            enter(&class, id, false, None)?;
            return Ok(Some(class));
        }
    }
    Ok(None)
}

/// The class that has an id; `class` itself, from then on, if there is none.
pub(crate) fn lookup_or_track<'py>(
    id: &Bound<'py, PyString>,
    class: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    match find(id)? {
        Some(found) => Ok(found),
        None => track(class, id, false),
    }
}

/// Tracks a class under an id, here and in imported copies of cloudpickle. `complete`: nothing remains to be put into
/// it. Returns the class that has the id, which is another one where a thread has been faster.
pub(crate) fn track<'py>(
    class: &Bound<'py, PyAny>,
    id: &Bound<'py, PyString>,
    complete: bool,
) -> PyResult<Bound<'py, PyAny>> {
    track_of(class, id, complete, None)
}

/// Tracks a class that is defined in this process.
pub(crate) fn track_home<'py>(
    class: &Bound<'py, PyAny>,
    id: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    track_of(class, id, true, Some(std::process::id()))
}

fn track_of<'py>(
    class: &Bound<'py, PyAny>,
    id: &Bound<'py, PyString>,
    complete: bool,
    home: Option<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    let (found, is_new) = enter(class, id, complete, home)?;
    if is_new {
        for peer in peers(class.py())? {
            peer.tell(&found, id)?;
        }
    }
    Ok(found)
}

/// Enters a class here, unless another one has the id, which is returned then, or a class that is being dumped has one
/// already. Says whether it was entered.
fn enter<'py>(
    class: &Bound<'py, PyAny>,
    id: &Bound<'py, PyString>,
    complete: bool,
    home: Option<u32>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = class.py();
    let text = id.to_str()?;
    // Made before the table is locked: making it may run the cyclic collector, and so other code.
    let reference = PyWeakrefReference::new(class)?.unbind();
    let replaced = {
        let mut locked = Locked::take();
        let table = locked.table();
        if let Some(found) = table.by_id(py, text) {
            return Ok((found, false));
        }
        let known = table.entry(class).map(|entry| entry.complete);
        if complete && known.is_some() {
            return Ok((class.clone(), false));
        }
        table.insert(
            class,
            reference,
            id,
            text,
            complete || known == Some(true),
            home,
        )
    };
    drop(replaced);
    Ok((class.clone(), true))
}

/// What is known of a class.
pub(crate) fn standing(class: &Bound<'_, PyAny>) -> Standing {
    match Locked::take().table().entry(class) {
        None => Standing::Untracked,
        Some(entry) if !entry.complete => Standing::Incomplete,
        // A child that was forked off is told of what changes at home as any other process is.
        Some(entry) if entry.home.is_some_and(|home| home == std::process::id()) => Standing::Home,
        Some(entry) => Standing::Loaded(entry.base.clone()),
    }
}

/// The class's state has been put into it, and was this.
pub(crate) fn mark_complete(class: &Bound<'_, PyAny>, base: Option<Base>) {
    let base = base.map(Arc::new);
    let before = match Locked::take().table().entry_mut(class) {
        Some(entry) => {
            entry.complete = true;
            std::mem::replace(&mut entry.base, base)
        }
        None => None,
    };
    drop(before);
}

/// The table of an imported copy of cloudpickle.
struct Peer<'py> {
    by_class: Bound<'py, PyAny>,
    by_id: Bound<'py, PyAny>,
    lock: Bound<'py, PyAny>,
}

/// The tables of those copies of cloudpickle that are imported. One that was imported since the last call is told of
/// all classes that are tracked here.
fn peers<'py>(py: Python<'py>) -> PyResult<Vec<Peer<'py>>> {
    let mut peers = Vec::new();
    for name in PEERS {
        let Some(module) = compat::loaded_module(&PyString::intern(py, name))? else {
            continue;
        };
        let attribute = |name: &Bound<'py, PyString>| compat::optional_attribute(&module, name);
        let (Some(by_class), Some(by_id), Some(lock)) = (
            attribute(intern!(py, "_DYNAMIC_CLASS_TRACKER_BY_CLASS"))?,
            attribute(intern!(py, "_DYNAMIC_CLASS_TRACKER_BY_ID"))?,
            attribute(intern!(py, "_DYNAMIC_CLASS_TRACKER_LOCK"))?,
        ) else {
            continue;
        };
        let peer = Peer {
            by_class,
            by_id,
            lock,
        };
        let reference = PyWeakrefReference::new(&module)?.unbind();
        let known = Locked::take().table().untold(&module, reference);
        for (class, id) in known {
            peer.tell(&class, &id)?;
        }
        peers.push(peer);
    }
    Ok(peers)
}

/// The id that an imported copy of cloudpickle has given a class.
fn peers_id<'py>(class: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    for peer in peers(class.py())? {
        // Its table hashes and compares classes, which a metaclass may refuse.
        let Ok(found) = peer
            .by_class
            .call_method1(intern!(class.py(), "get"), (class,))
        else {
            continue;
        };
        if let Ok(id) = found.cast_into::<PyString>()
            && peer.by_id(&id)?.is_some_and(|found| found.is(class))
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

impl<'py> Peer<'py> {
    fn by_id(&self, id: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.by_id.call_method1(intern!(id.py(), "get"), (id,))?;
        Ok((!found.is_none()).then_some(found))
    }

    /// Enters a class, unless the id is taken.
    fn tell(&self, class: &Bound<'py, PyAny>, id: &Bound<'py, PyString>) -> PyResult<()> {
        let py = class.py();
        self.lock.call_method0(intern!(py, "acquire"))?;
        let told = (|| {
            let held = self
                .by_id
                .call_method1(intern!(py, "setdefault"), (id, class))?;
            if held.is(class) {
                self.by_class.set_item(class, id)?;
            }
            Ok::<(), PyErr>(())
        })();
        self.lock.call_method0(intern!(py, "release"))?;
        // A class that cannot be hashed cannot be in the copy's table; its own dump of it fails all the same.
        match told {
            Err(error) if !error.is_instance_of::<pyo3::exceptions::PyException>(py) => Err(error),
            _ => Ok(()),
        }
    }
}

/// An id as payloads hold it: None, or a str.
pub(crate) fn id_argument<'a, 'py>(
    id: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, PyString>>> {
    if id.is_none() {
        return Ok(None);
    }
    id.cast::<PyString>().map(Some).map_err(|_| {
        PyTypeError::new_err(format!(
            "a class tracker id must be a str or None, not {}",
            compat::type_name(&id.get_type())
        ))
    })
}
