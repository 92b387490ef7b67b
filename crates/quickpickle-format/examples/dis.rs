//! Lists pickles: `cargo run --example dis -- [--annotate] FILE...`
//!
//! Prints the first pickle of each file in the layout of `python -m pickletools`. A fault is the last line of its file, and
//! makes the exit status 1.

use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::{env, fs, io};

use quickpickle_format::Listing;

fn main() -> io::Result<ExitCode> {
    let (options, files): (Vec<_>, Vec<_>) = env::args()
        .skip(1)
        .partition(|argument| argument == "--annotate");
    let mut out = BufWriter::new(io::stdout().lock());
    let mut status = ExitCode::SUCCESS;
    for file in &files {
        let data = fs::read(file)?;
        let mut listing = Listing::new(&data);
        if !options.is_empty() {
            listing = listing.annotate(30);
        }
        if files.len() > 1 {
            writeln!(out, "==> {file} <==")?;
        }
        for line in listing {
            match line {
                Ok(line) => writeln!(out, "{line}")?,
                Err(error) => {
                    writeln!(out, "error: {error}")?;
                    status = ExitCode::FAILURE;
                }
            }
        }
    }
    out.flush()?;
    Ok(status)
}
