//! Messages between two Warrens beyond the spec, over sealed links only.
//!
//! The node that wants a model fetches it: it requests the [`ModelManifest`], the hash tree of each
//! file, and then pieces, from all peers that have the same files. Trees and pieces come as binary
//! payloads ([`Piece`]), cut so that an answer never waits long behind one.

use std::net::SocketAddr;

use base::NodeId;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::mesh::{lenient, wire_id::WireId};

/// A Warren's own fields of hello and helloAck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarrenHello {
    /// Its node id, to which the link is bound.
    #[serde(rename = "nodeID")]
    pub node_id: NodeId,
    /// The version of its program.
    #[serde(default, deserialize_with = "lenient::value")]
    pub version: String,
    /// Whether it requires a proof of the passcode.
    #[serde(default, deserialize_with = "lenient::value")]
    pub psk: bool,
    /// The address of its LAN listener; sent over sealed links only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default, deserialize_with = "lenient::addresses")]
    pub addresses: Vec<SocketAddr>,
    /// How many requests it takes at once.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub max_concurrent_requests: Option<u32>,
    /// A random number, new at each start of the program: a node that receives its own has linked
    /// to itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::any")]
    pub instance: Option<u64>,
    /// The number of links that it has dialled since its start, so that both ends agree which of two
    /// links is the newer one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::any")]
    pub dial: Option<u64>,
}

/// Stop answering a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceCancel {
    /// Which request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
}

/// A request for the manifest of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelManifestRequest {
    /// Names the transfer; a UUID.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
}

/// The manifest of a model: its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelManifest {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Its files.
    pub files: Vec<ManifestFile>,
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The name from its sender: not to be trusted.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// Its BLAKE3 hash, 64 hex digits.
    pub root: String,
}

/// A request for the hash tree of one file, which comes as a payload of kind [`PieceKind::Tree`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTreeRequest {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// The file, by its place in the manifest.
    pub file: u32,
}

/// A request for pieces of one file, each of which comes as payloads of kind [`PieceKind::Data`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPieceRequest {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// The file, by its place in the manifest.
    pub file: u32,
    /// The first piece: each is 1 MiB long, but for the last of a file.
    pub first: u32,
    /// How many pieces.
    pub count: u32,
}

/// A part of a model is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTransferError {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// Why, for people.
    #[serde(rename = "errorMessage", default, deserialize_with = "lenient::value")]
    pub error_message: String,
}

/// Asks which models the other node passes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelListRequest {
    /// Names the question; a UUID.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
}

/// The models that its sender passes on to the node that asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    /// The query.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// In the order of their names.
    pub models: Vec<ListedModel>,
}

/// A model that is passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedModel {
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// The size of its files, in bytes.
    #[serde(rename = "totalSizeBytes", default)]
    pub total_size_bytes: u64,
}

/// A slice of a file in a binary payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Bytes of the file.
    Data,
    /// The chaining values of its hash tree, 32 bytes each.
    Tree,
}

/// A binary payload: a slice of a piece of a file, or of its hash tree.
///
/// On the wire: one byte 0x01 for data or 0x02 for a tree, the transfer's UUID (16 bytes), then as
/// 32-bit numbers, most significant byte first, the file, the piece (0 for a tree), the offset of the slice
/// in the piece, and the length of the whole piece; then the slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its kind of bytes.
    pub kind: PieceKind,
    /// The transfer.
    pub transfer: [u8; 16],
    /// The file, by its place in the manifest.
    pub file: u32,
    /// The piece of the file.
    pub piece: u32,
    /// Where in the piece the slice begins, in bytes.
    pub offset: u32,
    /// How long the whole piece is, in bytes.
    pub length: u32,
    /// The slice.
    pub slice: Bytes,
}

impl Piece {
    /// How many bytes stand before the slice.
    pub const HEAD: usize = 33;

    /// The header before the slice.
    pub fn head(&self) -> [u8; Self::HEAD] {
        let mut head = [0; Self::HEAD];
        head[0] = match self.kind {
            PieceKind::Data => 1,
            PieceKind::Tree => 2,
        };
        head[1..17].copy_from_slice(&self.transfer);
        let numbers = [self.file, self.piece, self.offset, self.length];
        for (place, number) in head[17..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        head
    }

    /// Reads a payload; `None` when it is invalid, or its slice lies outside its piece.
    #[expect(clippy::needless_pass_by_value, reason = "the slice keeps the payload")]
    pub fn decode(payload: Bytes) -> Option<Self> {
        let head: &[u8; Self::HEAD] = payload.first_chunk()?;
        let kind = match head[0] {
            1 => PieceKind::Data,
            2 => PieceKind::Tree,
            _ => return None,
        };
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let mut transfer = [0; 16];
        transfer.copy_from_slice(&head[1..17]);
        let (file, piece, offset, length) = (number(17), number(21), number(25), number(29));
        let slice = payload.slice(Self::HEAD..);
        let end = u64::from(offset) + slice.len() as u64;
        (end <= u64::from(length)).then_some(Self {
            kind,
            transfer,
            file,
            piece,
            offset,
            length,
            slice,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece() -> Piece {
        let slice = Bytes::from_static(b"slice");
        Piece {
            kind: PieceKind::Tree,
            transfer: [7; 16],
            file: 1,
            piece: 2,
            offset: 3,
            length: 8,
            slice,
        }
    }

    fn bytes(piece: &Piece) -> Bytes {
        [&piece.head()[..], &piece.slice].concat().into()
    }

    #[test]
    fn a_piece_is_read_as_it_was_written() {
        for kind in [PieceKind::Data, PieceKind::Tree] {
            let piece = Piece { kind, ..piece() };
            assert_eq!(Piece::decode(bytes(&piece)), Some(piece));
        }
    }

    #[test]
    fn short_unknown_and_outlying_slices_are_no_pieces() {
        let whole = bytes(&piece());
        for length in 0..Piece::HEAD {
            assert_eq!(Piece::decode(whole.slice(..length)), None);
        }
        assert_eq!(Piece::decode(bytes(&Piece { length: 7, ..piece() })), None);
        assert_eq!(Piece::decode(bytes(&Piece { offset: u32::MAX, ..piece() })), None);
        let mut odd = whole.to_vec();
        odd[0] = 3;
        assert_eq!(Piece::decode(odd.into()), None);
    }
}
