//! Which requests a client may send.

use protocol::workspace::RequestKind;
use workspace::{Identity, Member, Refusal};

use crate::policy::{Policy, Subject};

/// Refuses a request that this client may not send.
pub(crate) fn allowed(me: &Identity, kind: RequestKind, policy: &Policy) -> Result<(), Refusal> {
    if me.role < policy.role {
        return Err(Refusal::Role { what: kind.name(), needed: policy.role });
    }
    me.member.map_or(Ok(()), |member| as_member(member, kind, policy.subject))
}

/// A member of a team may use its own team only, and only as itself.
fn as_member(member: Member, kind: RequestKind, subject: Subject) -> Result<(), Refusal> {
    let (team, speaker) = match subject {
        Subject::Connection => return Ok(()),
        Subject::Team(team) => (team, member.session),
        Subject::Member(team, speaker) => (team, speaker),
        Subject::Workspace => {
            let name = kind.name();
            return Err(Refusal::Invalid(format!("a member of a team may not use {name}")));
        }
    };
    if team != member.team {
        return Err(Refusal::invalid("a member of a team may use its own team only"));
    }
    if speaker != member.session {
        return Err(Refusal::invalid("a member of a team may speak for itself only"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{ClientMessage, Role, decode_request};

    use super::*;

    const ID: &str = "00000000-0000-4000-8000-000000000001";
    const OTHER: &str = "00000000-0000-4000-8000-000000000002";

    fn read(json: &str) -> ClientMessage {
        let json =
            json.replace(":ID", &format!(":\"{ID}\"")).replace(":OTHER", &format!(":\"{OTHER}\""));
        decode_request(&json).unwrap()
    }

    fn answer(me: &Identity, json: &str) -> Result<(), Refusal> {
        let message = read(json);
        allowed(me, message.kind(), &Policy::of(&message))
    }

    fn with(role: Role) -> Identity {
        Identity { who: "key".to_owned(), role, member: None }
    }

    fn member() -> Identity {
        let member = Member { team: ID.parse().unwrap(), session: ID.parse().unwrap() };
        Identity { member: Some(member), ..with(Role::Write) }
    }

    /// Requests, and the role that each needs.
    const TABLE: [(&str, Role); 12] = [
        (r#"{"type":"list_sessions"}"#, Role::Read),
        (r#"{"type":"attach","session_id":ID}"#, Role::Read),
        (r#"{"type":"git_status","project_id":ID}"#, Role::Read),
        (r#"{"type":"list_project_files","project_id":ID}"#, Role::Read),
        (r#"{"type":"send_input","session_id":ID,"input":"x"}"#, Role::Write),
        (r#"{"type":"new_session","working_dir":"/"}"#, Role::Write),
        (r#"{"type":"open_terminal","command":"sh","working_dir":"/"}"#, Role::Write),
        (r#"{"type":"kill_session","session_id":ID}"#, Role::Write),
        (r#"{"type":"new_session","working_dir":"/","run_as_user":"alice"}"#, Role::Admin),
        (r#"{"type":"list_directory","path":"/"}"#, Role::Admin),
        (r#"{"type":"adopt_session","pid":1}"#, Role::Admin),
        (r#"{"type":"create_project","name":"p","working_dir":"/"}"#, Role::Admin),
    ];

    #[test]
    fn a_refusal_names_the_scope_that_is_missing() {
        for (json, needed) in TABLE {
            for role in Role::ALL {
                let answer = answer(&with(role), json);
                assert_eq!(answer.is_ok(), role >= needed, "{role}: {json}");
                if let Err(refusal) = answer {
                    let words = refusal.to_string();
                    assert!(words.contains(&format!("workspace:{needed}")), "{words}");
                }
            }
        }
    }

    #[test]
    fn a_member_of_a_team_uses_only_its_own_team_as_itself() {
        let may = [
            r#"{"type":"keepalive"}"#,
            r#"{"type":"get_team","team_id":ID}"#,
            r#"{"type":"relay_team_message","team_id":ID,"from_session_id":ID,"payload":"p"}"#,
            r#"{"type":"report_result","team_id":ID,"worker_session_id":ID,"success":true,"result":""}"#,
            r#"{"type":"get_team_inbox","team_id":ID,"session_id":ID}"#,
            r#"{"type":"assign","team_id":ID,"prompt":"p"}"#,
        ];
        for json in may {
            assert!(answer(&member(), json).is_ok(), "{json}");
        }
        let may_not = [
            r#"{"type":"get_team","team_id":OTHER}"#,
            r#"{"type":"relay_team_message","team_id":OTHER,"from_session_id":ID,"payload":"p"}"#,
            r#"{"type":"relay_team_message","team_id":ID,"from_session_id":OTHER,"payload":"p"}"#,
            r#"{"type":"report_result","team_id":ID,"worker_session_id":OTHER,"success":true,"result":""}"#,
            r#"{"type":"get_team_inbox","team_id":ID,"session_id":OTHER}"#,
            r#"{"type":"delete_team","team_id":ID}"#,
            r#"{"type":"list_teams"}"#,
        ];
        let others = TABLE.iter().map(|(json, _)| *json);
        for json in others.chain(may_not) {
            assert!(answer(&member(), json).is_err(), "{json}");
        }
    }
}
