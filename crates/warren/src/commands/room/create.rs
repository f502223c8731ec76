//! `warren room create`.

use std::{
    io::{IsTerminal, Read},
    path::{Path, PathBuf},
};

use ::tui::text::middle;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use client::{
    Warren,
    admin::time,
    room::{
        RuntimeConfig,
        plane::{CreateRoom, CreatedRoom},
    },
};
use daemon::ConfigFile;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    hosts::{Hosts, LocatedRoom, codes},
    invitation::Invitation,
    join::{Lender, Part},
    room_name::Password,
    tokens::{HostedRoom, RoomTokens},
};
use crate::{
    commands::{note, qr, say, say_json, table::plain},
    exit::usage,
};

/// The columns of a usual terminal.
const COLUMNS: usize = 80;

/// The rows of a QR code above the words beside it.
const ABOVE: usize = 4;

/// The longest file of defaults that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Make a room, and show how friends join
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room create --name Tuesday\n  \
    warren room create --lend --model qwen3-8b")]
pub(crate) struct Create {
    /// Its name [default: after this machine]
    #[arg(long)]
    name: Option<String>,
    /// How long it may be unused before it ends, such as 2h or 7d [default: the server's setting]
    #[arg(long, value_name = "SPAN", hide_short_help = true)]
    expires: Option<String>,
    /// List it for everybody who can reach the server
    #[arg(long, hide_short_help = true)]
    public: bool,
    /// How its participants answer by default, as JSON: `temperature`, `max_tokens`,
    /// `instructions` and so on; - is standard input
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    defaults: Option<PathBuf>,
    /// Lend a model of this machine to it
    ///
    /// Until you stop it, as `warren room join` does.
    #[arg(long)]
    lend: bool,
    #[command(flatten)]
    lender: Lender,
    /// Draw the QR code even where standard output is no terminal
    #[arg(long, hide_short_help = true)]
    qr: bool,
    /// Print JSON
    ///
    /// With the token by which the room is closed and changed.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Create {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        self.check().map_err(usage)?;
        let request = self.request().map_err(usage)?;
        let warren = self.hosts.only(file).await?;
        // Before the room is made: it would be empty if there were nothing to lend.
        let chosen = if self.lend { Some(self.lender.choose().await?) } else { None };
        let created = warren.create_room(&request).await?;
        let stored = keep(&warren, &created).await;
        let invitation = Invitation::new(&warren, &created.room).await;
        if self.json {
            say_json(&as_json(&warren, &created, &invitation)?)?;
        } else {
            self.show(&warren, &created, &invitation)?;
            tell_token(&created, stored);
        }
        let Some(chosen) = chosen else { return Ok(()) };
        let part = Part::with_password(self.password.get());
        let found = LocatedRoom { warren, summary: created.room };
        self.lender.lend(chosen, &found, part, file).await?;
        let code = plain(found.code());
        note(&format!("The room goes on without you. To lend again: warren room join {code}"));
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.lender.names_something() && !self.lend {
            bail!("--backend, --model, --demo and --nickname are for --lend: add it");
        }
        self.lender.check()
    }

    fn show(
        &self,
        warren: &Warren,
        created: &CreatedRoom,
        invitation: &Invitation,
    ) -> anyhow::Result<()> {
        // A telephone cannot reach this machine's own address.
        let draws = self.qr || (std::io::stdout().is_terminal() && !invitation.only_here);
        let code = draws.then(|| qr::code(&invitation.short_url)).flatten();
        say(&match code {
            Some(code) => beside(&code, created, invitation),
            None => readable(created, invitation),
        })?;
        if invitation.only_here {
            note(&warning(warren));
        }
        Ok(())
    }

    fn request(&self) -> anyhow::Result<CreateRoom> {
        let name =
            self.name.clone().unwrap_or_else(|| format!("{}'s room", super::join::host_name()));
        Ok(CreateRoom {
            name,
            password: self.password.get().map(|password| password.expose().to_owned()),
            defaults: self.defaults.as_deref().map(defaults).transpose()?,
            public: self.public,
            expires_secs: self.expires.as_deref().map(seconds).transpose()?,
        })
    }
}

/// The seconds of a span.
fn seconds(span: &str) -> anyhow::Result<u64> {
    let now = Timestamp::now();
    let until = time::future(span, now).map_err(|error| anyhow!("--expires: {error}"))?;
    let seconds = u64::try_from(until.duration_since(now).as_secs()).ok();
    seconds.filter(|seconds| *seconds > 0).context("--expires: that is in the past")
}

/// The defaults in a file.
pub(super) fn defaults(path: &Path) -> anyhow::Result<RuntimeConfig> {
    let shown = path.display();
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LONGEST).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text))
    };
    read.with_context(|| format!("the defaults in {shown} cannot be read"))?;
    let defaults: RuntimeConfig = serde_json::from_str(&text).with_context(|| {
        format!("{shown} holds no defaults: expected JSON such as {{\"temperature\": 0.2}}")
    })?;
    defaults.check().map_err(|error| anyhow!("{shown}: {error}"))?;
    Ok(defaults)
}

/// Stores the host's token, and returns the file.
async fn keep(warren: &Warren, created: &CreatedRoom) -> anyhow::Result<Option<PathBuf>> {
    let Some(host_token) = created.host_token.clone() else { return Ok(None) };
    let tokens = RoomTokens::new()?;
    let (server, room) = (warren.url(), created.room.room.id.clone());
    tokens.keep_room(HostedRoom { server, room, codes: codes(&created.room), host_token }).await?;
    Ok(Some(tokens.path().to_owned()))
}

/// Shows where the host's token is stored, or the token itself if that failed.
fn tell_token(created: &CreatedRoom, stored: anyhow::Result<Option<PathBuf>>) {
    match (stored, &created.host_token) {
        (Ok(Some(path)), _) => note(&format!(
            "Who closes and changes it: whoever has the token that is kept in {}.",
            path.display()
        )),
        (Err(error), Some(token)) => note(&format!(
            "The token that closes and changes the room could not be kept: {error:#}\n\
             Keep it yourself, for --host-token: {token}"
        )),
        _ => {}
    }
}

fn as_json(
    warren: &Warren,
    created: &CreatedRoom,
    invitation: &Invitation,
) -> anyhow::Result<Value> {
    let mut all = serde_json::to_value(created)?;
    all["server"] = json!(warren.url());
    all["invitation"] = json!(invitation.line);
    all["joinUrl"] = json!(invitation.url);
    all["baseUrl"] = json!(invitation.base_url());
    all["onlyThisMachine"] = json!(invitation.only_here);
    Ok(all)
}

fn readable(created: &CreatedRoom, invitation: &Invitation) -> String {
    let room = &created.room.room;
    let spoken = room.spoken_code.as_ref();
    let short = spoken.map(|_| format!("short code  {}\n", plain(&room.code))).unwrap_or_default();
    let guarded = if room.password_protected { "needed" } else { "none" };
    let (line, base) = (&invitation.line, invitation.base_url());
    let (key, header) = if room.password_protected {
        ("the room's password is the API key", "    -H 'authorization: Bearer PASSWORD' \\\n")
    } else {
        ("any API key", "")
    };
    format!(
        "name        {}\n\
         code        {}\n\
         {short}\
         password    {guarded}\n\n\
         Friends lend a model with\n\n  {line}\n\n\
         and ask with\n\n  warren room ask {} \"What is Warren?\"\n\n\
         Any OpenAI client works: base URL {base}, {key}.\n\n  \
           curl -N {base}/chat/completions -H 'content-type: application/json' \\\n{header}    \
             -d '{{\"model\":\"*\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"What is Warren?\"}}]}}'\n",
        plain(&room.name),
        plain(spoken.unwrap_or(&room.code)),
        invitation.url,
    )
}

/// The invitation with the QR code and the most important lines beside it. It fits on a terminal of 80 by 30.
fn beside(code: &str, created: &CreatedRoom, invitation: &Invitation) -> String {
    let room = &created.room.room;
    let spoken = room.spoken_code.as_ref();
    let short = spoken.map_or_else(String::new, |_| plain(&room.code));
    let (guarded, key) = match room.password_protected {
        true => ("needed", "the room's password is the API key"),
        false => ("none", "any API key"),
    };
    let facts = [
        middle(&plain(&room.name), 28),
        String::new(),
        format!("code        {}", plain(spoken.unwrap_or(&room.code))),
        if short.is_empty() { short } else { format!("short code  {short}") },
        format!("password    {guarded}"),
        String::new(),
        "Any OpenAI client works:".to_owned(),
        key.to_owned(),
    ];
    let fact = |row: usize| row.checked_sub(ABOVE).and_then(|at| facts.get(at));
    let lines = code.lines().enumerate().map(|(row, line)| match fact(row) {
        Some(fact) => format!("{line} {fact}").trim_end().to_owned(),
        None => line.trim_end().to_owned(),
    });
    let picture = lines.collect::<Vec<_>>().join("\n");
    let named = [spoken, Some(&room.code)].into_iter().flatten();
    let mut all = named.map(|code| command_lines(code, &invitation.server));
    // The short code is used if the other is too long for the terminal.
    let fits = |lines: &String| lines.lines().all(|line| line.len() <= COLUMNS);
    let lines = all.clone().find(fits).or_else(|| all.next_back()).unwrap_or_default();
    format!("{picture}\n{lines}")
}

/// The command lines for the code.
fn command_lines(code: &str, server: &str) -> String {
    let code = plain(code);
    format!(
        "Friends lend a model with\n  warren room join {code} --server {server}\n\
         and ask with\n  warren room ask {code} --server {server} Hello\n\
         Base URL for OpenAI clients\n  {server}/rooms/{code}/v1"
    )
}

fn warning(warren: &Warren) -> String {
    format!(
        "Only this machine can reach {}, as far as it can tell.\n\
         For friends on other machines, start the server with\n\
         `warren up --listen 0.0.0.0:9178`. If it listens so already, this machine has no\n\
         network address: give friends the one that they reach it by in its place.",
        warren.url()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_seconds() {
        assert_eq!(seconds("2h").unwrap(), 7_200);
        assert_eq!(seconds("7d").unwrap(), 604_800);
        for bad in ["0s", "soon", "2001-01-01", ""] {
            assert!(seconds(bad).unwrap_err().to_string().contains("--expires"), "{bad}");
        }
    }

    #[test]
    fn the_qr_code_and_the_command_lines_fit_on_80_by_30() {
        let room = json!({"id": "r", "code": "ABC123", "spokenCode": "resourceful-hippopotamus-99",
            "name": "n".repeat(64), "hostId": "h", "createdAt": 1, "participantCount": 0});
        let created: CreatedRoom =
            serde_json::from_value(json!({"room": room, "hostId": "h"})).unwrap();
        let invitation = Invitation::at("http://192.168.100.100:9178", &created.room, true);
        let code = qr::code(&invitation.short_url).unwrap();
        let shown = beside(&code, &created, &invitation);
        // The note on the host's token takes two rows, and the prompt one.
        assert!(shown.lines().count() <= 27, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.contains("warren room join ABC123 --server"), "{shown}");
        assert!(shown.contains("code        resourceful-hippopotamus-99"), "{shown}");
        assert!(shown.contains("short code  ABC123") && shown.contains("/v1"), "{shown}");
    }

    #[test]
    fn defaults_are_read_and_checked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("defaults.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            defaults(&path)
        };
        let good = read(r#"{"temperature": 0.2, "instructions": " Be brief. "}"#).unwrap();
        assert_eq!(good.instructions.as_deref(), Some("Be brief."));
        for bad in ["", "[]", r#"{"temperature": "hot"}"#, r#"{"temperature": 9}"#] {
            let error = format!("{:#}", read(bad).unwrap_err());
            assert!(error.contains("defaults.json"), "{error}");
        }
    }
}
