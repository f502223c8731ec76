//! Messages between peers (spec, "Cluster Messages"): over TCP, or within a relay session.
//!
//! - [`message`]: every message, with its fields
//! - [`envelope`]: the two forms of a message
//! - [`warren`]: messages between two Warrens beyond the spec

pub mod envelope;
pub mod message;
pub mod warren;

pub use envelope::{BadMessage, Decoded, Dialect, FailedRequest, decode, encode};
pub use message::{
    ClusterMessage, ErrorCode, Heartbeat, Hello, InferenceChunk, InferenceComplete, InferenceError,
    InferenceRequest, LoadModel, ModelLoadError, ModelLoaded, ModelQuery, ModelQueryResponse,
    ModelTransferChunk, ModelTransferComplete, ModelTransferRequest,
};
pub use warren::{
    InferenceCancel, ListedModel, ManifestFile, ModelList, ModelListRequest, ModelManifest,
    ModelManifestRequest, ModelPieceRequest, ModelTransferError, ModelTreeRequest, Piece,
    PieceKind, WarrenHello,
};
