//! The outputs of a replica.

use std::sync::Arc;

use crate::{
    entry::{Entry, Key},
    fact::Fact,
    input::LinkId,
    message::Message,
    notice::Notice,
};

/// One action, to be carried out in order.
#[derive(Debug, Clone)]
pub enum Output {
    /// Store these facts in one transaction, after those of all lower tokens, and answer with
    /// [`Input::Kept`](crate::Input::Kept). Storing only a part of them would be wrong: a context
    /// without its entries would count objects as deleted.
    Keep {
        /// The number of this transaction, counted from 1.
        token: u64,
        /// The facts to store; each replaces the fact of the same name.
        facts: Vec<Fact>,
    },
    /// Send this to a linked member. It comes only after everything that it speaks of is stored.
    Send {
        /// The link.
        link: LinkId,
        /// The message.
        message: Message,
    },
    /// The view under this key is different now.
    Changed {
        /// The object.
        key: Key,
        /// Its shown version; `None` if it is gone.
        entry: Option<Arc<Entry>>,
    },
    /// Tell the operator.
    Notice(Notice),
}
