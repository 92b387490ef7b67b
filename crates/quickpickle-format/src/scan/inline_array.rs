//! Arrays that joblib writes between two operations of a pickle, and how many bytes to step over there.
//!
//! Behind the BUILD of a `NumpyArrayWrapper` stand the array's bytes, padded if the wrapper says so, or a pickle of their own where
//! the array holds objects; then the outer pickle goes on. A scan that stopped there would miss whatever follows.

/// What the wrapper that is being built says.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    /// Items; `None` where the shape is unknown.
    pub(super) items: Option<u64>,
    /// Whether one byte says how much padding stands before the array.
    pub(super) aligned: bool,
    /// Bytes of an item; `None` for objects and what is unknown.
    item_size: Option<u64>,
    objects: bool,
    /// Whether wrappers are to be expected at all.
    pub(super) watching: bool,
    due: bool,
}

/// What to step over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Skip {
    pub(super) bytes: usize,
    /// A pickle stands there instead, and the outer one goes on behind its STOP.
    pub(super) pickle: bool,
}

impl Arrays {
    /// The type of the items, as `numpy.dtype` was called with: `f8`, `O8`, `V16`, ...
    pub(super) fn dtype(&mut self, text: &str) {
        self.objects = text
            .trim_start_matches(['<', '>', '|', '='])
            .starts_with('O');
        let digits = text.trim_start_matches(|char: char| !char.is_ascii_digit());
        let count: Option<u64> = digits.parse().ok();
        // Unicode items have four bytes for each character.
        let width = if text.contains('U') { 4 } else { 1 };
        self.item_size = match text {
            "bool" => Some(1),
            _ => count.map(|count| count * width),
        };
    }

    /// The wrapper is complete.
    pub(super) fn built(&mut self) {
        self.due = true;
    }

    /// What to step over before the next operation, if anything; `rest` is what follows.
    pub(super) fn take_skip(&mut self, rest: &[u8]) -> Option<Skip> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        if self.objects {
            return Some(Skip {
                bytes: 0,
                pickle: true,
            });
        }
        let bytes = usize::try_from(self.items?.checked_mul(self.item_size?)?).ok()?;
        let padding = match rest.first() {
            Some(&padding) if self.aligned => usize::from(padding) + 1,
            _ => 0,
        };
        let bytes = bytes.checked_add(padding)?;
        (bytes <= rest.len()).then_some(Skip {
            bytes,
            pickle: false,
        })
    }
}
