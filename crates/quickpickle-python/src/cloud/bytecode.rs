//! Which Python version wrote a function's bytecode, and whether the running one can run it.
//!
//! Payloads do not say what version wrote them, and bytecode of another version makes the interpreter crash or compute
//! something else. The bytecode itself tells: opcodes, cache entries, what arguments may be, and the instruction RESUME,
//! whose number differs, fit one version's table and hardly ever another's. Where they fit two, the code means the same
//! in both, but for four opcodes of 3.11 and 3.12; code that has one of these is followed along its jumps, to see whether
//! the stack comes out even.
//!
//! What must stay true: code that the running version has written always passes.

use super::bytecode_tables::{TABLES, Table};
use crate::ffi::function::stack_effect;

/// What of a code object decides.
pub(crate) struct Code<'a> {
    /// The instructions.
    pub(crate) bytes: &'a [u8],
    /// Number of constants.
    pub(crate) consts: usize,
    /// Number of names.
    pub(crate) names: usize,
    /// Number of local variables, cells and free variables.
    pub(crate) variables: usize,
    /// Largest depth of the stack.
    pub(crate) depth: usize,
    /// The flags.
    pub(crate) flags: u32,
    /// The line table.
    pub(crate) lines: &'a [u8],
}

/// Version of the running interpreter.
pub(crate) const RUNNING: (u8, u8) = (
    3,
    if cfg!(Py_3_14) {
        14
    } else if cfg!(Py_3_13) {
        13
    } else if cfg!(Py_3_12) {
        12
    } else if cfg!(Py_3_11) {
        11
    } else {
        10
    },
);

/// What an opcode's argument is; the numbers are those of the tables.
mod kind {
    pub(super) const CONST: u8 = 2;
    pub(super) const NAME: u8 = 3;
    pub(super) const NAME_SHIFTED: u8 = 4;
    pub(super) const NAME_SHIFTED_TWICE: u8 = 5;
    pub(super) const VARIABLE: u8 = 6;
    pub(super) const JUMP_FORWARD: u8 = 7;
    pub(super) const JUMP_BACKWARD: u8 = 8;
    pub(super) const JUMP_TO: u8 = 9;
    pub(super) const MORE: u8 = 10;
    pub(super) const RESUME: u8 = 11;
    pub(super) const CACHE: u8 = 12;
}

/// The opcodes that 3.11 and 3.12 both have, for different things, with nothing else to tell them by.
const AMBIGUOUS: std::ops::RangeInclusive<u8> = 173..=176;
/// Of both 3.11 and 3.12.
const RETURN_VALUE: u8 = 83;
/// Of 3.12.
const RETURN_CONST: u8 = 121;
/// CALL_INTRINSIC_1 and RERAISE as 3.12 ends code that suspends.
const STOP_ITERATION_HANDLER: [u8; 4] = [173, 3, 119, 1];
/// Code of generators, coroutines and asynchronous generators.
const SUSPENDS: u32 = 0x20 | 0x80 | 0x200;

fn table(version: (u8, u8)) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.0 == version)
}

/// Whether the running version can run the code.
pub(crate) fn is_ours(code: &Code<'_>) -> bool {
    table(RUNNING).is_some_and(|ours| fits(ours, code))
        && (RUNNING > (3, 12) || RUNNING < (3, 11) || !is_ambiguous(code) || is_even(code))
}

/// The versions that may have written code which the running one cannot run.
pub(crate) fn writers(code: &Code<'_>, has_exception_table: bool) -> Vec<(u8, u8)> {
    TABLES
        .iter()
        .filter(|table| {
            table.0 != RUNNING && (table.0 >= (3, 11)) == has_exception_table && fits(table, code)
        })
        .map(|table| table.0)
        .collect()
}

/// Whether the code is such as the version writes.
fn fits(table: &Table, code: &Code<'_>) -> bool {
    let &(version, ref opcodes) = table;
    if code.bytes.is_empty() || !code.bytes.len().is_multiple_of(2) {
        return false;
    }
    if version < (3, 11) && (version == (3, 10)) != covers_code(code) {
        return false;
    }
    let units = code.bytes.len() / 2;
    let mut resumes = version < (3, 11);
    let mut argument: u32 = 0;
    let mut at = 0;
    while at < units {
        let entry = opcodes[usize::from(code.bytes[2 * at])];
        argument = argument << 8 | u32::from(code.bytes[2 * at + 1]);
        let caches = usize::from(entry >> 4);
        at += 1;
        if at + caches > units {
            return false;
        }
        if caches > 0 {
            if (0..caches).any(|cache| code.bytes[2 * (at + cache)] != 0) {
                return false;
            }
            at += caches;
        }
        let argument_here = argument as usize;
        if entry & 15 != kind::MORE {
            argument = 0;
        }
        let holds = match entry & 15 {
            0 | kind::CACHE => false,
            kind::CONST => argument_here < code.consts,
            kind::NAME => argument_here < code.names,
            kind::NAME_SHIFTED => argument_here >> 1 < code.names,
            kind::NAME_SHIFTED_TWICE => argument_here >> 2 < code.names,
            kind::VARIABLE => argument_here < code.variables,
            kind::RESUME => {
                resumes = true;
                argument_here < 8
            }
            jump @ (kind::JUMP_FORWARD | kind::JUMP_BACKWARD | kind::JUMP_TO) => {
                target(version, jump, at, argument_here).is_some_and(|target| target < units)
            }
            _ => true,
        };
        if !holds {
            return false;
        }
    }
    resumes && argument == 0
}

/// Where a jump goes, in instructions of two bytes; `at` is what follows it.
fn target(version: (u8, u8), jump: u8, at: usize, argument: usize) -> Option<usize> {
    // Jumps were counted in bytes before 3.10.
    let distance = if version < (3, 10) {
        argument / 2
    } else {
        argument
    };
    match jump {
        kind::JUMP_FORWARD => at.checked_add(distance),
        kind::JUMP_BACKWARD => at.checked_sub(distance),
        _ => Some(distance),
    }
}

/// Whether the line table, read as 3.10's, covers all of the code: those of older versions end with the last line's start.
fn covers_code(code: &Code<'_>) -> bool {
    let covered: usize = code
        .lines
        .iter()
        .step_by(2)
        .map(|&bytes| usize::from(bytes))
        .sum();
    covered == code.bytes.len()
}

/// Whether 3.11 and 3.12 would both take the code for their own and do different things.
fn is_ambiguous(code: &Code<'_>) -> bool {
    let has_one = code
        .bytes
        .chunks_exact(2)
        .any(|unit| AMBIGUOUS.contains(&unit[0]));
    has_one
        && [(3, 11), (3, 12)]
            .into_iter()
            .all(|version| table(version).is_some_and(|table| fits(table, code)))
}

/// Whether the stack comes out even along all ways through the code, as the running version would run it.
fn is_even(code: &Code<'_>) -> bool {
    // The depth of code that suspends is not known where it resumes. 3.12 ends such code with a handler that turns
    // StopIteration into another exception, and 3.11 knows no such thing.
    if code.flags & SUSPENDS != 0 {
        return code.bytes.ends_with(&STOP_ITERATION_HANDLER) == (RUNNING == (3, 12));
    }
    let Some(&(version, ref opcodes)) = table(RUNNING) else {
        return true;
    };
    let units = code.bytes.len() / 2;
    let mut depths: Vec<Option<usize>> = vec![None; units];
    let mut ways = vec![(0, 0)];
    while let Some((mut at, mut depth)) = ways.pop() {
        let mut argument = 0_u32;
        loop {
            match depths.get(at) {
                Some(None) => depths[at] = Some(depth),
                Some(Some(known)) if *known == depth => break,
                _ => return false,
            }
            let opcode = code.bytes[2 * at];
            let entry = opcodes[usize::from(opcode)];
            argument = argument << 8 | u32::from(code.bytes[2 * at + 1]);
            at += 1 + usize::from(entry >> 4);
            let kind = entry & 15;
            if kind == kind::MORE {
                continue;
            }
            let after = |jumps: bool| -> Option<usize> {
                let effect = stack_effect(opcode, argument, jumps)?;
                depth
                    .checked_add_signed(effect)
                    .filter(|&depth| depth <= code.depth)
            };
            let (stays, leaves) = (after(false), after(true));
            match opcode {
                RETURN_VALUE => {
                    if depth != 1 {
                        return false;
                    }
                    break;
                }
                RETURN_CONST if version == (3, 12) => {
                    if depth != 0 {
                        return false;
                    }
                    break;
                }
                _ => {}
            }
            if let kind::JUMP_FORWARD | kind::JUMP_BACKWARD = kind {
                let (Some(to), Some(leaves)) =
                    (target(version, kind, at, argument as usize), leaves)
                else {
                    return false;
                };
                ways.push((to, leaves));
            }
            if ends_way(opcode) {
                break;
            }
            let Some(stays) = stays else {
                return false;
            };
            depth = stays;
            argument = 0;
        }
    }
    true
}

/// Whether what follows is never reached from here: JUMP_FORWARD, JUMP_BACKWARD, JUMP_BACKWARD_NO_INTERRUPT,
/// RAISE_VARARGS and RERAISE of 3.11 and 3.12.
fn ends_way(opcode: u8) -> bool {
    matches!(opcode, 110 | 140 | 134 | 130 | 119)
}
