//! The harness of the soak programs: what each of them does beside its own load.
//!
//! - [`run`](mod@run): a program from its arguments to its exit code
//! - [`report`]: what was done, what was wrong, and conditions that hold in the end
//! - [`crew`]: tasks that are stopped and awaited together
//! - [`http`]: requests without a deadline
//! - [`script`]: prompts that tell their answers, and how long one may take

pub mod crew;
pub mod http;
pub mod report;
pub mod run;
pub mod script;

pub use crew::Crew;
pub use report::{Report, not_zero, settles};
pub use run::{Outcome, Trial, at_least_one, minutes, run};
pub use script::{Nonce, Patience, chat_stream, chat_whole, cut, without_comments};
