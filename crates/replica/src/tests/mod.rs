//! Tests of the whole machine, over links that lose nothing. The simulator has the others.

mod fixture;
mod pulls;
mod writes;
