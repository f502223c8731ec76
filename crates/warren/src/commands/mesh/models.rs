//! `warren mesh models`.

use clap::Args;
use client::admin::mesh::MeshModel;
use daemon::ConfigFile;

use super::short;
use crate::commands::{
    table::{plain, show_list, table},
    target::RunningServer,
    words::bytes,
};

/// The most peers that are named; the others are counted.
const NAMED: usize = 3;

/// List the models that peers serve and pass on, and those that are here
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh models")]
pub(crate) struct Models {
    /// Print JSON, with whole ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Models {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let models = self.server.warren(&file.serve)?.mesh_models().await?;
        let empty = "No model is served or passed on, here or by a peer";
        show_list(&models, self.json, "models", empty, readable)
    }
}

fn readable(models: &[MeshModel]) -> String {
    let header = ["model", "served by", "files at", "size"];
    let rows: Vec<Vec<String>> = models.iter().map(row).collect();
    table(&header, &rows, 1)
}

fn row(model: &MeshModel) -> Vec<String> {
    vec![
        plain(&model.id),
        who(model.served_here, &model.served_by),
        who(model.files_here, &model.offered_by),
        model.bytes.map_or("-".to_owned(), bytes),
    ]
}

fn who(here: bool, peers: &[String]) -> String {
    let here = here.then(|| "here".to_owned());
    let named = peers.iter().take(NAMED).map(|id| short(id));
    let mut all: Vec<String> = here.into_iter().chain(named).collect();
    if let Some(more @ 1..) = peers.len().checked_sub(NAMED) {
        all.push(format!("{more} more"));
    }
    plain(&all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_who_has_the_model() {
        let peers =
            |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}").repeat(32)).collect();
        let model = MeshModel {
            id: "org/model".to_owned(),
            bytes: Some(3 << 30),
            served_by: peers(&[1]),
            offered_by: peers(&[1, 2, 3, 4]),
            served_here: true,
            files_here: false,
        };
        let table = readable(&[model]);
        let row = "org/model  here, 01010101  01010101, 02020202, 03030303, 1 more  3.0 GiB";
        assert_eq!(table.lines().nth(1), Some(row), "{table}");
    }
}
