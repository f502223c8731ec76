//! Compresses the files of `web/dist`, and writes the list of them that the crate includes.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::{Write as _, stdout},
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// Where the page is built, from this crate.
const DIST: &str = "../../web/dist";

/// The file of the page itself.
const INDEX: &str = "index.html";

/// Hexadecimal digits of a file's hash.
const HASH: usize = 16;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIST);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo runs this")?);
    writeln!(stdout(), "cargo::rerun-if-changed={}", dist.display())?;
    let mut list = "[\n".to_owned();
    for path in files(&dist)? {
        list.push_str(&listed(&dist, &path, &out)?);
    }
    list.push(']');
    Ok(fs::write(out.join("files.rs"), list)?)
}

/// All files below a directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A file's line in the list. Its compressed content lies in `out`.
fn listed(dist: &Path, path: &Path, out: &Path) -> Result<String> {
    let content = fs::read(path)?;
    let name = path.strip_prefix(dist)?.to_str().ok_or("a file's name is not UTF-8")?;
    let kind = kind(name).ok_or_else(|| format!("{name}: add its kind to crates/page/build.rs"))?;
    let address = if name == INDEX { String::new() } else { name.replace('\\', "/") };
    let hash = hex::encode(Sha256::digest(&content));
    let packed = format!("{hash}.gz");
    fs::write(out.join(&packed), gzip(&content)?)?;
    let (hash, length) = (&hash[..HASH], content.len());
    let mut line = String::new();
    write!(
        line,
        "File {{ path: \"/{address}\", kind: {kind:?}, hash: \"{hash}\", length: {length}, "
    )?;
    writeln!(line, "gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{packed}\")) }},")?;
    Ok(line)
}

/// The content type of a file.
fn kind(name: &str) -> Option<&'static str> {
    Some(match Path::new(name).extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

/// The same bytes at each build: there is no time and no name in them.
fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packer.write_all(content)?;
    Ok(packer.finish()?)
}
