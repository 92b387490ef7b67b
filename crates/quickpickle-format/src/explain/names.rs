//! Globals by number, and what the helpers of cloudpickle make.

use std::collections::HashMap;

use super::Named;

/// What a call of a global makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    /// An object like any other.
    Object,
    /// A type of Python's that has no name, such as that of code.
    Type,
    Function,
    Class,
    Cell,
    /// Nothing: it completes an object, and what it returns is dropped.
    State,
}

#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: HashMap<Vec<u8>, u32>,
    pub(super) all: Vec<(Named, Makes)>,
}

impl Names {
    pub(super) fn number(&mut self, module: &[u8], name: &[u8], offset: u64) -> u32 {
        let key = [module, name].join(&0);
        if let Some(&number) = self.by_name.get(&key) {
            self.all[number as usize].0.count += 1;
            return number;
        }
        let number = self.all.len() as u32;
        self.by_name.insert(key, number);
        let helper = module.windows(11).any(|part| part == b"cloudpickle")
            || module == b"quickpickle._native";
        let makes = match name {
            b"_builtin_type" if helper => Makes::Type,
            b"_make_function" | b"_make_skel_func" if helper => Makes::Function,
            b"_make_skeleton_class" | b"_make_skeleton_enum" if helper => Makes::Class,
            b"_make_cell" | b"_make_empty_cell" if helper => Makes::Cell,
            b"_function_setstate" | b"_class_setstate" | b"_cell_set" | b"cell_set" if helper => {
                Makes::State
            }
            _ => Makes::Object,
        };
        let named = Named {
            module: String::from_utf8_lossy(module).into_owned(),
            name: String::from_utf8_lossy(name).into_owned(),
            count: 1,
            calls: 0,
            offset,
        };
        self.all.push((named, makes));
        number
    }

    pub(super) fn shown(&self, number: u32) -> String {
        match self.all.get(number as usize) {
            Some((named, _)) => format!("{}.{}", named.module, named.name),
            None => "?".to_owned(),
        }
    }
}
