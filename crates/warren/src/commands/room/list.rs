//! `warren room list`.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use client::{ClientError, Warren, room::RoomSummary};
use daemon::ConfigFile;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::hosts::Hosts;
use crate::commands::{
    note, say, say_json,
    table::{plain, table},
};

/// List rooms: all of a server on this machine; of others those that are public or made with your key
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room list\n  \
    warren room list --all-servers --json")]
pub(crate) struct List {
    /// By what to sort
    #[arg(long, value_enum, default_value_t = Sort::Created)]
    sort: Sort,
    /// Reverse the order
    #[arg(long)]
    reverse: bool,
    /// Ask also the servers on which this machine has rooms, and those of the local network
    #[arg(long)]
    all_servers: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hosts: Hosts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Name,
    Created,
    Participants,
}

/// A room with its server's URL.
type RoomOnServer = (String, RoomSummary);

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let servers = self.hosts.servers(file, self.all_servers).await?;
        let mut rooms = rooms(&servers).await?;
        sort(&mut rooms, self.sort, self.reverse);
        if self.json {
            let rooms = rooms.iter().map(as_json).collect::<Result<Vec<_>, _>>()?;
            return Ok(say_json(&json!({"rooms": rooms}))?);
        }
        if rooms.is_empty() {
            return Ok(say("There are no rooms here. Make one: warren room create --name NAME")?);
        }
        Ok(say(&readable(&rooms, servers.len() > 1))?)
    }
}

/// The rooms of all servers that answer. An error if none does.
async fn rooms(servers: &[Warren]) -> anyhow::Result<Vec<RoomOnServer>> {
    let questions = servers
        .iter()
        .cloned()
        .map(|warren| tokio::spawn(async move { (warren.url(), warren.rooms().await) }));
    let questions: Vec<_> = questions.collect();
    let (mut rooms, mut failed) = (Vec::new(), Vec::new());
    for answer in questions {
        match answer.await? {
            (url, Ok(of_server)) => {
                rooms.extend(of_server.into_iter().map(|room| (url.clone(), room)));
            }
            (_, Err(error)) => failed.push(error),
        }
    }
    if failed.len() == servers.len() {
        return Err(all_failed(failed));
    }
    failed.iter().for_each(|error| note(&format!("warning: {error}")));
    Ok(rooms)
}

fn all_failed(failed: Vec<ClientError>) -> anyhow::Error {
    let words: Vec<String> = failed.iter().skip(1).map(ToString::to_string).collect();
    let first = failed.into_iter().next().map(anyhow::Error::from);
    let first = first.unwrap_or_else(|| anyhow!("no server was asked"));
    if words.is_empty() { first } else { first.context(words.join("; ")) }
}

fn sort(rooms: &mut [RoomOnServer], by: Sort, reverse: bool) {
    match by {
        Sort::Name => rooms.sort_by_key(|(_, room)| room.room.name.to_lowercase()),
        Sort::Created => rooms.sort_by_key(|(_, room)| room.room.created_at),
        Sort::Participants => {
            rooms.sort_by_key(|(_, room)| std::cmp::Reverse(room.participant_count));
        }
    }
    if reverse {
        rooms.reverse();
    }
}

fn as_json((server, room): &RoomOnServer) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(room)?;
    value["server"] = json!(server);
    Ok(value)
}

fn readable(rooms: &[RoomOnServer], with_server: bool) -> String {
    let mut header = vec!["code", "short", "name", "access", "made"];
    if with_server {
        header.push("server");
    }
    header.push("participants");
    let rows: Vec<Vec<String>> = rooms.iter().map(|room| row(room, with_server)).collect();
    table(&header, &rows, 1)
}

fn row((server, summary): &RoomOnServer, with_server: bool) -> Vec<String> {
    let room = &summary.room;
    let (code, short) = match &room.spoken_code {
        Some(spoken) => (spoken.as_str(), room.code.as_str()),
        None => (room.code.as_str(), ""),
    };
    let access = match (room.public, room.password_protected) {
        (true, true) => "public, password",
        (true, false) => "public",
        (false, true) => "password",
        (false, false) => "code",
    };
    let mut row = vec![
        plain(code),
        plain(short),
        plain(&room.name),
        access.to_owned(),
        time(room.created_at),
    ];
    if with_server {
        row.push(plain(server));
    }
    row.push(summary.participant_count.to_string());
    row
}

/// An instant in milliseconds since 1970, to the minute.
pub(super) fn time(ms: u64) -> String {
    let instant = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    instant.map_or("-".to_owned(), |instant| instant.strftime("%Y-%m-%d %H:%MZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str, created: u64, participants: u32) -> RoomOnServer {
        let json = json!({"id": name, "code": "ABC123", "spokenCode": "swift-eagle-42", "name": name,
            "hostId": "h", "createdAt": created, "participantCount": participants});
        ("http://a".to_owned(), serde_json::from_value(json).unwrap())
    }

    #[test]
    fn rooms_are_sorted() {
        let names = |by, reverse| {
            let mut rooms = [room("b", 1, 0), room("A", 3, 5), room("c", 2, 7)];
            sort(&mut rooms, by, reverse);
            rooms.map(|(_, room)| room.room.name).concat()
        };
        assert_eq!(names(Sort::Name, false), "Abc");
        assert_eq!(names(Sort::Created, false), "bcA");
        assert_eq!(names(Sort::Participants, false), "cAb");
        assert_eq!(names(Sort::Participants, true), "bAc");
    }

    #[test]
    fn a_row_shows_both_codes_and_the_time() {
        let shown = readable(&[room("n\u{1b}", 1_700_000_000_000, 3)], true);
        for part in ["swift-eagle-42", "ABC123", "n\u{fffd}", "2023-11-14 22:13Z", "http://a", " 3"]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!readable(&[room("n", 1, 1)], false).contains("SERVER"));
    }
}
