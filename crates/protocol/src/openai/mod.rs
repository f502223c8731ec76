//! The OpenAI-style APIs: what a server must know of a body it forwards, and what it answers
//! itself.

mod peek;
mod prompt;
mod reply;

pub use peek::{BadBody, MAX_MODEL_NAME, Peek, peek, replace_model};
pub use prompt::{PROMPT_HEADS, prompt_heads};
pub use reply::{error_body, error_event, model_list, model_object, response_error_event};
