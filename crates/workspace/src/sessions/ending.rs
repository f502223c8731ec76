//! The end of a session.

use std::sync::Arc;

use protocol::workspace::SessionMode;

use super::{clock::now, session::Session};

pub(super) const WITH_THE_DAEMON: &str = "it ended with the daemon";

impl Session {
    /// Notes that the session has ended, and returns whether that is new. An agent does not end
    /// with the daemon: it goes on when the next daemon starts.
    pub(super) fn end(self: &Arc<Self>, how: String, exit_code: Option<i32>) -> bool {
        let closing = self.commons.is_closing();
        let now = now();
        let is_news = self.change(now, |state| {
            let stays = closing && state.facts.mode == SessionMode::Sdk;
            if stays || state.facts.ended.is_some() || state.is_gone {
                return false;
            }
            self.end_character(state, now);
            let how = if closing { WITH_THE_DAEMON.to_owned() } else { how };
            (state.facts.ended, state.quiet_since) = (Some(how), now);
            state.facts.exit_code = exit_code.filter(|_| !closing);
            state.port.end();
            state.touch();
            true
        });
        if is_news {
            self.news.notify_waiters();
            self.tell(now);
            self.commons.keeper.keep_soon(self);
        }
        is_news
    }
}
