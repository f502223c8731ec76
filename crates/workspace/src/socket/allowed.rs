//! Who may ask for what.

use protocol::workspace::{ClientMessage, SessionId, TeamId};

use super::Identity;
use crate::{refusal::Refusal, teams::Member};

/// Whether this client may ask for this.
pub(super) fn allowed(me: &Identity, message: &ClientMessage) -> Result<(), Refusal> {
    let needed = message.role();
    if me.role < needed {
        return Err(Refusal::Role { what: message.name(), needed });
    }
    me.member.map_or(Ok(()), |member| as_member(member, message))
}

/// A member of a team uses its own team, as itself.
fn as_member(member: Member, message: &ClientMessage) -> Result<(), Refusal> {
    match about(message) {
        Some((team, _)) if team.is_some_and(|team| team != member.team) => {
            Err(Refusal::invalid("a member of a team may use its own team only"))
        }
        Some((_, speaker)) if speaker.is_some_and(|speaker| speaker != member.session) => {
            Err(Refusal::invalid("a member of a team may speak for itself only"))
        }
        Some(_) => Ok(()),
        None => {
            let name = message.name();
            Err(Refusal::Invalid(format!("a member of a team may not use {name}")))
        }
    }
}

/// Which team a message is about, and who speaks in it; `None` where members have no part in it.
fn about(message: &ClientMessage) -> Option<(Option<TeamId>, Option<SessionId>)> {
    Some(match message {
        ClientMessage::Auth(_) | ClientMessage::Keepalive => (None, None),
        ClientMessage::GetTeam(of) => (Some(of.team_id), None),
        ClientMessage::SpawnWorker(spawn) => (Some(spawn.team_id), None),
        ClientMessage::Handoff(handoff) => (Some(handoff.team_id), None),
        ClientMessage::Assign(assign) => (Some(assign.team_id), None),
        ClientMessage::TeamWait(wait) => (Some(wait.team_id), None),
        ClientMessage::RelayTeamMessage(relay) => {
            (Some(relay.team_id), Some(relay.from_session_id))
        }
        ClientMessage::GetTeamInbox(inbox) => (Some(inbox.team_id), Some(inbox.session_id)),
        ClientMessage::ReportResult(report) => {
            (Some(report.team_id), Some(report.worker_session_id))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{Role, decode_request};

    use super::*;

    const ID: &str = "00000000-0000-4000-8000-000000000001";
    const OTHER: &str = "00000000-0000-4000-8000-000000000002";

    fn read(json: &str) -> ClientMessage {
        let json =
            json.replace(":ID", &format!(":\"{ID}\"")).replace(":OTHER", &format!(":\"{OTHER}\""));
        decode_request(&json).unwrap()
    }

    fn with(role: Role) -> Identity {
        Identity { who: "key".to_owned(), role, member: None }
    }

    fn member() -> Identity {
        let member = Member { team: ID.parse().unwrap(), session: ID.parse().unwrap() };
        Identity { member: Some(member), ..with(Role::Write) }
    }

    /// One message of each kind that there is a rule for.
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
    fn each_role_may_what_those_before_it_may_and_is_told_what_it_lacks() {
        for (json, needed) in TABLE {
            for role in Role::ALL {
                let answer = allowed(&with(role), &read(json));
                assert_eq!(answer.is_ok(), role >= needed, "{role}: {json}");
                if let Err(refusal) = answer {
                    let words = refusal.to_string();
                    assert!(words.contains(&format!("workspace:{needed}")), "{words}");
                }
            }
        }
    }

    #[test]
    fn a_member_of_a_team_uses_its_own_team_as_itself_and_nothing_else() {
        let may = [
            r#"{"type":"keepalive"}"#,
            r#"{"type":"get_team","team_id":ID}"#,
            r#"{"type":"relay_team_message","team_id":ID,"from_session_id":ID,"payload":"p"}"#,
            r#"{"type":"report_result","team_id":ID,"worker_session_id":ID,"success":true,"result":""}"#,
            r#"{"type":"get_team_inbox","team_id":ID,"session_id":ID}"#,
            r#"{"type":"assign","team_id":ID,"prompt":"p"}"#,
        ];
        for json in may {
            assert!(allowed(&member(), &read(json)).is_ok(), "{json}");
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
            assert!(allowed(&member(), &read(json)).is_err(), "{json}");
        }
    }
}
