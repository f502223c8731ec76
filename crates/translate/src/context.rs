//! The context of a translation.

/// The context of a translation, beside the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// 32 hex digits, unique to the job: ids of answers and of their parts are made of it.
    pub id: String,
    /// When the job was accepted, in seconds since 1970.
    pub created: u64,
    /// The model by the name that the client used, which the answer repeats.
    pub model: String,
    /// Whether the client asked for a stream. It gets one even of a provider that answers whole.
    pub streaming: bool,
}
