//! The files of a repository.

use http::{HeaderMap, header::LINK};
use models::arrival::Sum;
use serde::Deserialize;
use url::Url;

/// The most files of a repository.
pub const MAX_FILES: usize = 10_000;

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// Its name in the repository, with directories.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// Its hash.
    pub sum: Sum,
}

/// The content of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// `ORG/REPO`.
    pub repo: String,
    /// Which commit it is, or what was asked for where the hub does not say.
    pub commit: String,
    /// Files only. One without a hash is left out.
    pub files: Vec<HubFile>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<Large>,
}

/// Of a file that is kept outside of git.
#[derive(Deserialize)]
struct Large {
    oid: Option<String>,
    size: Option<u64>,
}

/// Reads a page of a listing; says what is wrong with it.
pub(crate) fn parse(page: &[u8]) -> Result<Vec<HubFile>, String> {
    let entries: Vec<Entry> =
        serde_json::from_slice(page).map_err(|error| format!("its list of files: {error}"))?;
    Ok(entries.into_iter().filter_map(file).collect())
}

/// Where the listing goes on, at the same server.
pub(crate) fn next_page(headers: &HeaderMap, at: &Url) -> Option<Url> {
    let links = headers.get(LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (address, _) = next.trim().strip_prefix('<')?.split_once('>')?;
    at.join(address).ok().filter(|next| next.origin() == at.origin())
}

fn file(entry: Entry) -> Option<HubFile> {
    if entry.kind != "file" {
        return None;
    }
    let large = entry.lfs.as_ref();
    let size = large.and_then(|large| large.size).unwrap_or(entry.size);
    let sum = match large {
        Some(large) => {
            let oid = large.oid.as_deref()?;
            Sum::sha256(oid.strip_prefix("sha256:").unwrap_or(oid))?
        }
        None => Sum::git(entry.oid.as_deref()?)?,
    };
    Some(HubFile { path: entry.path, size, sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_with_the_hash_of_where_they_are_kept() {
        let (sha, git) = ("ab".repeat(32), "cd".repeat(20));
        let page = format!(
            r#"[{{"type":"directory","oid":"x","size":0,"path":"d"}},
            {{"type":"file","oid":"{git}","size":12,"path":"README.md"}},
            {{"type":"file","oid":"{git}","size":9,"lfs":{{"oid":"{sha}","size":9,"pointerSize":134}},"path":"d/m.gguf"}},
            {{"type":"file","oid":"{git}","size":9,"lfs":{{"size":9}},"path":"no-hash.gguf"}}]"#
        );
        let files = parse(page.as_bytes()).unwrap();
        let all: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
        assert_eq!(all, [("README.md", 12), ("d/m.gguf", 9)]);
        assert_eq!(files[0].sum, Sum::git(&git).unwrap());
        assert_eq!(files[1].sum, Sum::sha256(&sha).unwrap());
        assert!(parse(b"<html>").unwrap_err().contains("list of files"));
    }

    #[test]
    fn a_listing_goes_on_at_the_same_server_only() {
        let at = Url::parse("https://hub.example/api/models/a/b/tree/main?recursive=1").unwrap();
        let next = |link: &str| {
            let headers = HeaderMap::from_iter([(LINK, link.parse().unwrap())]);
            next_page(&headers, &at).map(|url| url.to_string())
        };
        let more = "https://hub.example/api/x?cursor=2";
        assert_eq!(next(&format!("<{more}>; rel=\"next\"")).as_deref(), Some(more));
        assert_eq!(next("</api/x?cursor=2>; rel=\"next\"").as_deref(), Some(more));
        assert_eq!(next("<https://other.example/x>; rel=\"next\""), None);
        assert_eq!(next(&format!("<{more}>; rel=\"prev\"")), None);
        assert_eq!(next_page(&HeaderMap::new(), &at), None);
    }
}
