//! The id of this machine, which survives restarts.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use uuid::Uuid;

/// The name of the file that keeps the id.
const NODE_ID: &str = "node.id";

/// The id of this machine, which stays the same after a restart. Blocks: it reads a small file, and
/// writes it if no id is in it.
pub fn node_id(dir: &Path) -> String {
    let path = dir.join(NODE_ID);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    if let Err(error) = made {
        tracing::warn!(%error, dir = %dir.display(), "the workspace's directory cannot be made");
    }
    let stored = fs::read_to_string(&path).ok();
    if let Some(id) = stored.and_then(|text| Uuid::try_parse(text.trim()).ok()) {
        return id.to_string();
    }
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
    if let Err(error) = write_private(&path, &id) {
        tracing::warn!(%error, "the id of this node cannot be kept: it is another after a restart");
    }
    id
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_id_over_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let id = node_id(dir.path());
        assert_eq!(node_id(dir.path()), id);
        assert!(Uuid::try_parse(&id).is_ok());
        fs::write(dir.path().join(NODE_ID), "nonsense").unwrap();
        let other = node_id(dir.path());
        assert_ne!(other, id);
        assert_eq!(node_id(dir.path()), other);
    }
}
