//! Finds a program: on `PATH`, and where the usual installers put it. A service has a short `PATH`.

use std::{
    env::{self, consts::EXE_SUFFIX},
    fs,
    path::{Path, PathBuf, is_separator},
};

use base::system::user_home;

use crate::system::may_be_run;

/// The directories where installers put programs, beside `PATH`.
const USUAL: [&str; 7] = [
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/opt/local/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
    "/usr/bin",
];

/// Such directories below the home directory.
const USUAL_AT_HOME: [&str; 4] =
    [".local/bin", ".nix-profile/bin", "llama.cpp/build/bin", "llama.cpp"];

/// The directories that are searched.
#[derive(Debug, Clone)]
pub(crate) struct Places(Vec<PathBuf>);

impl Places {
    /// The directories of this process.
    pub(crate) fn here() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let home = user_home();
        let at_home = home.iter().flat_map(|home| USUAL_AT_HOME.map(|place| home.join(place)));
        let usual = USUAL.map(PathBuf::from);
        Self(env::split_paths(&path).chain(usual).chain(at_home).collect())
    }

    /// Finds a program by its name or its path. A path is taken as it is written.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains(is_separator) {
            let path = daemon::options::engines::path(program);
            return is_program(&path).then(|| std::path::absolute(&path).unwrap_or(path));
        }
        let all = self.0.iter().filter(|place| !place.as_os_str().is_empty());
        let names =
            |place: &PathBuf| [place.join(program), place.join(format!("{program}{EXE_SUFFIX}"))];
        all.flat_map(names).find(|path| is_program(path))
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && may_be_run(path, &facts))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_the_first_that_can_be_run() {
        let place = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| place.path().join(name));
        for directory in [&first, &second] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("serve"), "").unwrap();
        }
        let places = Places(vec![PathBuf::new(), first.clone(), second.clone()]);
        assert_eq!(places.find("serve"), None, "neither can be run");
        let run = |directory: &Path| {
            let file = directory.join("serve");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let found = run(&second);
        assert_eq!(places.find("serve"), Some(found.clone()));
        assert_eq!(places.find(found.to_str().unwrap()), Some(found));
        assert_eq!(places.find("serve"), Some(second.join("serve")));
        let found = run(&first);
        assert_eq!(places.find("serve"), Some(found));
        assert_eq!(places.find("./serve-that-is-nowhere"), None);
        assert_eq!(places.find(first.to_str().unwrap()), None, "a directory is no program");
    }
}
