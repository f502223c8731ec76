//! The OpenAI-style APIs: the parts of a forwarded body that a server reads or changes, and the
//! answers that it gives itself.

mod ask_usage;
pub mod chunk;
mod defaults;
mod gather;
mod peek;
mod reply;
mod response_id;
mod sequence;
mod splice;
mod streamed;
mod usage_filter;

pub(crate) use defaults::added;
pub use peek::span;
pub use splice::object_end;

pub use ask_usage::{AskUsage, ask_usage};
pub use defaults::{Defaults, Reserved};
pub use gather::Gather;
pub use peek::{BadBody, MAX_MODEL_NAME, Peek, peek};
pub use reply::{error_body, error_event, model_list, response_error_event};
pub use response_id::ResponseIdReader;
pub use sequence::SequenceReader;
pub use splice::{Edit, model_edit, replace_model, splice};
pub use streamed::{Streamed, streamed};
pub use usage_filter::{MAX_HELD, UsageFilter};
