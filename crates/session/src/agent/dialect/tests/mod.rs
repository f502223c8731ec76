//! The command lines of the programs, and details of their output.

mod launches;
mod refusals;
mod saying;
