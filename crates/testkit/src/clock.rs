//! Servers whose clock is wrong, by libfaketime.

use std::{os::unix::fs::PermissionsExt, path::Path};

use tempfile::TempDir;

use crate::Serve;

/// How far a server's clock is off.
#[derive(Debug)]
pub struct WrongClock(TempDir);

impl WrongClock {
    /// From the next start on it is off by this, such as `+1h`.
    pub fn set(&self, by: &str) {
        std::fs::write(self.0.path().join("by"), by).expect("it can be written");
    }
}

/// A server to be started whose clock is off by this. `None` where nothing can do that.
pub fn with_clock(binary: &Path, by: &str) -> Option<(Serve, WrongClock)> {
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    if !Path::new(library).exists() {
        return None;
    }
    let clock = WrongClock(TempDir::new().expect("a directory"));
    clock.set(by);
    let (dir, warren) = (clock.0.path().display(), binary.display());
    let text = format!(
        "#!/bin/sh\nexport FAKETIME=$(cat {dir}/by) FAKETIME_DONT_FAKE_MONOTONIC=1\n\
         export LD_PRELOAD={library}\nexec {warren} \"$@\"\n"
    );
    let script = clock.0.path().join("warren-with-a-wrong-clock");
    std::fs::write(&script, text).expect("it can be written");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).expect("it is ours");
    Some((Serve::new(script), clock))
}
