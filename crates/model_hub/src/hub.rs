//! Where the hub is, and what is asked of it.

use base::Secret;
use http::{HeaderMap, HeaderValue, StatusCode, header::ETAG};
use models::{Gguf, arrival::Sum};
use serde::Deserialize;
use url::Url;

use crate::{
    HubError, HubFile, Listing, Patience,
    listing::{self, MAX_FILES},
    request::{Answer, From, Requests, after, host},
};

/// Hugging Face.
pub const HUGGING_FACE: &str = "https://huggingface.co";

/// The revision that is meant where none is named.
pub const MAIN: &str = "main";

/// The longest answer that is no file, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// The most answers that a listing comes in.
const MAX_PAGES: usize = 50;

/// How much of a file is read for its head, in bytes: one after another until it is enough.
const HEADS: [u64; 3] = [1 << 20, 8 << 20, 24 << 20];

/// Where a hub is, and who asks.
#[derive(Debug, Clone, Default)]
pub struct HubConfig {
    /// Its address (`HF_ENDPOINT`); Hugging Face's where there is none.
    pub endpoint: Option<String>,
    /// A token of an account there (`HF_TOKEN`).
    pub token: Option<Secret>,
    /// How this program names itself.
    pub agent: String,
    /// How long is waited.
    pub patience: Patience,
}

/// A hub.
#[derive(Debug)]
pub struct Hub {
    base: Url,
    requests: Requests,
    pub(crate) patience: Patience,
}

impl Hub {
    /// Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// [`HubError::Address`] and [`HubError::Token`].
    pub fn new(config: &HubConfig) -> Result<Self, HubError> {
        let given = config.endpoint.as_deref().unwrap_or(HUGGING_FACE);
        let base = base(given)?;
        let requests = Requests::new(&base, config.token.as_ref(), &config.agent, config.patience)?;
        Ok(Self { base, requests, patience: config.patience })
    }

    /// Host and port, for people.
    pub fn host(&self) -> String {
        host(&self.base)
    }

    /// The page of a repository, for people.
    pub fn page(&self, repo: &str) -> String {
        self.url(repo.split('/')).to_string()
    }

    /// The files of a repository at a revision. Which commit that is, is found out first, so that all that is
    /// fetched is of one.
    ///
    /// # Errors
    ///
    /// [`HubError`], after several tries where that may help.
    pub async fn list(&self, repo: &str, revision: &str) -> Result<Listing, HubError> {
        let of = |part| ["api", "models"].into_iter().chain(repo.split('/')).chain([part]);
        let refusal = Refusal { hub: self, repo, revision };
        let commit =
            self.retry(|| self.commit(self.url(of("revision").chain([revision])), &refusal));
        let commit = commit.await?.unwrap_or_else(|| revision.to_owned());
        let mut next = Some(self.url(of("tree").chain([commit.as_str()])));
        next.iter_mut().for_each(|url| url.set_query(Some("recursive=1")));
        let mut files = Vec::new();
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let answer = self.retry(|| self.ask(&url, &refusal)).await?;
            next = listing::next_page(answer.response.headers(), &url);
            let host = answer.host.clone();
            let page = self.requests.read(answer, MAX_ANSWER).await?;
            files.extend(
                listing::parse(&page).map_err(|reason| HubError::Strange { host, reason })?,
            );
            if files.len() > MAX_FILES {
                let reason = format!("{repo} has more than {MAX_FILES} files");
                return Err(HubError::Strange { host: self.host(), reason });
            }
        }
        Ok(Listing { repo: repo.to_owned(), commit, files })
    }

    /// The content of a file's head; `None` when it is not understood, or is longer than is read.
    ///
    /// # Errors
    ///
    /// [`HubError`].
    pub async fn head(&self, listing: &Listing, file: &HubFile) -> Result<Option<Gguf>, HubError> {
        for most in HEADS {
            let until = Some(most.min(file.size));
            let answer = self.open(listing, file, &From { until, ..From::default() }).await?;
            if answer.response.status() != StatusCode::PARTIAL_CONTENT && file.size > most {
                return Ok(None);
            }
            // A byte more is an answer that does not keep to the range.
            let bytes = self.requests.read(answer, most as usize + 1).await?;
            if let Ok(head) = Gguf::parse(&bytes) {
                return Ok(Some(head));
            }
            if most >= file.size {
                break;
            }
        }
        Ok(None)
    }

    /// Begins to fetch a file.
    pub(crate) async fn open(
        &self,
        listing: &Listing,
        file: &HubFile,
        from: &From,
    ) -> Result<Answer, HubError> {
        let path = ["resolve", listing.commit.as_str()].into_iter().chain(file.path.split('/'));
        let url = self.url(listing.repo.split('/').chain(path));
        let answer = self.requests.get(&url, from).await?;
        let status = answer.response.status();
        let (host, what) = (answer.host.clone(), file.path.clone());
        match status {
            StatusCode::TOO_MANY_REQUESTS => {
                Err(HubError::Busy { host, after: after(answer.response.headers()) })
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if answer.is_hub => {
                Err(self.closed(&listing.repo))
            }
            // The address that the hub gave is good for a time only.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let reason = format!("it answers {status}");
                Err(HubError::Unreachable { host, reason })
            }
            StatusCode::NOT_FOUND if answer.is_hub => Err(HubError::Changed { file: what }),
            _ if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE => {
                match told_sum(&answer) {
                    Some(sum) if sum != file.sum => Err(HubError::Changed { file: what }),
                    _ => Ok(answer),
                }
            }
            _ => Err(HubError::Status { host, status: status.as_u16(), what }),
        }
    }

    fn closed(&self, repo: &str) -> HubError {
        HubError::Closed { page: self.page(repo), has_token: self.requests.has_token() }
    }

    /// Which commit a revision is; `None` where the hub does not say.
    async fn commit(&self, url: Url, refusal: &Refusal<'_>) -> Result<Option<String>, HubError> {
        #[derive(Deserialize)]
        struct Revision {
            sha: Option<String>,
        }
        let answer = self.ask(&url, refusal).await?;
        let text = self.requests.read(answer, MAX_ANSWER).await?;
        let revision: Option<Revision> = serde_json::from_slice(&text).ok();
        let is_commit =
            |sha: &String| sha.len() == 40 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(revision.and_then(|revision| revision.sha).filter(is_commit))
    }

    /// Asks for something that is no file.
    async fn ask(&self, url: &Url, refusal: &Refusal<'_>) -> Result<Answer, HubError> {
        let answer = self.requests.get(url, &From::default()).await?;
        if answer.response.status().is_success() { Ok(answer) } else { Err(refusal.of(&answer)) }
    }

    fn url<'a>(&self, segments: impl Iterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        // It was checked to have a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

/// The request that was refused, to say what a refusal means.
struct Refusal<'a> {
    hub: &'a Hub,
    repo: &'a str,
    revision: &'a str,
}

impl Refusal<'_> {
    fn of(&self, answer: &Answer) -> HubError {
        let headers = answer.response.headers();
        let (host, page) = (answer.host.clone(), self.hub.page(self.repo));
        let revision = self.revision.to_owned();
        match (answer.response.status(), word(headers, "x-error-code")) {
            (_, Some("GatedRepo")) => self.hub.closed(self.repo),
            (_, Some("RevisionNotFound")) => HubError::NoRevision { page, revision },
            (_, Some("RepoNotFound")) => HubError::NoRepo { page },
            (StatusCode::TOO_MANY_REQUESTS, _) => HubError::Busy { host, after: after(headers) },
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => self.hub.closed(self.repo),
            (StatusCode::NOT_FOUND, _) if revision == MAIN => HubError::NoRepo { page },
            (StatusCode::NOT_FOUND, _) => HubError::NoRevision { page, revision },
            (status, _) => HubError::Status { host, status: status.as_u16(), what: String::new() },
        }
    }
}

fn base(given: &str) -> Result<Url, HubError> {
    let wrong = |reason: &str| HubError::Address {
        url: base::redact_url(given),
        reason: reason.to_owned(),
    };
    let url = Url::parse(given.trim()).map_err(|_| wrong("write it as https://HOST"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("write it as https://HOST"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it ends before ? and #"));
    }
    Ok(url)
}

/// The SHA-256 that the hub names with the address of a large file.
fn told_sum(answer: &Answer) -> Option<Sum> {
    let tag = word(&answer.first, "x-linked-etag")?;
    Sum::sha256(tag.trim_start_matches("W/").trim_matches('"'))
}

/// By which a server knows again what it sent.
pub(crate) fn etag(headers: &HeaderMap) -> Option<HeaderValue> {
    // A weak one says nothing of bytes.
    headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned()
}

fn word<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
