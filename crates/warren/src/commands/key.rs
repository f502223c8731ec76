//! `warren key`.

use anyhow::anyhow;
use base::{Budget, KeyLimits, KeyScope, MoneyBudget, ResumeAnswers};
use clap::{Args, Subcommand};
use client::admin::{CreateKey, KeyJson, time};
use daemon::ConfigFile;

use super::{
    named::named,
    say, say_json,
    table::{plain, show_list, table},
    target::{AdminTarget, Target},
    worker_runtime,
};
use crate::exit::usage;

#[derive(Subcommand)]
pub(crate) enum Key {
    /// Make a key; it is shown once
    Create(Create),
    /// List all keys
    #[command(after_help = "Examples:\n  \
        warren key list")]
    List(Listing),
    /// Show one key
    #[command(after_help = "Examples:\n  \
        warren key show laptop")]
    Show(One),
    /// Give a key a new text, which is shown once; the old one no longer works
    #[command(after_help = "Examples:\n  \
        warren key rotate laptop")]
    Rotate(One),
    /// Revoke a key for good, and end its connections and requests
    #[command(after_help = "Examples:\n  \
        warren key remove laptop")]
    #[command(visible_aliases = ["rm", "revoke"])]
    Remove(One),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren key create --name laptop\n  \
    warren key create --name ci --model qwen3-8b --rpm 60 --expires 30d")]
pub(crate) struct Create {
    /// Its name
    #[arg(long)]
    name: String,
    /// What it is for: inference, worker, workspace:read, workspace:write, workspace:admin, peer,
    /// admin, metrics, rooms (repeatable)
    /// [default: inference]
    #[arg(long, value_name = "SCOPE,…", value_delimiter = ',')]
    scope: Vec<KeyScope>,
    /// The models it may be used for; llama* means all that begin so (repeatable) [default: all]
    #[arg(long, visible_alias = "model", value_name = "MODEL,…", value_delimiter = ',')]
    models: Vec<String>,
    /// Requests a minute [default: no limit]
    #[arg(long, value_name = "N")]
    rpm: Option<u32>,
    /// Tokens a minute [default: no limit]
    #[arg(long, value_name = "N", hide_short_help = true)]
    tpm: Option<u64>,
    /// Requests at the same time [default: no limit]
    #[arg(long, value_name = "N", hide_short_help = true)]
    concurrent: Option<u32>,
    /// Tokens a day or a month (UTC) [default: no limit]
    #[arg(long, value_name = "N/day|N/month", hide_short_help = true)]
    budget_tokens: Option<Budget>,
    /// Money a day or a month (UTC), such as 5.00USD/month [default: no limit]
    #[arg(long, value_name = "MONEY/day", hide_short_help = true)]
    budget: Option<MoneyBudget>,
    /// Let none of its requests go to a cloud
    #[arg(long, hide_short_help = true)]
    no_cloud: bool,
    /// What is done with its streamed answers whose worker is lost: off or same-model [default: what the server does]
    #[arg(long, value_name = "HOW", hide_short_help = true)]
    resume_answers: Option<ResumeAnswers>,
    /// The only room whose participants it reaches, by a code [default: it is for the server]
    #[arg(long, value_name = "CODE", hide_short_help = true)]
    room: Option<String>,
    /// When it expires: 30d, 12h, or a time such as 2027-01-31T00:00:00Z [default: never]
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    #[command(flatten)]
    output: Listing,
}

#[derive(Args)]
pub(crate) struct One {
    /// The key: its id, its name, or the beginning of its text that `warren key list` shows
    key: String,
    #[command(flatten)]
    output: Listing,
}

#[derive(Args)]
pub(crate) struct Listing {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl Key {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(async {
            match self {
                Self::Create(create) => create.run(file).await,
                Self::List(listing) => listing.run(file).await,
                Self::Show(one) => one.run(file, Act::Show).await,
                Self::Rotate(one) => one.run(file, Act::Rotate).await,
                Self::Remove(one) => one.run(file, Act::Revoke).await,
            }
        })
    }
}

impl Create {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let request = self.request().map_err(usage)?;
        let key = match self.output.target.choose_or_make(&file.serve)? {
            AdminTarget::Running(warren) => warren.create_key(&request).await?,
            AdminTarget::Offline(stopped) => stopped.create(request)?,
        };
        tell(&key, self.output.json)
    }

    fn request(&self) -> anyhow::Result<CreateKey> {
        let expires = self.expires.as_deref();
        let expires_at = expires.map(|when| time::future(when, jiff::Timestamp::now()));
        let expires_at = expires_at.transpose().map_err(|error| anyhow!("--expires: {error}"))?;
        Ok(CreateKey {
            name: self.name.clone(),
            scopes: Some(self.scope.clone()).filter(|scopes| !scopes.is_empty()),
            models: Some(self.models.clone()),
            limits: Some(KeyLimits {
                rpm: self.rpm,
                tpm: self.tpm,
                concurrent: self.concurrent,
                budget: self.budget_tokens,
                budget_money: self.budget,
                no_cloud: self.no_cloud,
                resume_answers: self.resume_answers,
            }),
            room: self.room.clone(),
            expires_at,
        })
    }
}

/// The act on one key.
#[derive(Clone, Copy)]
enum Act {
    Show,
    Rotate,
    Revoke,
}

impl One {
    async fn run(self, file: &ConfigFile, act: Act) -> anyhow::Result<()> {
        let chosen = self.output.target.choose(&file.serve)?;
        let keys = keys(&chosen).await?;
        let id = &named(&keys, &self.key)?.id;
        let key = match (chosen, act) {
            (_, Act::Show) => named(&keys, id)?.clone(),
            (AdminTarget::Running(warren), Act::Rotate) => warren.rotate_key(id).await?,
            (AdminTarget::Running(warren), Act::Revoke) => warren.revoke_key(id).await?,
            (AdminTarget::Offline(stopped), Act::Rotate) => stopped.rotate(id)?,
            (AdminTarget::Offline(stopped), Act::Revoke) => stopped.revoke(id)?,
        };
        tell(&key, self.output.json)
    }
}

impl Listing {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let keys = keys(&self.target.choose(&file.serve)?).await?;
        let empty = "There are no keys yet. Make one: warren key create --name NAME";
        show_list(&keys, self.json, "keys", empty, readable)
    }
}

async fn keys(chosen: &AdminTarget) -> anyhow::Result<Vec<KeyJson>> {
    Ok(match chosen {
        AdminTarget::Running(warren) => warren.keys().await?,
        AdminTarget::Offline(stopped) => stopped.keys(),
    })
}

fn readable(keys: &[KeyJson]) -> String {
    let header =
        ["id", "name", "prefix", "state", "scopes", "models", "limits", "last used", "room"];
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    table(&header, &rows, 0)
}

fn row(key: &KeyJson) -> Vec<String> {
    let [.., scopes, models, limits, room, state, last_used] = fields(key).map(|(_, value)| value);
    vec![
        key.id.clone(),
        plain(&key.name),
        key.prefix.clone(),
        state,
        scopes,
        models,
        limits,
        last_used,
        room,
    ]
}

/// Shows one key: its text, if it has just been made, on a line of its own.
fn tell(key: &KeyJson, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(say_json(key)?);
    }
    for (name, value) in fields(key) {
        say(&format!("{name:<11}{value}"))?;
    }
    if let Some(text) = &key.key {
        say(&format!(
            "\n{text}\n\nThis is the key. It is shown now and never again: keep it somewhere safe.\n\
             Clients send it as `Authorization: Bearer KEY`, `x-api-key: KEY` or `x-goog-api-key: KEY`."
        ))?;
    }
    Ok(())
}

fn fields(key: &KeyJson) -> [(&'static str, String); 10] {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let models =
        if key.models.is_empty() { "all".to_owned() } else { plain(&key.models.join(",")) };
    let last_used = key.last_used_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
    [
        ("id", key.id.clone()),
        ("name", plain(&key.name)),
        ("prefix", key.prefix.clone()),
        ("created", key.created_at.to_string()),
        ("scopes", scopes.join(",")),
        ("models", models),
        ("limits", limits(&key.limits)),
        ("room", key.room.as_deref().map_or_else(|| "none".to_owned(), plain)),
        ("state", state(key)),
        ("last used", last_used),
    ]
}

fn limits(limits: &KeyLimits) -> String {
    let all = [
        limits.rpm.map(|rpm| format!("{rpm} rpm")),
        limits.tpm.map(|tpm| format!("{tpm} tpm")),
        limits.concurrent.map(|concurrent| format!("{concurrent} at once")),
        limits.budget.map(|budget| format!("{budget} tokens")),
        limits.budget_money.map(|budget| budget.to_string()),
        limits.no_cloud.then(|| "no cloud".to_owned()),
        limits.resume_answers.map(|how| format!("resume answers: {how}")),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn state(key: &KeyJson) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if at <= jiff::Timestamp::now() => format!("expired {at}"),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "valid".to_owned(),
    }
}
