//! The warren binary: every command.
fn main() {}
