//! The notes that `pickle` adds since 3.14 to what makes a dump fail: which item of what, from the inside out.
//!
//! Put together from the frames that are open when the exception passes, so that success pays nothing.

use pyo3::prelude::*;
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::instance::Attributes;
use crate::ffi::object::{Anchor, Obj, Quiet, quiet};
use crate::ffi::types::{Kind, classify};
use crate::python_types::add_note;

use super::engine::Engine;
use super::frame::{DictFrame, Frame, ValuesFrame};
use super::plan::{Plan, Step};

/// A place that the exception came through.
enum Place<T> {
    /// An item of a list or tuple.
    Item(T, usize),
    /// The value of this key in a dict; None for the state of an instance that has no dict of its own.
    Value(Option<T>, T),
    /// A part of an object.
    Part(T, &'static str),
}

/// Notes that `part` of `object` could not be saved.
pub(super) fn serializing(error: &PyErr, object: &Bound<'_, PyAny>, part: &str) {
    if cfg!(Py_3_14) {
        let name = compat::class_name_of(object);
        add_note(
            object.py(),
            error,
            format!("when serializing {name} {part}"),
        );
    }
}

impl Engine {
    /// Says on an exception where below `root` it came from.
    #[cold]
    pub(super) fn add_notes(&mut self, root: &Bound<'_, PyAny>, error: &PyErr) {
        if !cfg!(Py_3_14) || self.frames.is_empty() {
            return;
        }
        let py = root.py();
        // Names and keys are other code's.
        self.memo.settle(py);
        let root = Anchor::of(root);
        let places = quiet(py, |q| self.places(q, root));
        let pin = |anchor: Anchor| anchor.pin(py);
        let places: Vec<_> = places
            .into_iter()
            .map(|place| match place {
                Place::Item(holder, index) => Place::Item(pin(holder), index),
                Place::Value(dict, key) => Place::Value(dict.map(pin), pin(key)),
                Place::Part(object, part) => Place::Part(pin(object), part),
            })
            .collect();
        for place in places {
            match place {
                Place::Item(holder, index) => serializing(error, &holder, &format!("item {index}")),
                Place::Part(object, part) => serializing(error, &object, part),
                Place::Value(dict, key) => {
                    let holder = dict.map_or_else(|| "dict".into(), |d| compat::class_name_of(&d));
                    if let Ok(key) = key.repr() {
                        let key = key.to_string_lossy();
                        add_note(py, error, format!("when serializing {holder} item {key}"));
                    }
                }
            }
        }
    }

    /// The places, innermost first. The frames have been settled.
    fn places(&self, q: Quiet<'_>, root: Anchor) -> Vec<Place<Anchor>> {
        let mut groups = Vec::new();
        // What the frame below is in the middle of.
        let mut inside = Some(root);
        for frame in &self.frames {
            let mut group = Vec::new();
            inside = match frame {
                Frame::List(frame) => {
                    let index = frame.index.wrapping_sub(1);
                    group.push(Place::Item(frame.list, index));
                    match classify(frame.list.obj(q)) {
                        Kind::List(list) => list.get(index),
                        _ => None,
                    }
                }
                Frame::Tuple(frame) => {
                    let index = frame.index.wrapping_sub(1);
                    group.push(Place::Item(frame.tuple, index));
                    match classify(frame.tuple.obj(q)) {
                        Kind::Tuple(tuple) => tuple.get(index),
                        _ => None,
                    }
                }
                Frame::Dict(frame) => dict_places(q, frame, inside, &mut group),
                Frame::Set(frame) => {
                    group.push(Place::Part(frame.set, "element"));
                    element(q, frame.set, frame.pos)
                }
                Frame::FrozenSet(frame) => {
                    group.push(Place::Part(frame.set, "element"));
                    element(q, frame.set, frame.pos)
                }
                Frame::Values(frame) => values_places(q, frame, &mut group),
                Frame::Plan(plan) => plan_places(q, plan, &mut group),
            }
            .map(Obj::anchor);
            groups.push(group);
        }
        groups.into_iter().rev().flatten().collect()
    }
}

fn element<'q>(q: Quiet<'q>, set: Anchor, pos: usize) -> Option<Obj<'q>> {
    match classify(set.obj(q)) {
        Kind::Set(set) | Kind::FrozenSet(set) => set.next(&mut pos.checked_sub(1)?),
        _ => None,
    }
}

/// The places of a dict, which may be the state of `owner`; what is being saved of it.
fn dict_places<'q>(
    q: Quiet<'q>,
    frame: &DictFrame,
    owner: Option<Anchor>,
    group: &mut Vec<Place<Anchor>>,
) -> Option<Obj<'q>> {
    let Kind::Dict(dict) = classify(frame.dict.obj(q)) else {
        return None;
    };
    let (key, value) = dict.items(frame.pos.checked_sub(1)?).next()?;
    if frame.value.is_none() {
        group.push(Place::Value(Some(frame.dict), key.anchor()));
    }
    if frame.build
        && let Some(owner) = owner
    {
        let object = owner.obj(q);
        if let Attributes::Dict(own) = object.attributes(q, object.type_ptr().place())
            && own.obj() == dict.obj()
        {
            group.extend(["state", "object"].map(|part| Place::Part(owner, part)));
        }
    }
    Some(if frame.value.is_none() { value } else { key })
}

fn values_places<'q>(
    q: Quiet<'q>,
    frame: &ValuesFrame,
    group: &mut Vec<Place<Anchor>>,
) -> Option<Obj<'q>> {
    let object = frame.instance.obj(q);
    let pair = match object.attributes(q, object.type_ptr().place()) {
        Attributes::Values(values) => values.get(frame.index.checked_sub(1)?),
        Attributes::Dict(dict) => dict.items(frame.index.checked_sub(1)?).next(),
        Attributes::Empty | Attributes::Foreign => None,
    };
    if let (Some((key, _)), None) = (pair, frame.value) {
        group.push(Place::Value(None, key.anchor()));
    }
    group.extend(["state", "object"].map(|part| Place::Part(frame.instance, part)));
    pair.map(|(key, value)| if frame.value.is_none() { value } else { key })
}

/// The places of an object that is put together by a plan; what is being saved for it.
fn plan_places<'q>(q: Quiet<'q>, plan: &Plan, group: &mut Vec<Place<Anchor>>) -> Option<Obj<'q>> {
    let object = plan.steps.iter().find_map(|step| match step {
        Step::Remember(object) | Step::Instance(object) => Some(Anchor::of_owned(object)),
        _ => None,
    });
    let current = match plan.steps.get(plan.at) {
        Some(step @ (Step::ListItems(_) | Step::DictItems(_))) => Some(step),
        _ => plan.at.checked_sub(1).and_then(|at| plan.steps.get(at)),
    };
    let Some(object) = object else {
        return match current {
            Some(Step::Save(saved) | Step::SaveAsIs(saved)) => Some(Anchor::of_owned(saved).obj(q)),
            _ => None,
        };
    };
    let inside = match current {
        // What is open then says the rest.
        Some(Step::Instance(_)) => return Some(object.obj(q)),
        Some(Step::Save(saved)) => {
            group.extend(role(plan).map(|role| Place::Part(object, role)));
            Some(Anchor::of_owned(saved).obj(q))
        }
        Some(Step::ListItems(items)) if items.saving => {
            let index = items.before + items.in_batch as usize;
            group.push(Place::Item(object, index));
            items
                .current
                .as_ref()
                .map(|item| Anchor::of_owned(item).obj(q))
        }
        Some(Step::DictItems(items)) if items.saving => {
            let pair = items.current.as_ref()?;
            let Kind::Tuple(pair) = classify(Anchor::of_owned(pair).obj(q)) else {
                return None;
            };
            if items.has_key {
                group.push(Place::Value(Some(object), pair.get(0)?.anchor()));
            }
            pair.get(usize::from(items.has_key))
        }
        _ => None,
    };
    // Builtins that the protocol has no opcode for are calls only in the pickle.
    if !matches!(
        classify(object.obj(q)),
        Kind::Set(_) | Kind::FrozenSet(_) | Kind::Bytes(_) | Kind::ByteArray(_)
    ) {
        group.push(Place::Part(object, "object"));
    }
    inside
}

/// What the last step begun saves, by the operation that is to follow.
fn role(plan: &Plan) -> Option<&'static str> {
    let mut between = 0;
    for step in plan.steps.get(plan.at..)? {
        return match (step, between) {
            (Step::Save(_), _) => {
                between += 1;
                continue;
            }
            (Step::Instance(_), _) => Some("class"),
            (Step::Opcode(byte::NEWOBJ), 1) | (Step::Opcode(byte::NEWOBJ_EX), 2) => Some("class"),
            (Step::Opcode(byte::NEWOBJ | byte::NEWOBJ_EX), _) => Some("__new__ arguments"),
            (Step::Opcode(byte::REDUCE), 1) => Some("reconstructor"),
            (Step::Opcode(byte::REDUCE), _) => Some("reconstructor arguments"),
            (Step::Opcode(byte::TUPLE2), 2) => Some("state setter"),
            (Step::Opcode(byte::TUPLE2 | byte::BUILD), 0) => Some("state"),
            _ => None,
        };
    }
    None
}
