//! Models as Macs send and take them.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::link::Shared;
use crate::mesh::wire::CHUNK;

#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// A piece at offset 0 makes the file new; any other is put at the end, whatever its offset.
    pub(super) fn take(&mut self, body: &Value) {
        let name = body["fileName"].as_str().expect("it was checked");
        let data = body["data"].as_str().expect("it was checked");
        let file = self.0.entry(name.to_owned()).or_default();
        if body["offset"] == 0 {
            file.clear();
        }
        file.extend(BASE64_STANDARD.decode(data).expect("base64"));
    }

    pub(super) fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.0
    }
}

/// Sends the files of a model one after the other; only the last piece of the last one says that it is
/// the last. Hidden and empty files are not sent, and a request for a missing model is not answered.
pub(super) async fn send(shared: &Shared, body: &Value) {
    let model = body["modelID"].as_str().unwrap_or_default();
    let transfer = body["transferID"].as_str().unwrap_or_default().to_uppercase();
    let Some(files) = shared.settings.files.get(model) else { return };
    let sent: Vec<_> =
        files.iter().filter(|(name, bytes)| !name.starts_with('.') && !bytes.is_empty()).collect();
    for (place, (name, bytes)) in sent.iter().enumerate() {
        let pieces = bytes.len().div_ceil(CHUNK);
        for (number, piece) in bytes.chunks(CHUNK).enumerate() {
            let is_last = place + 1 == sent.len() && number + 1 == pieces;
            let chunk = json!({
                "transferID": transfer, "fileName": name, "offset": number * CHUNK,
                "data": BASE64_STANDARD.encode(piece), "isLastChunk": is_last,
            });
            shared.say("modelTransferChunk", &chunk).await;
        }
    }
    let complete = json!({"transferID": transfer, "modelID": model});
    shared.say("modelTransferComplete", &complete).await;
}
