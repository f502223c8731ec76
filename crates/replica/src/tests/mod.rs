//! Tests of the whole machine, over links that lose nothing. The simulator has the others.

mod bounds;
mod fixture;
mod laws;
mod pulls;
mod retirement;
mod sizes;
mod writes;
