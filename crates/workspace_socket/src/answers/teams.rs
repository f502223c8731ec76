//! The list of teams. All other requests about teams are the desk's.

use protocol::workspace::{ServerMessage, client::TeamList};

use super::asker::{Answer, Asker};
use crate::others;

pub(crate) async fn list(asker: &Asker) -> Answer {
    let listed = asker.desk().list().await?;
    let (Some(ServerMessage::TeamList(list)), Some(cluster)) =
        (&listed, asker.services.membership.cluster())
    else {
        return Ok(listed);
    };
    let mut teams = list.teams.clone();
    teams.extend(others::teams(&cluster));
    Ok(Some(ServerMessage::TeamList(TeamList { teams })))
}
