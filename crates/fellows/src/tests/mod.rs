//! Servers that act as one, in simulated time and over a network in memory that loses messages.

mod jobs;
mod streams;
