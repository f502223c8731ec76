//! Tests of continuations.
//!
//! - `streams`: answers as providers stream them
//! - `cuts`: an answer that is cut anywhere is the undisturbed one in the end
//! - `requests`: the bodies for providers that go on
//! - `seams`: what real providers send at a seam
//! - `bounds`: everything has its bound, and garbage does no harm

mod bounds;
mod cuts;
mod requests;
mod seams;
mod streams;
