//! The requests about a server's log.

use std::time::Duration;

use http::Method;
use protocol::admin::logs::{LogEvent, LogLevel, LogLine, LogList};

use crate::{error::ClientError, lines::JsonLines, rooms::PATIENCE, server::Warren};

/// The longest silence of a followed log. The server sends a sign of life every ten seconds.
const FOLLOWING: Duration = Duration::from_secs(45);

/// Which lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogQuery {
    /// How many of the newest lines to return, at most.
    pub limit: usize,
    /// The least grave level to return.
    pub level: LogLevel,
}

impl LogQuery {
    fn path(self) -> String {
        format!("/admin/logs?limit={}&level={}", self.limit, self.level)
    }
}

impl Warren {
    /// The newest lines of its log, the oldest of them first.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn logs(&self, query: LogQuery) -> Result<Vec<LogLine>, ClientError> {
        let list: LogList = self.get(&query.path()).await?;
        Ok(list.lines)
    }

    /// The newest lines of its log, and those that come after them, until it stops.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses: the number of its followers is bounded.
    pub async fn follow_logs(&self, query: LogQuery) -> Result<Logging, ClientError> {
        let path = format!("{}&follow=true", query.path());
        let body = self.0.open(Method::GET, &path, None, PATIENCE).await?;
        Ok(JsonLines::new(body, self.url(), FOLLOWING))
    }
}

/// A log that is followed: its lines, and how many were missed, until the server stops.
pub type Logging = JsonLines<LogEvent>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_its_limit_and_level() {
        let query = LogQuery { limit: 7, level: LogLevel::Warn };
        assert_eq!(query.path(), "/admin/logs?limit=7&level=warn");
    }
}
