//! The web page: login codes, and the sessions of browsers.

use http::Method;
use protocol::admin::web::{CODE, LoginCode, PageSessionJson, PageSessionList, SESSIONS};

use crate::{
    error::ClientError,
    server::{Warren, segment},
};

impl Warren {
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
}
