//! Several servers that act as one: the machines without I/O.
//!
//! Each machine is without socket, task, clock and randomness. Its driver
//!
//! 1. calls its `handle` with one input and the current time, or its `handle_timeout` when a deadline
//!    has come;
//! 2. drains its `poll_output` and carries out each output, in order;
//! 3. waits for the next input or for its `poll_timeout`.
//!
//! A driver that was asleep (a stopped process, a machine that slept) calls `handle_timeout` before
//! it handles what arrived meanwhile: a lease that is over is never used.
//!
//! - [`server`]: which server, by the id of its start and by its name
//! - [`members`]: which fellows are alive ([`Members`])
//! - [`message`]: what lender and borrower say to each other ([`Message`])
//! - [`lending`]: which places at this server's providers its fellows may fill ([`Lending`])
//! - [`borrowing`]: which places at its fellows' providers this server may fill ([`Borrowing`])
//! - [`stream`]: an ordered stream of bytes over a transport that loses messages ([`Stream`])
//! - [`room_homes`]: which server orders a room's events ([`RoomHomes`])
//! - [`rules`]: the rules that tests switch off one by one

pub mod borrowing;
pub mod lending;
pub mod members;
pub mod message;
pub mod room_homes;
pub mod rules;
pub mod server;
pub mod stream;

pub use borrowing::Borrowing;
pub use lending::Lending;
pub use members::{Members, Record, State};
pub use message::{BadMessage, Message};
pub use room_homes::{Epoch, Placement, RoomHomes};
pub use rules::Rules;
pub use server::{NotAServerId, ServerId, ServerName};
pub use stream::{BadFrame, Frame, Stream, StreamId};
