//! The hand-over of a session from its owner to another member, without two owners and without a
//! lost turn. Two plain machines, one at each end, and what they say to each other.
//!
//! - [`Departure`]: at the owner; [`Arrival`]: at the member that it goes to
//!
//! # The steps
//!
//! 1. The owner *freezes* the session: the running turn ends, no other begins.
//! 2. It sends everything that goes along. The other end stores it aside, *staged*, and says so.
//! 3. The owner writes, in one transaction, that the session is the other member's, with one move
//!    more. From here on it does not run the session.
//! 4. The other end gets that version of the session, from any member, and stores that it has
//!    *taken* the session. It runs the session from here on, and the owner drops what it kept.
//!
//! # The two rules
//!
//! A member runs a session only while its disk says that it may. The owner's disk says so until
//! step 3, and again only after the other end has *stored* that it refuses. The other end's disk
//! says so only after step 3. So two members never run it at once.
//!
//! An end that does not know the outcome of a move asks the other end. An owner that knows of no
//! such move answers *aborted*. That is final: moves have random numbers, so the owner will never
//! make one with this number.

mod arrival;
mod departure;

#[cfg(test)]
mod tests;

pub use arrival::{Arrival, ArrivalFact, ArrivalInput, ArrivalOutput};
pub use departure::{Departure, DepartureFact, DepartureInput, DepartureOutput, Word};
