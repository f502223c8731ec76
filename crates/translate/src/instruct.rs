//! Instructions among the messages of a Chat Completions request.

use crate::chat_request::{Content, Message, Part, Role, join};

/// Adds instructions to a conversation. At its beginning they become one system message. Later ones
/// are added to the user's text at their position, and marked as not the user's own. The chat
/// templates of whole families of models fail on a system message that is not the first. And a
/// first message that grows with the conversation would invalidate the provider's prompt cache.
pub(crate) fn instruct<'a>(messages: &mut Vec<Message<'a>>, instructions: Content<'a>) {
    match (messages.as_mut_slice(), instructions) {
        ([], instructions) => messages.push(Message::new(Role::System, instructions)),
        (
            [Message { role: Role::System, content: Some(Content::Text(first)), .. }],
            Content::Text(more),
        ) => *first = join(std::mem::take(first), "\n\n", &more),
        ([.., Message { role: Role::User, content: Some(said), .. }], instructions) => {
            said.append(instructions.marked());
        }
        (_, instructions) => messages.push(Message::new(Role::User, instructions.marked())),
    }
}

impl<'a> Content<'a> {
    /// Marks instructions within a user's text, in the form that agents use.
    fn marked(self) -> Self {
        match self {
            Self::Text(text) => {
                Self::Text(format!("<system-reminder>\n{text}\n</system-reminder>").into())
            }
            parts @ Self::Parts(_) => parts,
        }
    }

    /// Adds more content. Two strings become one string.
    fn append(&mut self, more: Self) {
        *self = match (std::mem::replace(self, Self::Parts(Vec::new())), more) {
            (Self::Text(said), Self::Text(more)) => Self::Text(join(said, "\n\n", &more)),
            (said, more) => Self::Parts(said.into_parts().chain(more.into_parts()).collect()),
        };
    }

    fn into_parts(self) -> impl Iterator<Item = Part<'a>> {
        let (text, parts) = match self {
            Self::Text(text) => (Some(Part::Text { text }), Vec::new()),
            Self::Parts(parts) => (None, parts),
        };
        text.into_iter().chain(parts)
    }
}
