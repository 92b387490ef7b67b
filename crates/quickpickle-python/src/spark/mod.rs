//! What of PySpark is done natively beyond pickling. What replaces what is the business of `quickpickle.spark`.

mod state;
mod writer;

pub(crate) use state::{spark_state_dumps, spark_state_loads, spark_state_prepare};
pub(crate) use writer::TimelyWriter;
