//! Questions to the user: a password, a filter, a confirmation.

use client::admin::KeyJson;

use super::{ask, editor::Editor, event::Target, list::List};

/// An open question to the user.
#[derive(Debug)]
pub enum Dialog {
    /// The text that a request must contain to be shown. It is typed into the log's own filter.
    Filter,
    /// The code of a room to open.
    Code(Editor),
    /// The password of the open room.
    Password(Editor),
    /// The target of a question.
    Target(Pick),
    /// The name of a key to make.
    KeyName(Editor),
    /// A key that was made, with its text, which is shown only now.
    NewKey {
        /// The key.
        key: Box<KeyJson>,
        /// The server that made it, if another one is shown by now.
        elsewhere: Option<String>,
    },
    /// Whether a key is to be revoked.
    Revoke(Box<KeyJson>),
}

/// The most bytes of a code or a password.
const MAX_LINE: usize = 256;

/// The choice of a target among those whose label contains a text.
#[derive(Debug)]
pub struct Pick {
    /// The text.
    pub filter: Editor,
    /// The place in the shown targets.
    pub list: List,
}

impl Dialog {
    /// Asks for a code.
    pub const fn code() -> Self {
        Self::Code(Editor::new(MAX_LINE))
    }

    /// Asks for a password.
    pub const fn password() -> Self {
        Self::Password(Editor::new(MAX_LINE))
    }

    /// Asks for the name of a key.
    pub const fn key_name() -> Self {
        Self::KeyName(Editor::new(MAX_LINE))
    }

    /// Asks for a target.
    pub fn target() -> Self {
        Self::Target(Pick { filter: Editor::new(MAX_LINE), list: List::default() })
    }
}

impl Pick {
    /// The targets that are shown.
    pub fn shown(&self, targets: Vec<Target>) -> Vec<Target> {
        let wanted = self.filter.text().to_lowercase();
        let has = |target: &Target| ask::label(target).to_lowercase().contains(&wanted);
        targets.into_iter().filter(has).collect()
    }
}
