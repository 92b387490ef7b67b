//! Whether calling an exception's class with the exception's `args` makes the same exception again.
//!
//! It does where `__init__` hands its parameters to `super().__init__` as they come, and can be called without those that
//! it does not hand on. It does not where it wants others, or puts them into words: called with those words, it would do
//! so twice. Nothing is called to find out: bytecode and parameters are looked at, and attributes that hold what was
//! passed. Where that leaves a doubt, the class counts as one that cannot be called.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use super::{code, exception};

/// Flags of code objects: it takes more arguments by position, and by keyword.
const HAS_REST: usize = 4;

/// The functions that make exceptions of a class, if they are not in C; None for what is no function.
pub(super) struct Constructor<'py> {
    inits: Vec<Option<Bound<'py, PyFunction>>>,
    news: Vec<Option<Bound<'py, PyFunction>>>,
}

/// The functions that make exceptions of a class.
pub(super) fn of<'py>(class: &Bound<'py, PyType>) -> PyResult<Constructor<'py>> {
    let py = class.py();
    Ok(Constructor {
        inits: exception::functions(class, intern!(py, "__init__"))?,
        news: exception::functions(class, intern!(py, "__new__"))?,
    })
}

impl Constructor<'_> {
    /// Whether C code makes them.
    pub(super) fn is_in_c(&self) -> bool {
        self.inits.is_empty() && self.news.is_empty()
    }

    /// Whether there is a `__new__` that is not in C.
    pub(super) fn has_new(&self) -> bool {
        !self.news.is_empty()
    }

    /// Whether a call with `args` makes an exception of the same `args`.
    pub(super) fn can_be_called(
        &self,
        args: &Bound<'_, PyTuple>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        for (functions, method) in [(&self.inits, "__init__"), (&self.news, "__new__")] {
            let mut outermost = None;
            let mut hands_on = true;
            for function in functions {
                let Some(function) = function else {
                    // Some other callable: nothing is known of it.
                    return Ok(false);
                };
                let parameters = Parameters::of(function)?;
                hands_on &= parameters.hands_on(args.len(), method)?;
                outermost.get_or_insert(parameters);
            }
            if let Some(outermost) = outermost
                && (!outermost.accept(args.len())
                    || !hands_on && !outermost.are_kept(args, attributes)?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a function takes, its first parameter aside.
struct Parameters<'py> {
    code: Bound<'py, PyAny>,
    names: Bound<'py, PyTuple>,
    /// By position.
    positional: usize,
    /// Of those, how many must be given.
    required: usize,
    has_rest: bool,
    /// Whether one must be given by keyword.
    wants_keyword: bool,
}

impl<'py> Parameters<'py> {
    fn of(function: &Bound<'py, PyFunction>) -> PyResult<Self> {
        let py = function.py();
        let code = function.getattr(intern!(py, "__code__"))?;
        let int =
            |name: &Bound<'py, PyString>| -> PyResult<usize> { code.getattr(name)?.extract() };
        let length = |name: &Bound<'py, PyString>| -> PyResult<usize> {
            let found = function.getattr(name)?;
            if found.is_none() { Ok(0) } else { found.len() }
        };
        let positional = int(intern!(py, "co_argcount"))?.saturating_sub(1);
        let defaults = length(intern!(py, "__defaults__"))?;
        Ok(Parameters {
            positional,
            required: positional.saturating_sub(defaults),
            has_rest: int(intern!(py, "co_flags"))? & HAS_REST != 0,
            wants_keyword: int(intern!(py, "co_kwonlyargcount"))?
                > length(intern!(py, "__kwdefaults__"))?,
            names: code
                .getattr(intern!(py, "co_varnames"))?
                .cast_into::<PyTuple>()?,
            code,
        })
    }

    /// Whether it can be called with so many arguments.
    fn accept(&self, count: usize) -> bool {
        !self.wants_keyword && count >= self.required && (count <= self.positional || self.has_rest)
    }

    /// Whether the exception has each argument as the attribute of the parameter's name.
    fn are_kept(
        &self,
        args: &Bound<'py, PyTuple>,
        attributes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<bool> {
        let Some(attributes) = attributes.filter(|_| args.len() <= self.positional) else {
            return Ok(args.is_empty());
        };
        for (at, arg) in args.iter().enumerate() {
            let Some(kept) = attributes.get_item(self.names.get_item(at + 1)?)? else {
                return Ok(false);
            };
            let is_same = kept.is(&arg)
                || kept.is_exact_instance_of::<PyString>()
                    && arg.is_exact_instance_of::<PyString>()
                    && kept.eq(&arg)?;
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all calls of `method` of a base, if there are any, hand on the first of the parameters, as many as the
    /// exception has `args`, and nothing else sets `args`.
    fn hands_on(&self, count: usize, method: &str) -> PyResult<bool> {
        let names = self
            .code
            .getattr(intern!(self.code.py(), "co_names"))?
            .cast_into::<PyTuple>()?;
        let is_named = |at: usize, name: &str| {
            names
                .get_item(at)
                .is_ok_and(|found| found.cast::<PyString>().is_ok_and(|found| found == name))
        };
        let mut right = true;
        // Local variables loaded since the method was.
        let mut loaded: Option<Vec<usize>> = None;
        code::instructions(&self.code, |op, argument| {
            let attribute = match op {
                "LOAD_METHOD" => Some(argument),
                "LOAD_ATTR" if cfg!(Py_3_12) => Some(argument >> 1),
                "LOAD_ATTR" => Some(argument),
                "LOAD_SUPER_ATTR" => Some(argument >> 2),
                _ => None,
            };
            if let Some(attribute) = attribute
                && is_named(attribute, method)
            {
                // A call among the arguments of another.
                right &= loaded.is_none();
                loaded = Some(Vec::new());
                return;
            }
            if op == "STORE_ATTR" && is_named(argument, "args") {
                right = false;
                return;
            }
            let Some(locals) = &mut loaded else {
                return;
            };
            match op {
                "CACHE" | "PUSH_NULL" | "PRECALL" | "NOP" | "EXTENDED_ARG" | "BUILD_LIST"
                | "LIST_EXTEND" | "LIST_TO_TUPLE" | "CALL_INTRINSIC_1" | "BUILD_MAP"
                | "DICT_MERGE" => {}
                _ if op.starts_with("LOAD_FAST") && op.matches("LOAD_FAST").count() == 2 => {
                    locals.extend([argument >> 4, argument & 15]);
                }
                _ if op.starts_with("LOAD_FAST") => locals.push(argument),
                "CALL" | "CALL_METHOD" | "CALL_FUNCTION" | "CALL_FUNCTION_EX" => {
                    right &= self.is_handed_on(locals, count);
                    loaded = None;
                }
                _ => {
                    right = false;
                    loaded = None;
                }
            }
        })?;
        Ok(right)
    }

    /// Whether these local variables are the first parameters, in their order.
    fn is_handed_on(&self, locals: &[usize], count: usize) -> bool {
        // Called by the class, the method is given what it is called for.
        let locals = locals.strip_prefix(&[0]).unwrap_or(locals);
        let given = locals
            .iter()
            .take_while(|local| **local <= self.positional)
            .count();
        let (by_position, rest) = locals.split_at(given);
        let in_order = by_position
            .iter()
            .enumerate()
            .all(|(at, &local)| local == at + 1);
        // What is not by position are the rest of the arguments, and those by keyword, which are none in the end.
        in_order
            && if rest.is_empty() {
                given == count
            } else {
                self.has_rest && given == self.positional
            }
    }
}
