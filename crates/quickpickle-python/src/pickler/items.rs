//! The walk over iterators: list and dict items of a reduce value, in batches.
//!
//! Items are fetched one ahead, as CPython does, because a lone item is written without MARK.

use quickpickle_format::opcode::byte;

use crate::ffi::object::{Anchor, Obj, Quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::frame::BATCH;
use super::plan::{Items, Step};

/// What to do next with an iterator.
pub(super) enum ItemStep<'q> {
    /// Save this, then ask again.
    Save(Obj<'q>),
    /// Fetch an item, then ask again.
    Fetch,
    /// Nothing is left.
    End,
}

impl Engine {
    /// The next step with the iterator of a plan's step.
    pub(super) fn items<'q>(&mut self, q: Quiet<'q>, step: &mut Step) -> ItemStep<'q> {
        match step {
            Step::ListItems(items) => self.list_items(q, items),
            Step::DictItems(items) => self.dict_items(q, items),
            _ => ItemStep::End,
        }
    }

    fn list_items<'q>(&mut self, q: Quiet<'q>, items: &mut Items) -> ItemStep<'q> {
        if items.saving {
            items.saving = false;
            return self.end_item(q, items, byte::APPEND, byte::APPENDS);
        }
        self.begin_item(q, items, byte::APPENDS)
    }

    fn dict_items<'q>(&mut self, q: Quiet<'q>, items: &mut Items) -> ItemStep<'q> {
        if items.saving {
            if !items.has_key {
                items.has_key = true;
                if let Some(value) = items
                    .current
                    .as_ref()
                    .and_then(|pair| half(q, Anchor::of_owned(pair).obj(q), 1))
                {
                    return ItemStep::Save(value);
                }
            }
            (items.saving, items.has_key) = (false, false);
            return match self.end_item(q, items, byte::SETITEM, byte::SETITEMS) {
                ItemStep::Save(pair) => half(q, pair, 0).map_or(ItemStep::End, ItemStep::Save),
                step => step,
            };
        }
        match self.begin_item(q, items, byte::SETITEMS) {
            ItemStep::Save(pair) => half(q, pair, 0).map_or(ItemStep::End, ItemStep::Save),
            step => step,
        }
    }

    /// What was fetched is there: begins it, or ends the iteration.
    fn begin_item<'q>(&mut self, q: Quiet<'q>, items: &mut Items, ends: u8) -> ItemStep<'q> {
        if !items.fetched {
            items.fetched = true;
            return ItemStep::Fetch;
        }
        items.fetched = false;
        let Some(current) = items.current.as_ref().filter(|_| !items.ended) else {
            if items.in_batch > 0 {
                self.out.opcode(ends);
            }
            return ItemStep::End;
        };
        if items.in_batch == 0 && !items.single {
            self.out.opcode(byte::MARK);
        }
        items.saving = true;
        ItemStep::Save(Anchor::of_owned(current).obj(q))
    }

    /// An item has been saved.
    fn end_item<'q>(&mut self, q: Quiet<'q>, items: &mut Items, one: u8, many: u8) -> ItemStep<'q> {
        if items.single {
            self.out.opcode(one);
            items.before += 1;
            if self.out.protocol() > 0 {
                return ItemStep::End;
            }
        } else {
            items.in_batch += 1;
            if items.in_batch == BATCH {
                self.out.opcode(many);
                items.before += items.in_batch as usize;
                items.in_batch = 0;
            } else if let Some(ahead) = items.ahead.take() {
                self.spent_objects.extend(items.current.replace(ahead));
                items.saving = true;
                if let Some(current) = &items.current {
                    return ItemStep::Save(Anchor::of_owned(current).obj(q));
                }
            }
        }
        items.fetched = true;
        ItemStep::Fetch
    }
}

/// Key or value of a pair, whose type and length have been checked when it was fetched.
fn half<'q>(_q: Quiet<'q>, pair: Obj<'q>, index: usize) -> Option<Obj<'q>> {
    match classify(pair) {
        Kind::Tuple(pair) => pair.get(index),
        _ => None,
    }
}
