//! Model engines with real processes: a supervisor, and a model server whose faults are in its models' files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first surprise, here too"
)]

mod ends;
mod faults;
mod loads;
mod support;
