//! xterm.js, which browsers and editors show terminals with: what it shows after a snapshot is what
//! it shows after all that the program wrote.
//!
//! The cases are those of an example of the crate that makes the snapshots: recordings of real
//! programs, and random streams.

use std::path::{Path, PathBuf};

use crate::program::{Program, beside, installed};

/// Another seed makes other streams.
const SEED: &str = "1";
const STREAMS: &str = "1500";

#[tokio::test]
async fn xterm_js_shows_after_a_snapshot_what_it_would_have_shown() {
    let program = Program::new("node").env("PACKAGES", installed("xterm"));
    let script = beside("screens.mjs");
    let cases = cases();
    let words = [script.as_os_str(), cases.as_os_str(), SEED.as_ref(), STREAMS.as_ref()];
    program.args(words).run().await.well();
}

/// The program that prints the cases: `cargo xtask clients` builds it.
fn cases() -> PathBuf {
    let place = Path::new(env!("CARGO_BIN_EXE_warren")).with_file_name("examples");
    let program = place.join("screen_cases");
    assert!(
        program.exists(),
        "{} is not there: run `cargo build -p session --example screen_cases`",
        program.display()
    );
    program
}
