//! A model of random bytes, and whether another is the same.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use testkit::Random;
use tokio::task::spawn_blocking;

pub(crate) const MODEL: &str = "soak/blob";

const FILES: [&str; 2] = ["weights.safetensors", "config.json"];

const CONFIG: &str = r#"{"model_type": "noise"}"#;

/// The bytes that are compared at once.
const STEP: usize = 1 << 20;

/// A folder with the model in it.
pub(crate) struct Offered(TempDir);

impl Offered {
    /// Makes a file of `bytes` random bytes.
    pub(crate) async fn make(bytes: u64, random: Random) -> Self {
        let folder = TempDir::new().expect("a directory");
        let model = folder.path().join(MODEL);
        let made = spawn_blocking(move || {
            std::fs::create_dir_all(&model)?;
            std::fs::write(model.join(FILES[1]), CONFIG)?;
            write(&model.join(FILES[0]), bytes, random)
        });
        made.await.expect("no panic").expect("room on the disk");
        Self(folder)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    /// The differences in the model that a machine with this data directory has, if there are any.
    pub(crate) async fn compare(&self, data: &Path) -> Result<(), String> {
        let (own, other) = (self.0.path().join(MODEL), arrived(data));
        let compared = spawn_blocking(move || {
            FILES.iter().try_for_each(|name| same(&own.join(name), &other.join(name)))
        });
        compared.await.expect("no panic")
    }
}

/// Takes the model away from a machine with this data directory.
pub(crate) async fn remove(data: &Path) -> io::Result<()> {
    match tokio::fs::remove_dir_all(arrived(data)).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn arrived(data: &Path) -> PathBuf {
    data.join("models").join(MODEL)
}

fn write(path: &Path, bytes: u64, mut random: Random) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(STEP, File::create(path)?);
    for _ in 0..bytes / 8 {
        file.write_all(&random.next().to_le_bytes())?;
    }
    // The last piece is not a whole one.
    file.write_all(b"end")?;
    file.flush()
}

fn same(own: &Path, other: &Path) -> Result<(), String> {
    let at_path = |error: io::Error| format!("{}: {error}", other.display());
    let (own, others) = (File::open(own).map_err(at_path)?, File::open(other).map_err(at_path)?);
    let (mut one, mut two, mut at) = (Vec::new(), Vec::new(), 0);
    loop {
        one.clear();
        two.clear();
        (&own).take(STEP as u64).read_to_end(&mut one).map_err(at_path)?;
        (&others).take(STEP as u64).read_to_end(&mut two).map_err(at_path)?;
        if one != two {
            return Err(format!("{} differs in the MiB at {at}", other.display()));
        }
        if one.is_empty() {
            return Ok(());
        }
        at += one.len();
    }
}
