//! Small things every crate shares.
//!
//! Pure: no socket, no clock, no randomness of its own. Random numbers and instants come in as
//! arguments.
//!
//! - [`id`]: jobs, providers, scopes, models, keys, rooms and participants as types of their own
//! - [`id_map`]: maps by ids that are random
//! - [`node_id`]: who a node of the mesh is
//! - [`client_address`]: where a client is, for everything that is counted by address
//! - [`endpoint`]: the shapes of requests
//! - [`continuation`]: answers that another provider goes on with: how a model server does it, and whether it is wanted
//! - [`fingerprint`]: which certificate is a server's
//! - [`address`]: takes internal addresses out of text for clients
//! - [`cancel`]: the reasons for which a job is cancelled
//! - [`thermal`]: how hot a machine is
//! - [`backoff`]: the next delay of a retry, as a value
//! - [`pace`]: a minimum rate, as a value
//! - [`interface`]: network interfaces, told apart by their names
//! - [`live`]: a value that can be replaced while others use it
//! - [`model_facts`]: what is known of a model beside its name
//! - [`key`]: what a key may do and how much
//! - [`money`]: amounts of money as whole numbers
//! - [`trace`]: where a request is in a distributed trace
//! - [`usage`]: the tokens of a job, by what usage is summed up, and the counts
//! - [`system`]: differences between systems in files and names
//! - [`time`]: spans and points of time as numbers
//! - [`error`]: errors as text
//! - [`words`]: numbers as words for people
//! - [`plain`]: makes text from others safe to show on a terminal
//! - [`secret`]: text that never shows itself, and URLs without their tokens

pub mod address;
pub mod backoff;
pub mod cancel;
pub mod client_address;
pub mod continuation;
pub mod endpoint;
pub mod error;
pub mod fingerprint;
pub mod id;
pub mod id_map;
pub mod interface;
pub mod key;
pub mod live;
pub mod model_facts;
pub mod money;
pub mod node_id;
pub mod pace;
pub mod plain;
pub mod secret;
pub mod system;
pub mod thermal;
pub mod time;
pub mod trace;
pub mod usage;
pub mod words;

pub use backoff::Backoff;
pub use cancel::CancelReason;
pub use client_address::ClientAddress;
pub use continuation::{Continuation, NotResumeAnswers, ResumeAnswers};
pub use endpoint::{Endpoint, Endpoints};
pub use fingerprint::{Fingerprint, NotAFingerprint};
pub use id::{JobId, KeyId, ModelName, PageSessionId, ParticipantId, ProviderId, RoomId, Scope};
pub use id_map::IdMap;
pub use key::{Budget, KeyLimits, KeyScope, Period};
pub use live::Live;
pub use model_facts::{Capabilities, Capability, FactsByModel, LoadState, ModelFacts};
pub use money::{Currency, Money, MoneyBudget, NotMoney};
pub use node_id::{NodeId, NotANodeId};
pub use pace::Pace;
pub use secret::{NoSecret, Secret, redact_url};
pub use thermal::Thermal;
pub use time::{millis, since_1970, unix_ms};
pub use usage::{JobUsage, UsageBy, UsageCounts};
