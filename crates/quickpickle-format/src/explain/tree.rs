//! The tree of parts while it grows: nodes in an arena, merged where role and kind are the same.
//!
//! Bounded in all directions: different keys of one object, depth, and nodes altogether. What does not fit keeps its bytes and loses its
//! parts.

/// Different roles that a node tells apart; other parts are one node.
const ROLES: usize = 200;
/// Levels of the tree.
const DEPTH: u8 = 60;
/// Nodes of the tree.
const NODES: usize = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role<'a> {
    Root,
    Item,
    Key(&'a [u8]),
    Attribute(&'a [u8]),
    /// A value whose key is no text.
    Value,
    Keys,
    Position(u8),
    Arguments,
    Callable,
    State,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Plain(&'static str),
    /// What a call of the global with this number made.
    Made(u32),
    Global(u32),
    /// An object that stands elsewhere.
    Reference,
    Function(&'a [u8]),
    Class(&'a [u8]),
    /// Of a class that is in the pickle.
    Instance(&'a [u8]),
    Code(&'a [u8]),
    Cell,
}

#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) role: Role<'a>,
    pub(super) kind: Kind<'a>,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    pub(super) largest: u64,
    pub(super) largest_offset: u64,
    pub(super) children: Vec<u32>,
    depth: u8,
}

#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    parts: Vec<Part<'a>>,
    free: Vec<u32>,
}

impl<'a> Tree<'a> {
    pub(super) fn part(&self, id: u32) -> &Part<'a> {
        &self.parts[id as usize]
    }

    pub(super) fn part_mut(&mut self, id: u32) -> &mut Part<'a> {
        &mut self.parts[id as usize]
    }

    pub(super) fn make(&mut self, kind: Kind<'a>, bytes: u64, offset: u64) -> u32 {
        let part = Part {
            role: Role::Root,
            kind,
            count: 1,
            bytes,
            offset,
            largest: bytes,
            largest_offset: offset,
            children: Vec::new(),
            depth: 0,
        };
        match self.free.pop() {
            Some(id) => {
                self.parts[id as usize] = part;
                id
            }
            None => {
                self.parts.push(part);
                (self.parts.len() - 1) as u32
            }
        }
    }

    /// Gives the parts of a node back, and the node.
    fn release(&mut self, id: u32) {
        for child in std::mem::take(&mut self.parts[id as usize].children) {
            self.release(child);
        }
        self.free.push(id);
    }

    /// Makes `child` a part of `parent`; bytes of the parent are the caller's business.
    pub(super) fn attach(&mut self, parent: u32, role: Role<'a>, child: u32) {
        let crowded = self.parts.len() - self.free.len() > NODES;
        if crowded || self.part(child).depth >= DEPTH {
            for below in std::mem::take(&mut self.part_mut(child).children) {
                self.release(below);
            }
            self.part_mut(child).depth = 0;
        }
        let kind = self.part(child).kind;
        match self.find(parent, role, kind) {
            Ok(same) => self.merge(same, child),
            Err(role) => {
                self.part_mut(child).role = role;
                let depth = self.part(child).depth + 1;
                let parent = self.part_mut(parent);
                parent.depth = parent.depth.max(depth);
                parent.children.push(child);
            }
        }
    }

    /// As [`Self::attach`], for an object without parts.
    pub(super) fn attach_leaf(
        &mut self,
        parent: u32,
        role: Role<'a>,
        kind: Kind<'a>,
        bytes: u64,
        offset: u64,
    ) {
        match self.find(parent, role, kind) {
            Ok(same) => {
                let part = self.part_mut(same);
                part.count += 1;
                part.bytes += bytes;
                if bytes > part.largest {
                    (part.largest, part.largest_offset) = (bytes, offset);
                }
            }
            Err(_) => {
                let child = self.make(kind, bytes, offset);
                self.attach(parent, role, child);
            }
        }
    }

    /// The part that this role and kind go to, or the role that a new one is to have.
    fn find(&mut self, parent: u32, role: Role<'a>, kind: Kind<'a>) -> Result<u32, Role<'a>> {
        let same = |role: Role<'a>| {
            self.part(parent).children.iter().position(|&child| {
                let part = self.part(child);
                part.kind == kind && part.role == role
            })
        };
        let (place, role) = match same(role) {
            Some(place) => (Some(place), role),
            None if self.part(parent).children.len() < ROLES => (None, role),
            None => (same(Role::Other), Role::Other),
        };
        let Some(place) = place else {
            let full = self.part(parent).children.len() >= 2 * ROLES;
            // So many kinds that even the rest has too many: they are one.
            return if full {
                Ok(self.part(parent).children[ROLES])
            } else {
                Err(role)
            };
        };
        Ok(self.part(parent).children[place])
    }

    fn merge(&mut self, into: u32, from: u32) {
        let (count, bytes, largest, largest_offset, depth) = {
            let part = self.part(from);
            (
                part.count,
                part.bytes,
                part.largest,
                part.largest_offset,
                part.depth,
            )
        };
        let part = self.part_mut(into);
        part.count += count;
        part.bytes += bytes;
        part.depth = part.depth.max(depth);
        if largest > part.largest {
            (part.largest, part.largest_offset) = (largest, largest_offset);
        }
        for child in std::mem::take(&mut self.part_mut(from).children) {
            let (role, kind) = (self.part(child).role, self.part(child).kind);
            match self.find(into, role, kind) {
                Ok(same) => self.merge(same, child),
                Err(role) => {
                    self.part_mut(child).role = role;
                    self.part_mut(into).children.push(child);
                }
            }
        }
        self.free.push(from);
    }
}
