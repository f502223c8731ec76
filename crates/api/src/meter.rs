//! Tokens, counted as they pass.

use protocol::usage::UsageScanner;
use scheduler::{Meter, Usage};

/// Reads usage from a side copy of the answer.
#[derive(Default)]
pub(crate) struct UsageMeter(UsageScanner);

impl Meter for UsageMeter {
    fn feed(&mut self, chunk: &[u8]) {
        self.0.feed(chunk);
    }

    fn usage(&self) -> Usage {
        let usage = self.0.usage();
        let protocol::usage::Usage { prompt_tokens, completion_tokens } = usage;
        Usage { estimated: false, prompt_tokens, completion_tokens }
    }
}
