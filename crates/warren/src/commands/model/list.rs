//! `warren model list`.

use clap::Args;
use daemon::ConfigFile;
use jiff::Timestamp;
use tui::text::middle;

use super::placed::{PlacedModel, placed};
use crate::commands::{
    run_client,
    table::{plain, show_list, table},
    target::RunningServer,
    words::{age, bytes},
};

/// The most columns of a name. Most names stay whole, since people give them to other commands.
const NAME: usize = 48;

/// List which model is on which machine, how large it is, and whether it is in memory
///
/// `warren models` lists what can be asked, whatever machine has it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren model list\n  \
    warren model list --json | jq -r '.models[] | select(.load == \"loaded\").id'")]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl List {
    pub(super) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        let models = placed(&run_client(async { Ok(warren.workers().await?) })?);
        let now = Timestamp::now().as_millisecond().try_into().unwrap_or(0);
        let empty = "No machine has a model: start a model server, and `warren worker` beside it";
        show_list(&models, self.json, "models", empty, |models| readable(models, now))
    }
}

fn readable(models: &[PlacedModel], now_ms: u64) -> String {
    let header = ["model", "machine", "state", "used", "size", "memory", "context"];
    let rows: Vec<Vec<String>> = models.iter().map(|model| row(model, now_ms)).collect();
    table(&header, &rows, 4)
}

fn row(model: &PlacedModel, now_ms: u64) -> Vec<String> {
    let facts = &model.facts;
    let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let used = facts.last_used_ms.map(|used| age(now_ms.saturating_sub(used) / 1_000));
    vec![
        middle(&plain(&model.id), NAME),
        plain(&model.machine),
        shown(facts.load.map(|load| load.to_string())),
        shown(used),
        shown(facts.file_bytes.map(bytes)),
        shown(facts.memory_bytes.map(bytes)),
        shown(facts.context_tokens.map(|tokens| tokens.to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use base::LoadState;
    use client::admin::status::ModelFacts;

    use super::*;

    fn model(id: &str, machine: &str, facts: ModelFacts) -> PlacedModel {
        let (id, machine) = (id.to_owned(), machine.to_owned());
        PlacedModel { id, machine, worker_id: "w-1".to_owned(), loads_models: true, facts }
    }

    #[test]
    fn each_model_is_listed_at_each_machine_with_what_is_known() {
        let facts = ModelFacts {
            load: Some(LoadState::Loaded),
            last_used_ms: Some(10_000),
            file_bytes: Some(5 << 30),
            memory_bytes: Some(6 << 30),
            context_tokens: Some(40_960),
            ..ModelFacts::default()
        };
        let all = [
            model("qwen3-8b", "gpu-box", facts),
            model("qwen3-8b", "lap\u{1b}top", ModelFacts::default()),
        ];
        let table = readable(&all, 190_000);
        let expected = "\
MODEL     MACHINE  STATE   USED     SIZE   MEMORY  CONTEXT
qwen3-8b  gpu-box  loaded    3m  5.0 GiB  6.0 GiB    40960
qwen3-8b  lap\u{fffd}top  -          -        -        -        -";
        assert_eq!(table, expected, "{table}");
    }
}
