//! Messages between peers (spec, "Cluster Messages"): over TCP, or within a relay session.
//!
//! - [`message`]: every message, and what is in it
//! - [`envelope`]: the two forms that they are written in
//! - [`warren`]: what two Warrens tell each other beyond the spec

pub mod envelope;
pub mod message;
pub mod warren;

pub use envelope::{BadMessage, Decoded, Dialect, FailedRequest, decode, encode};
pub use message::{
    ClusterMessage, ErrorCode, Heartbeat, Hello, InferenceChunk, InferenceComplete, InferenceError,
    InferenceRequest, LoadModel, ModelLoadError, ModelLoaded, ModelQuery, ModelQueryResponse,
    ModelTransferChunk, ModelTransferComplete, ModelTransferRequest, Thermal,
};
pub use warren::{
    InferenceCancel, ListedModel, ManifestFile, ModelList, ModelListRequest, ModelManifest,
    ModelManifestRequest, ModelPieceRequest, ModelTransferError, ModelTreeRequest, Piece,
    PieceKind, WarrenHello,
};
