//! A server, and its requests.

use std::time::Duration;

use base::{Secret, UsageBy};
use http::Method;
use jiff::Timestamp;
use protocol::admin::{
    AuditList, CreateKey, KeyJson, KeyList,
    config::{ConfigJson, Reloaded},
    requests::{RequestJson, RequestList},
    status::{Health, ModelChanged, Stats, WorkerJson, WorkerList},
    stop::{StopProgress, StopRequest},
    usage::UsageReport,
    web::{CODE, LoginCode, PageSessionJson, PageSessionList, SESSIONS},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::error::Category;
use url::{Host, Url, form_urlencoded};

use crate::{
    connection::Connection, error::ClientError, events::AnswerEvents, lines::JsonLines,
    rooms::PATIENCE, workspace::Address,
};

/// A running server.
#[derive(Debug, Clone)]
pub struct Warren(pub(crate) Connection);

/// A query about usage. Times have the forms that the server reads: RFC 3339, a day, or a span such
/// as `7d`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageRequest {
    /// The properties by which the usage is split.
    pub by: Vec<UsageBy>,
    /// From this time on.
    pub since: Option<String>,
    /// Before this time.
    pub until: Option<String>,
    /// Only of this key, by its id.
    pub key: Option<String>,
    /// Only of this model.
    pub model: Option<String>,
    /// Only of the providers of this name.
    pub provider: Option<String>,
}

impl UsageRequest {
    /// This query in the form of a URL's query.
    pub fn query(&self) -> String {
        let by: Vec<&str> = self.by.iter().map(|by| by.as_str()).collect();
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("by", &by.join(","));
        let rest = [
            ("since", &self.since),
            ("until", &self.until),
            ("key", &self.key),
            ("model", &self.model),
            ("provider", &self.provider),
        ];
        for (name, value) in rest {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }
}

impl Warren {
    /// The server at `url`, with `token` in each request. Does not connect yet.
    ///
    /// # Errors
    /// When the URL or the token cannot be used.
    pub fn new(url: &str, token: Option<&Secret>) -> Result<Self, ClientError> {
        Connection::new(url, token).map(Self)
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        self.0.shown()
    }

    /// Whether its URL leads to this machine: to `localhost` or a loopback address.
    pub fn is_on_this_machine(&self) -> bool {
        Url::parse(&self.url()).is_ok_and(|url| leads_here(&url))
    }

    /// The address of its workspace, with the same token.
    ///
    /// # Errors
    /// When the URL cannot be used for it.
    pub fn workspace(&self) -> Result<Address, ClientError> {
        Address::new(&self.url(), self.0.token().as_ref())
    }

    /// Every key, the oldest first.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn keys(&self) -> Result<Vec<KeyJson>, ClientError> {
        let list: KeyList = self.get("/admin/keys").await?;
        Ok(list.keys)
    }

    /// One key.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when the key does
    /// not exist.
    pub async fn key(&self, id: &str) -> Result<KeyJson, ClientError> {
        self.get(&format!("/admin/keys/{}", segment(id))).await
    }

    /// Creates a key. Only this answer has its text.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn create_key(&self, key: &CreateKey) -> Result<KeyJson, ClientError> {
        self.post_json("/admin/keys", key).await
    }

    /// Gives a key another text, which only this answer has.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when the key does
    /// not exist.
    pub async fn rotate_key(&self, id: &str) -> Result<KeyJson, ClientError> {
        self.ask(Method::POST, &format!("/admin/keys/{}/rotate", segment(id)), None).await
    }

    /// Revokes a key, for good.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when the key does
    /// not exist.
    pub async fn revoke_key(&self, id: &str) -> Result<KeyJson, ClientError> {
        self.ask(Method::DELETE, &format!("/admin/keys/{}", segment(id)), None).await
    }

    /// The usage that `request` selects.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn usage(&self, request: &UsageRequest) -> Result<UsageReport, ClientError> {
        self.get(&format!("/admin/usage?{}", request.query())).await
    }

    /// The audit log, the newest entry first, at most `most` entries.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn audit(&self, most: usize) -> Result<AuditList, ClientError> {
        self.get(&format!("/admin/audit?limit={most}")).await
    }

    /// Its health. Only the administrator, callers with a key and callers on the server's own
    /// machine get the details.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get("/health").await
    }

    /// The server's time, from the date of an answer; `None` if the answer has no date.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn clock(&self) -> Result<Option<Timestamp>, ClientError> {
        self.0.date("/health").await
    }

    /// Its settings, and where each is from.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn config(&self) -> Result<ConfigJson, ClientError> {
        self.get("/admin/config").await
    }

    /// Has it read its configuration again.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; also when the configuration is invalid: then the
    /// earlier one stays.
    pub async fn reload(&self) -> Result<Reloaded, ClientError> {
        self.ask(Method::POST, "/admin/config/reload", None).await
    }

    /// The state of its queues.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn stats(&self) -> Result<Stats, ClientError> {
        self.get("/admin/stats").await
    }

    /// The connected workers and other providers, by name.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn workers(&self) -> Result<Vec<WorkerJson>, ClientError> {
        let list: WorkerList = self.get("/admin/workers").await?;
        Ok(list.workers)
    }

    /// Has a worker load a model if `loads` is true, and otherwise unload it. Returns when that is done; a
    /// load may take minutes.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; when the worker cannot do it.
    pub async fn change_model(
        &self,
        worker: &str,
        model: &str,
        loads: bool,
    ) -> Result<ModelChanged, ClientError> {
        let (worker, model) = (segment(worker), segment(model));
        let verb = if loads { "load" } else { "unload" };
        let path = format!("/admin/workers/{worker}/models/{model}/{verb}");
        let answer = self.0.ask_patiently(Method::POST, &path, PATIENCE).await?;
        serde_json::from_slice(&answer).map_err(|error| self.0.strange(error.to_string()))
    }

    /// The requests that ended last, the newest first, at most `limit`: those with a number above
    /// `after`, or with 0 all that the server remembers.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn requests(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RequestJson>, ClientError> {
        let list: RequestList =
            self.get(&format!("/admin/requests?after={after}&limit={limit}")).await?;
        Ok(list.requests)
    }

    /// Makes a code by which one browser signs in with the rights of this client's token.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn create_login_code(&self) -> Result<LoginCode, ClientError> {
        self.ask(Method::POST, CODE, None).await
    }

    /// The sessions of the page, the oldest first.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn page_sessions(&self) -> Result<Vec<PageSessionJson>, ClientError> {
        let list: PageSessionList = self.get(SESSIONS).await?;
        Ok(list.sessions)
    }

    /// Ends a session of the page.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when no session has this id.
    pub async fn revoke_page_session(&self, id: &str) -> Result<PageSessionJson, ClientError> {
        self.ask(Method::DELETE, &format!("{SESSIONS}/{}", segment(id)), None).await
    }

    /// Asks the server to end. The answer reports what it still waits for.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn stop(&self, stop: StopRequest) -> Result<StopReports, ClientError> {
        self.post_for_lines("/admin/stop", &stop, SILENCE).await.map(StopReports)
    }

    /// Posts a request to one of its consumer APIs, such as `/v1/chat/completions`, and streams the
    /// answer.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<AnswerEvents, ClientError> {
        let body = self.0.open(Method::POST, path, Some(body), PATIENCE).await?;
        Ok(AnswerEvents::new(body, self.0.shown()))
    }

    /// Posts a request whose answer is lines of JSON. `silence`: the longest pause in the answer.
    pub(crate) async fn post_for_lines<T: DeserializeOwned>(
        &self,
        path: &str,
        request: &impl Serialize,
        silence: Duration,
    ) -> Result<JsonLines<T>, ClientError> {
        let request = self.0.json(request)?;
        let body = self.0.open(Method::POST, path, Some(request), PATIENCE).await?;
        Ok(JsonLines::new(body, self.url(), silence))
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, ClientError> {
        let answer = self.0.ask(method, path, body).await?;
        serde_json::from_slice(&answer).map_err(|error| match error.classify() {
            // JSON of another form may come from another version of Warren.
            Category::Data => self.0.strange(error.to_string()),
            _ => self.0.no_warren("what it answers is no JSON"),
        })
    }
}

/// The longest silence of a server that ends.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The progress of a server that was asked to end.
#[derive(Debug)]
pub struct StopReports(JsonLines<StopProgress>);

impl StopReports {
    /// The work that it waits for now; `None` when the server has closed the connection.
    ///
    /// # Errors
    /// When nothing came for 15 minutes, or something else came.
    pub async fn next(&mut self) -> Result<Option<StopProgress>, ClientError> {
        match self.0.next().await {
            // A server that ends may close the connection in the middle of a line.
            Err(ClientError::Unreachable { .. }) => Ok(None),
            step => step,
        }
    }
}

/// Whether a URL leads to this machine: to `localhost` or a loopback address.
pub(crate) fn leads_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

pub(crate) fn segment(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_the_path() {
        assert_eq!(segment("k-01ab"), "k-01ab");
        assert_eq!(segment("a/../b c?d#e"), "a%2F..%2Fb%20c%3Fd%23e");
    }

    #[test]
    fn an_address_of_this_machine_is_recognised() {
        let is_here = |url| Warren::new(url, None).unwrap().is_on_this_machine();
        for url in
            ["http://localhost:1", "http://127.0.0.9", "https://[::1]:9", "http://a.localhost"]
        {
            assert!(is_here(url), "{url}");
        }
        for url in ["http://192.168.0.1", "https://localhost.example", "http://[::2]"] {
            assert!(!is_here(url), "{url}");
        }
    }

    #[test]
    fn a_question_becomes_a_query() {
        let request = UsageRequest {
            by: vec![UsageBy::Key, UsageBy::Day],
            since: Some("7d".to_owned()),
            model: Some("a b&c".to_owned()),
            ..UsageRequest::default()
        };
        assert_eq!(request.query(), "by=key%2Cday&since=7d&model=a+b%26c");
    }

    #[tokio::test]
    async fn an_absent_server_is_an_error() {
        let refusing = testkit::RefusingPort::take();
        let warren = Warren::new(&refusing.url(), None).unwrap();
        let error = warren.keys().await.unwrap_err();
        assert!(error.is_unreachable(), "{error}");
    }
}
