//! The file of a service's environment, for values that must not be in its unit or its command line.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, bail};
use base::{Secret, system::Rights};

use super::quoting::{quoted, unquoted};

/// A variable and its value.
pub(super) type Variable = (String, Secret);

/// Sets variables in the file; others in it stay. A missing file is made, readable for its owner only, even
/// if there is nothing to be set.
///
/// # Errors
/// When a value has several lines, or the file cannot be read or written.
pub(super) fn set(path: &Path, variables: &[Variable]) -> anyhow::Result<()> {
    let new = merged(&read(path)?, variables)?;
    write(path, &new).with_context(|| format!("{} cannot be written", path.display()))
}

/// The variables that the file would set after [`set`].
///
/// # Errors
/// When the file cannot be read.
pub(super) fn with(path: &Path, variables: &[Variable]) -> anyhow::Result<Vec<Variable>> {
    let text = merged(&read(path)?, variables)?;
    let pairs = text.lines().filter_map(|line| line.trim_start().split_once('='));
    let pairs = pairs.filter(|(name, _)| !name.starts_with(['#', ';']));
    Ok(pairs.map(|(name, value)| (name.to_owned(), Secret::from(unquoted(value)))).collect())
}

/// Whether the file sets this variable.
pub(super) fn has(path: &Path, name: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| sets(line, name))
}

/// The file's text, which is empty if there is no file.
fn read(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn merged(old: &str, variables: &[Variable]) -> anyhow::Result<String> {
    let is_kept = |line: &&str| !variables.iter().any(|(name, _)| sets(line, name));
    let mut text: String = old.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    for (name, value) in variables {
        if value.expose().contains(['\n', '\r', '\0']) {
            bail!("the value of {name} has several lines, which a service cannot be given");
        }
        text.push_str(&format!("{name}={}\n", quoted(value.expose())));
    }
    Ok(text)
}

fn sets(line: &str, name: &str) -> bool {
    line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

/// Replaces the file in one step, so that no reader gets half of it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).readable().create(directory)?;
    let new = path.with_extension("env.new");
    let _left_over = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).private().open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        (name.to_owned(), Secret::from(value))
    }

    #[test]
    fn a_variable_is_replaced_and_the_rest_of_the_file_stays() {
        let old = "# mine\nWARREN_LOG=debug\nWARREN_SECRET=\"old\"\n";
        let new = merged(old, &[variable("WARREN_SECRET", "a\"b\\c $d")]).unwrap();
        let expected = "# mine\nWARREN_LOG=debug\nWARREN_SECRET=\"a\\\"b\\\\c $d\"\n";
        assert_eq!(new, expected);
        let error = merged("", &[variable("A", "b\nc")]).unwrap_err().to_string();
        assert!(error.contains("the value of A has several lines"), "{error}");
    }

    #[test]
    fn the_variables_of_the_file_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("warren.env");
        let old = [variable("A", "a\"b\\c $d 50%"), variable("B", "old")];
        set(&path, &old).unwrap();
        fs::write(&path, fs::read_to_string(&path).unwrap() + "# mine\nC=plain\n").unwrap();
        let all = with(&path, &[variable("B", "new")]).unwrap();
        let all: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(all, [("A", "a\"b\\c $d 50%"), ("C", "plain"), ("B", "new")]);
    }

    #[test]
    fn the_file_is_for_its_owner_only_whoever_could_read_it_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/warren.env");
        set(&path, &[]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        set(&path, &[variable("WARREN_SECRET", "s")]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(has(&path, "WARREN_SECRET") && !has(&path, "WARREN"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
