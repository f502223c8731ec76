//! The tokens by which agents prove that they are members of a team. A token is only in the memory
//! of this process, and in the environment of the agent's MCP server.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use ::session::agent::McpServer;
use access::credential::{Token, new_token};
use base::Secret;
use protocol::workspace::SessionId;

use crate::{identity::Member, settings::Gateway};

/// The beginning of every member's token. The id of its session follows.
const PREFIX: &str = "wt_";
/// The name of the MCP server, as agents show it with its tools.
const NAME: &str = "team";
/// The server's URL while the gateway is not known.
const DEFAULT_SERVER: &str = "http://127.0.0.1:9178";

/// The path of this program. It is looked up only once, because the file may be replaced later.
static PROGRAM: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::current_exe().unwrap_or_else(|_| "warren".into()));

/// The tokens of all members whose sessions are live.
#[derive(Default)]
pub struct MemberTokens(Mutex<HashMap<SessionId, MemberToken>>);

/// A member's token. It stays the same when the member's agent is started again.
struct MemberToken {
    member: Member,
    secret: Secret,
    token: Token,
}

impl MemberTokens {
    /// The member with this token. The token is compared as a hash, in constant time.
    pub fn member(&self, presented: &str) -> Option<Member> {
        // The session in the token finds the entry, and the whole token proves it.
        let (session, _) = presented.strip_prefix(PREFIX)?.split_once('_')?;
        let all = self.lock();
        let given = all.get(&session.parse().ok()?)?;
        given.token.matches(presented).then_some(given.member)
    }

    /// The command and the environment of a member's MCP server.
    pub fn mcp(&self, gateway: Option<Gateway>, member: Member) -> McpServer {
        let url = gateway.map_or_else(|| DEFAULT_SERVER.to_owned(), |gateway| gateway.url);
        let env = [
            ("WARREN_SERVER", url.into()),
            ("WARREN_TOKEN", self.secret(member)),
            ("WARREN_TEAM", member.team.to_string().into()),
            ("WARREN_SESSION_ID", member.session.to_string().into()),
        ];
        McpServer {
            name: NAME.to_owned(),
            command: PROGRAM.to_string_lossy().into_owned(),
            args: vec!["team".to_owned(), "mcp".to_owned()],
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// Forgets the token of a session that has ended.
    pub(crate) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn secret(&self, member: Member) -> Secret {
        let mut all = self.lock();
        if let Some(given) = all.get(&member.session).filter(|given| given.member == member) {
            return given.secret.clone();
        }
        let secret = new_token(&format!("{PREFIX}{}_", member.session.uuid().simple()));
        let token = Token::new(&secret);
        all.insert(member.session, MemberToken { member, secret: secret.clone(), token });
        secret
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, MemberToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::TeamId;

    use super::*;

    fn member(number: u128) -> Member {
        Member { team: TeamId::from_random(1), session: SessionId::from_random(number) }
    }

    fn variable(server: &McpServer, name: &str) -> String {
        let found = server.env.iter().find(|(one, _)| one == name);
        found.unwrap().1.expose().to_owned()
    }

    #[test]
    fn a_token_speaks_for_its_member_until_that_is_gone() {
        let tokens = MemberTokens::default();
        let (ann, bob) = (tokens.mcp(None, member(1)), tokens.mcp(None, member(2)));
        let (ann, bob) = (variable(&ann, "WARREN_TOKEN"), variable(&bob, "WARREN_TOKEN"));
        assert_ne!(ann, bob);
        assert_eq!(tokens.member(&ann), Some(member(1)));
        assert_eq!(tokens.member(&bob), Some(member(2)));
        assert_eq!(variable(&tokens.mcp(None, member(1)), "WARREN_TOKEN"), ann);
        tokens.forget(member(1).session);
        assert_eq!(tokens.member(&ann), None);
        assert_eq!(tokens.member(&bob), Some(member(2)));
        assert_ne!(variable(&tokens.mcp(None, member(1)), "WARREN_TOKEN"), ann);
    }

    #[test]
    fn an_unknown_token_speaks_for_nobody() {
        let tokens = MemberTokens::default();
        let token = variable(&tokens.mcp(None, member(1)), "WARREN_TOKEN");
        let shorter = &token[..token.len() - 1];
        for wrong in ["", "wt_", "wt__", shorter, &token[3..], &format!("{token}0")] {
            assert_eq!(tokens.member(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_mcp_server_is_this_program_with_all_it_needs_in_its_environment() {
        let gateway = Gateway { url: "http://127.0.0.1:4711".to_owned() };
        let server = MemberTokens::default().mcp(Some(gateway), member(7));
        assert!(std::path::Path::new(&server.command).is_absolute(), "{}", server.command);
        assert_eq!(server.args, ["team", "mcp"]);
        assert_eq!(variable(&server, "WARREN_SERVER"), "http://127.0.0.1:4711");
        assert_eq!(variable(&server, "WARREN_TEAM"), member(7).team.to_string());
        assert_eq!(variable(&server, "WARREN_SESSION_ID"), member(7).session.to_string());
    }
}
