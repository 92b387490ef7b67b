//! What a pickle would import and call, found without running it, and what to think of that.
//!
//! [`scan`] follows a pickle with a machine of [`abstract values`](machine): it knows strings, globals and what was called, through
//! memo, tuples and marks, so that a name put together in roundabout ways is still seen. [`policy`] judges names. What cannot be told
//! is never taken for harmless: it is [`Verdict::Unknown`], or [`Verdict::Dangerous`] where pickles only do so to hide.
//!
//! Where unpicklers differ or would stop, the scan goes on: it reports what any of them might do. It is a superset of what a load
//! does up to the first byte that is no operation, and looks into pickles inside of bytes and behind STOP as well.

mod inline_array;
pub mod machine;
pub mod policy;

use crate::error::Error;

/// What to think of a pickle, harmless first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Plain data, and calls that only make data.
    Ok,
    /// It names something that nobody has judged yet.
    Unknown,
    /// It names what runs commands, reads or changes files or the process, or hides what it does.
    Dangerous,
}

impl Verdict {
    /// In lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Dangerous => "dangerous",
        }
    }
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A global that runs commands, code or other pickles, or reaches outside of the data.
    DangerousGlobal,
    /// A global that no list has.
    UnknownGlobal,
    /// A global whose name the pickle computes while it loads.
    ComputedGlobal,
    /// An attribute looked up on something while loading.
    AttributeLookup,
    /// An extension code, which means whatever a registry says at the time of loading.
    ExtensionCode,
    /// A call of what an earlier call returned, or of what cannot be told.
    IndirectCall,
    /// A change of a global itself rather than of an object that the pickle made.
    ChangedGlobal,
    /// Python code that travels by value.
    CodeByValue,
    /// A pickle inside of bytes or text.
    NestedPickle,
    /// Bytes at which no operation can be read.
    Malformed,
}

impl Rule {
    /// Every rule there is.
    pub const ALL: &'static [Self] = &[
        Self::DangerousGlobal,
        Self::UnknownGlobal,
        Self::ComputedGlobal,
        Self::AttributeLookup,
        Self::ExtensionCode,
        Self::IndirectCall,
        Self::ChangedGlobal,
        Self::CodeByValue,
        Self::NestedPickle,
        Self::Malformed,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DangerousGlobal => "dangerous-global",
            Self::UnknownGlobal => "unknown-global",
            Self::ComputedGlobal => "computed-global",
            Self::AttributeLookup => "attribute-lookup",
            Self::ExtensionCode => "extension-code",
            Self::IndirectCall => "indirect-call",
            Self::ChangedGlobal => "changed-global",
            Self::CodeByValue => "code-by-value",
            Self::NestedPickle => "nested-pickle",
            Self::Malformed => "malformed",
        }
    }

    /// One sentence on what it means.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::DangerousGlobal => {
                "The pickle names what runs commands, code or other pickles, or reaches outside of the data."
            }
            Self::UnknownGlobal => "The pickle names something that no list has as harmless.",
            Self::ComputedGlobal => {
                "The name of what is imported is computed while the pickle loads."
            }
            Self::AttributeLookup => "Loading looks up an attribute by name.",
            Self::ExtensionCode => {
                "An extension code stands for whatever the registry of the loading process has under it."
            }
            Self::IndirectCall => "Loading calls what an earlier call returned.",
            Self::ChangedGlobal => "Loading changes a module, class or function itself.",
            Self::CodeByValue => {
                "The pickle brings Python code, which runs when something calls it."
            }
            Self::NestedPickle => "There is a pickle inside of bytes or text.",
            Self::Malformed => "The bytes are not a complete pickle.",
        }
    }
}

/// One thing that was found; the same thing found again only counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub verdict: Verdict,
    /// Of which kind.
    pub rule: Rule,
    /// The byte at which the operation is that first does it.
    pub offset: u64,
    /// What was found, for people.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// A global that a pickle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalUse {
    /// As the pickle has it; dotted names and attribute lookups included.
    pub module: String,
    /// As the pickle has it.
    pub name: String,
    /// What its name says.
    pub verdict: Verdict,
    /// Where it is first named.
    pub offset: u64,
    /// How often it is named.
    pub count: u64,
    /// How often it is called.
    pub calls: u64,
}

/// Everything about the pickles at the start of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The worst of all findings.
    pub verdict: Verdict,
    /// What was found, worst first, then in the order of the bytes.
    pub findings: Vec<Finding>,
    /// Globals, in the order of the bytes.
    pub globals: Vec<GlobalUse>,
    /// Pickles that end in STOP.
    pub pickles: u64,
    /// Operations that were read.
    pub operations: u64,
    /// Bytes up to the end of the last complete pickle.
    pub end: u64,
    /// Why reading stopped before the end of the input; the first pickle only.
    pub error: Option<Error>,
}

/// Scans the pickles at the start of `data`: the first, and those that follow it without a gap.
///
/// ```
/// use quickpickle_format::scan::{Verdict, scan};
///
/// assert_eq!(scan(b"\x80\x04]\x94.").verdict, Verdict::Ok);
/// let report = scan(b"cposix\nsystem\n(S'true'\ntR.");
/// assert_eq!(report.verdict, Verdict::Dangerous);
/// assert_eq!(report.globals[0].name, "system");
/// ```
#[must_use]
pub fn scan(data: &[u8]) -> Report {
    machine::Scanner::new(data, 0).run()
}
