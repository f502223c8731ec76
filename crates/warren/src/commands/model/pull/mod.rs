//! `warren model pull`: fetches a model from a hub into this machine's store.
//!
//! - `site`: the hub, and the account there
//! - `choice`: chooses a model of a repository
//! - `peers`: fetches it from peers of the mesh, where they have it
//! - `steps`: shows the progress

mod choice;
mod peers;
mod site;
mod steps;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use daemon::{ConfigFile, data::MODELS, signals};
use model_hub::{Hub, HubError, HubFile, Listing, Offer, Variant, Wanted, hub::MAIN};
use models::{
    ArrivalError, ModelId, TreeCache,
    arrival::{self, Download, RemoteFile},
};
use serde::Serialize;
use tokio::task::spawn_blocking;

use self::{choice::Choosing, site::Site, steps::Steps};
use crate::{
    commands::{
        note, say, say_json, say_json_line, table::plain, target::RunningServer, words::bytes,
    },
    exit,
};

/// Fetch a model from Hugging Face or another hub, and from peers of the mesh first if they have it. A pull that was
/// interrupted goes on, and each file's hash is checked
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren model pull ggml-org/Qwen3-0.6B-GGUF\n  \
    warren model pull unsloth/Qwen3-8B-GGUF:Q4_K_M")]
pub(crate) struct Pull {
    /// The repository, and which quantization of it [default: one that fits]
    #[arg(value_name = "ORG/REPO[:QUANT]")]
    model: String,
    /// Take what is proposed without asking
    #[arg(long, short)]
    yes: bool,
    /// Only list the quantizations, their size, and whether they fit
    #[arg(long, conflicts_with = "yes")]
    list: bool,
    /// A branch, tag or commit of the repository
    #[arg(long, value_name = "REVISION", default_value = MAIN, hide_short_help = true)]
    revision: String,
    /// Replace a model of this name that is here and has other content
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Do not ask peers
    #[arg(long, hide_short_help = true)]
    only_hub: bool,
    /// Print each step as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    site: Site,
    #[command(flatten)]
    server: RunningServer,
}

/// A model that was chosen.
struct Chosen {
    id: ModelId,
    listing: Listing,
    /// The files to fetch, in the order of the names that they get here.
    files: Vec<HubFile>,
    remote: Vec<RemoteFile>,
}

/// The result that is printed in the end.
#[derive(Serialize)]
struct FinishedPull {
    state: &'static str,
    model: String,
    /// `here` when nothing was fetched, `peers`, or the hub's host.
    from: String,
    bytes: u64,
    /// The directory of the model.
    path: PathBuf,
    /// The model's main file, which a program is given.
    file: PathBuf,
}

impl Pull {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let stop = signals::shutdown()?;
        tokio::select! {
            () = stop.cancelled() => bail!(
                "stopped; what has arrived stays, and the same command goes on with it"
            ),
            done = self.pull(file) => done,
        }
    }

    async fn pull(&self, file: &ConfigFile) -> anyhow::Result<()> {
        let wanted = Wanted::parse(&self.model).map_err(|error| exit::usage(error.into()))?;
        let store = self.server.lookup(&file.serve).directory()?.join(MODELS);
        let store = std::path::absolute(&store).unwrap_or(store);
        let hub = self.site.hub()?;
        let listing = match hub.list(&wanted.repo, &self.revision).await {
            Ok(listing) => listing,
            Err(error @ HubError::Unreachable { .. }) => {
                return self.without_hub(&wanted, file, error).await;
            }
            Err(error) => return Err(failed(error)),
        };
        let offer = Offer::of(&listing);
        if offer.variants.is_empty() {
            return Err(failed(HubError::NoModels { page: hub.page(&wanted.repo) }));
        }
        let is_open = self.list || (wanted.quantization.is_none() && offer.variants.len() > 1);
        let head = if is_open { choice::head(&hub, &listing, &offer).await } else { None };
        let choosing = Choosing::new(&offer, head).await;
        if self.list {
            return self.show(&wanted, &choosing);
        }
        let variant = choosing.choose(wanted.quantization.as_deref(), self.yes)?;
        let chosen = Chosen::new(&wanted, &offer, variant, listing.clone())?;
        self.bring(&hub, &store, chosen, file).await
    }

    /// Fetches the model from peers, or else from the hub.
    async fn bring(
        &self,
        hub: &Hub,
        store: &Path,
        chosen: Chosen,
        file: &ConfigFile,
    ) -> anyhow::Result<()> {
        if chosen.is_here(store, self.replace).await? {
            return self.tell(&chosen, store, "here".to_owned());
        }
        let mut replace = self.replace;
        if !self.only_hub && peers::pull(&self.server, file, &chosen.id, self.json).await? {
            match chosen.is_here(store, false).await {
                Ok(true) => return self.tell(&chosen, store, "peers".to_owned()),
                Ok(false) => {
                    note("the server that runs here keeps its models elsewhere: asking the hub");
                }
                Err(_) => {
                    note("what peers have under this name is not what the hub has: asking the hub");
                    replace = true;
                }
            }
        }
        self.fetch(hub, store, &chosen, replace).await?;
        self.tell(&chosen, store, hub.host())
    }

    async fn fetch(
        &self,
        hub: &Hub,
        store: &Path,
        chosen: &Chosen,
        replace: bool,
    ) -> anyhow::Result<()> {
        let (to, id, remote) = (store.to_owned(), chosen.id.clone(), chosen.remote.clone());
        let open = move || {
            std::fs::create_dir_all(&to)
                .with_context(|| format!("{} cannot be made", to.display()))?;
            Download::open(&to, &id, remote, &models::space::free).map_err(|error| match error {
                ArrivalError::NoSpace { path, needed, free } => no_room(&path, needed, free),
                other => other.into(),
            })
        };
        let download = spawn_blocking(open).await??;
        let mut steps = Steps::new(chosen.id.as_str(), hub.host(), self.json);
        let mut failure = None;
        let mut hear = |step: &model_hub::Progress| {
            if let Err(error) = steps.show(step) {
                failure.get_or_insert(error);
            }
        };
        let fetched =
            model_hub::fetch(hub, &chosen.listing, &chosen.files, download, &mut hear).await;
        steps.end();
        let download = fetched.map_err(failed)?;
        let store = store.to_owned();
        let finish = move || {
            let cache = TreeCache::open(&store).ok();
            download.finish(replace, cache.as_ref())
        };
        spawn_blocking(finish).await??;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Fetches from peers when the hub does not answer.
    async fn without_hub(
        &self,
        wanted: &Wanted,
        file: &ConfigFile,
        error: HubError,
    ) -> anyhow::Result<()> {
        let id = wanted.quantization.as_deref().and_then(|quantization| wanted.id(quantization));
        let Some(id) = id.filter(|_| !self.only_hub) else { return Err(failed(error)) };
        note(&format!("{error}: asking peers alone"));
        match peers::pull(&self.server, file, &id, self.json).await? {
            true if self.json => Ok(()),
            true => Ok(say(&format!(
                "{} came from peers; no hub has confirmed it",
                plain(id.as_str())
            ))?),
            false => Err(failed(error)),
        }
    }

    fn show(&self, wanted: &Wanted, choosing: &Choosing<'_>) -> anyhow::Result<()> {
        match self.json {
            true => Ok(say_json(&choosing.json(&wanted.repo))?),
            false => Ok(say(&choosing.table())?),
        }
    }

    fn tell(&self, chosen: &Chosen, store: &Path, from: String) -> anyhow::Result<()> {
        let path = chosen.id.below(store);
        let total = chosen.remote.iter().map(|file| file.size).sum();
        let main = chosen.remote.iter().find(|file| !file.name.as_str().contains("mmproj"));
        let file = main.map_or_else(|| path.clone(), |file| file.name.below(&path));
        let model = plain(chosen.id.as_str());
        if self.json {
            let model = chosen.id.to_string();
            let done = FinishedPull { state: "done", model, from, bytes: total, path, file };
            return Ok(say_json_line(&done)?);
        }
        let how = match from.as_str() {
            "here" => "is here already".to_owned(),
            from => format!("is here, {} from {from}", bytes(total)),
        };
        say(&format!("{model} {how}: {}", path.display()))?;
        note(&format!("`warren up --gguf '{}'` serves it", file.display()));
        Ok(())
    }
}

impl Chosen {
    fn new(
        wanted: &Wanted,
        offer: &Offer,
        variant: &Variant,
        listing: Listing,
    ) -> anyhow::Result<Self> {
        let id = wanted.id(&variant.quantization);
        let id = id.ok_or_else(|| anyhow!("{wanted} has a name that no model here can have"))?;
        let named = offer.files(variant).map_err(failed)?;
        let remote = named.iter().map(|(name, file)| RemoteFile {
            name: name.clone(),
            size: file.size,
            sum: file.sum.clone(),
        });
        let remote = remote.collect();
        Ok(Self { id, listing, files: named.into_iter().map(|(_, file)| file).collect(), remote })
    }

    /// Whether exactly these files are in the store.
    async fn is_here(&self, store: &Path, replace: bool) -> anyhow::Result<bool> {
        let (store, id, remote) = (store.to_owned(), self.id.clone(), self.remote.clone());
        match spawn_blocking(move || arrival::has(&store, &id, &remote)).await? {
            Err(ArrivalError::Exists { .. }) if replace => Ok(false),
            Err(error @ ArrivalError::Exists { .. }) => Err(anyhow!("{error}, with --replace")),
            has => Ok(has?),
        }
    }
}

/// The error that says how much space the disk lacks, for people.
fn no_room(path: &Path, needed: u64, free: u64) -> anyhow::Error {
    let (needed, free) = (bytes(needed), bytes(free));
    anyhow!(
        "{needed} are needed in {}, and {free} are free: make room, or choose a smaller quantization",
        path.display()
    )
}

/// The error with the exit code of its kind.
fn failed(error: HubError) -> anyhow::Error {
    use client::ClientError;
    let words = error.to_string();
    match error {
        HubError::Address { .. } | HubError::Token => exit::usage(error.into()),
        HubError::NoRepo { .. }
        | HubError::NoRevision { .. }
        | HubError::NoModels { .. }
        | HubError::NoQuantization { .. } => ClientError::NotFound { words }.into(),
        HubError::Unreachable { host, reason } => {
            ClientError::Unreachable { url: host, reason }.into()
        }
        _ => error.into(),
    }
}
