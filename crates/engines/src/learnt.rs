//! How long models take to load, learnt and kept in a small file.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::model::EngineModel;

/// The file in the directory of the model engines.
const FILE: &str = "load-times.json";
/// The most bytes of it that are read.
const MOST_BYTES: u64 = 1 << 20;
/// The most models that are remembered.
const MOST_MODELS: usize = 2_000;

/// The load times that were learnt, by model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Learnt(BTreeMap<String, Load>);

/// The loads of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Load {
    /// The length of its file. A file of another length counts as another model.
    file_bytes: Option<u64>,
    /// An average that follows the latest loads, in milliseconds.
    load_ms: u64,
    /// Counts the loads of all models; 0 in files of older versions.
    #[serde(default)]
    turn: u64,
}

impl Learnt {
    /// The times that were learnt earlier; empty if the file cannot be read.
    pub(crate) fn read(dir: &Path) -> Self {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            fs::File::open(dir.join(FILE))?.take(MOST_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes all times. The file is replaced as a whole, so that a crash leaves the old one.
    pub(crate) fn write(&self, dir: &Path) {
        let write = || -> io::Result<()> {
            fs::create_dir_all(dir)?;
            let new = dir.join(format!("{FILE}.{}.new", std::process::id()));
            fs::write(&new, serde_json::to_vec(self).unwrap_or_default())?;
            fs::rename(&new, dir.join(FILE))
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "how long models take to load is not kept");
        }
    }

    /// How long a model takes to load, if it was loaded before.
    pub(crate) fn of(&self, model: &EngineModel) -> Option<Duration> {
        let load = self.0.get(&model.name)?;
        (load.file_bytes == model.facts.file_bytes).then(|| Duration::from_millis(load.load_ms))
    }

    /// Notes how long a load took: the average of the old value and this one. If too many models are known, the one
    /// whose last load is the longest ago is forgotten.
    pub(crate) fn note(&mut self, model: &EngineModel, took: Duration) {
        let took = base::millis(took);
        let before = self.of(model).map(base::millis);
        let load_ms = before.map_or(took, |before| before.midpoint(took));
        if self.0.len() >= MOST_MODELS && !self.0.contains_key(&model.name) {
            let oldest = self.0.iter().min_by_key(|(_, load)| load.turn);
            let oldest = oldest.map(|(name, _)| name.clone());
            self.0.remove(&oldest.unwrap_or_default());
        }
        let turn = self.0.values().map(|load| load.turn).max().unwrap_or(0).saturating_add(1);
        let load = Load { file_bytes: model.facts.file_bytes, load_ms, turn };
        self.0.insert(model.name.clone(), load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model;

    #[test]
    fn load_times_are_kept_and_follow_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let mut learnt = Learnt::read(dir.path());
        let one = model("a");
        assert_eq!(learnt.of(&one), None);
        learnt.note(&one, Duration::from_millis(1000));
        learnt.note(&one, Duration::from_millis(2000));
        learnt.write(dir.path());
        let read = Learnt::read(dir.path());
        assert_eq!((read.of(&one), &read), (Some(Duration::from_millis(1500)), &learnt));
        let mut other = one;
        other.facts.file_bytes = Some(7);
        assert_eq!(read.of(&other), None, "another file");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none_and_only_so_many_models_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "{\"a\":").unwrap();
        let mut learnt = Learnt::read(dir.path());
        for number in 0..=MOST_MODELS {
            learnt.note(&model(&format!("m{number}")), Duration::from_millis(1));
        }
        assert_eq!(learnt.0.len(), MOST_MODELS);
        learnt.note(&model("a"), Duration::from_millis(1));
        learnt.note(&model("z"), Duration::from_millis(1));
        let known = |name: &str| learnt.of(&model(name)).is_some();
        assert!(known("a"), "it was loaded a moment ago");
        assert!(!known("m0") && !known("m1") && !known("m2") && known("m3"));
    }
}
