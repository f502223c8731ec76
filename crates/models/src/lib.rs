//! Models as files: those that this machine offers in place, and those that arrive.
//!
//! Everything here blocks on the disk and knows no socket; callers with a runtime use its threads for
//! blocking work. Whatever comes from a peer (names, sizes, hashes, bytes) is checked here before it
//! touches the disk.
//!
//! - [`name`]: names of models and of their files, checked
//! - [`offer`]: what is there to be offered, read-only: directories, Ollama, LM Studio, Hugging Face
//! - [`gguf`]: what the head of a file of a model says, and how much memory the model takes
//! - [`shelf`]: the models that a program of this machine can serve, by names that people know
//! - [`tree`]: BLAKE3 hash trees, by which each piece of a file is checked on its own
//! - [`cache`]: trees of offered files, kept on disk
//! - [`hasher`]: makes manifests of offered models in the background, one at a time
//! - [`manifest`]: what a model is made of
//! - [`arrival`]: a model on its way, resumable; and the plain form of stock peers
//! - [`plan`]: which piece to ask of which peer (pure)
//! - [`space`]: how much room there is
//! - `disk_name`: names as they are written to a disk
//! - `system`: differences between systems

pub mod arrival;
pub mod cache;
pub mod gguf;
pub mod hasher;
pub mod manifest;
pub mod name;
pub mod offer;
pub mod plan;
pub mod shelf;
pub mod space;
pub mod tree;

mod disk_name;
mod durable;
mod system;

pub use arrival::{Arrival, ArrivalError, StockArrival};
pub use cache::TreeCache;
pub use gguf::{Gguf, GgufError, GgufKind};
pub use hasher::{Hashed, Hasher};
pub use manifest::{Manifest, ManifestError, ManifestFile};
pub use name::{FileName, ModelId, NameError};
pub use offer::{Library, Offered, OfferedFile, Reader, Sources};
pub use plan::{PieceId, Plan};
pub use shelf::{LocalModel, PassedOver, Shelf};
pub use tree::{PIECE, Tree};
