//! A place for what one user at a time may have: it is taken out while in use, so that other code that runs meanwhile
//! finds the place empty, and comes back by itself, whichever way its use ends.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// The place. It is locked only to take and to put back, never while anything runs.
pub(crate) struct Slot<T> {
    content: Mutex<Option<Box<T>>>,
    fresh: fn() -> Box<T>,
}

impl<T> Slot<T> {
    /// A place that holds what `fresh` makes; it is asked again after a panic.
    pub(crate) fn new(fresh: fn() -> Box<T>) -> Self {
        Slot {
            content: Mutex::new(Some(fresh())),
            fresh,
        }
    }

    fn replace(&self, content: Option<Box<T>>) -> Option<Box<T>> {
        let mut place = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, content)
    }

    /// Takes it; None while it is in use.
    pub(crate) fn take(&self) -> Option<Taken<'_, T>> {
        let content = self.replace(None)?;
        Some(Taken {
            slot: self,
            content: Some(content),
        })
    }

    /// Looks at it without taking it, for the cyclic collector, which may come at any time; None while it is in use.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let place = self.content.try_lock().ok()?;
        place.as_deref().map(look)
    }

    /// Takes it for good, if it is not in use.
    pub(crate) fn empty(&self) -> Option<Box<T>> {
        self.content.try_lock().ok()?.take()
    }
}

/// What has been taken; goes back when dropped.
pub(crate) struct Taken<'a, T> {
    slot: &'a Slot<T>,
    /// None only while it is being dropped.
    content: Option<Box<T>>,
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.content {
            Some(content) => content,
            None => unreachable!("taken content is there until dropped"),
        }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.content {
            Some(content) => content,
            None => unreachable!("taken content is there until dropped"),
        }
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut content = self.content.take();
        if std::thread::panicking() {
            // Whatever state it was left in, nobody looks at it again.
            std::mem::forget(content.replace((self.slot.fresh)()));
        }
        drop(self.slot.replace(content));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::Slot;

    #[test]
    fn a_panic_leaves_a_fresh_one() {
        let slot = Slot::new(|| Box::new(Vec::<u8>::new()));
        slot.take().unwrap().push(1);
        assert_eq!(slot.take().unwrap().len(), 1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut taken = slot.take().unwrap();
            assert!(slot.take().is_none(), "in use");
            assert!(slot.look(|_| ()).is_none() && slot.empty().is_none());
            taken.push(2);
            panic!("in the middle of it");
        }));
        assert!(panicked.is_err());
        assert_eq!(slot.take().unwrap().len(), 0);
    }
}
