//! The allowed cost of a request in instructions and allocations: counted under callgrind and compared with a
//! committed number.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::{command, soak, workspace::Workspace};

/// The committed numbers.
const FILE: &str = "benches/budget.toml";

/// Where what callgrind wrote is kept.
const KEPT: &str = "target/budget";

/// How much more than its number a count may be, as a share.
const GROWTH: f64 = 0.10;

/// The part, the work, the measure, and the words for it.
type Count = (&'static str, &'static str, &'static str, &'static str);

const COUNTS: [Count; 8] = [
    ("server", "plain", "instructions", "server: instructions of a plain request"),
    ("worker", "plain", "instructions", "worker: instructions of a plain request"),
    ("server", "chunk", "instructions", "server: instructions of a streamed chunk"),
    ("worker", "chunk", "instructions", "worker: instructions of a streamed chunk"),
    ("server", "plain", "allocations", "server: allocations of a plain request"),
    ("worker", "plain", "allocations", "worker: allocations of a plain request"),
    ("server", "chunk", "allocations", "server: allocations of a streamed chunk"),
    ("worker", "chunk", "allocations", "worker: allocations of a streamed chunk"),
];

/// The target to count.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The warren to count; without it, one is built with --release
    #[arg(long, value_name = "PATH", requires = "benches")]
    warren: Option<PathBuf>,
    /// The benchmark suite's program, which does the counting; without it, it is built, too
    #[arg(long, value_name = "PATH", requires = "warren")]
    benches: Option<PathBuf>,
    /// Put what was counted into benches/budget.toml instead of comparing
    #[arg(long)]
    write: bool,
}

/// Counts, prints a table, and fails when a count is over its number by more than a tenth.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let (warren, benches) = match (&arguments.warren, &arguments.benches) {
        (Some(warren), Some(benches)) => (warren.clone(), benches.clone()),
        _ => build(workspace)?,
    };
    let kept = workspace.root().join(KEPT);
    let counted = count(&benches, &warren, &kept)?;
    if arguments.write {
        std::fs::write(workspace.root().join(FILE), text(&counted)?)?;
    }
    let committed = toml::from_str(&workspace.read(FILE)?).context(FILE)?;
    let rows = rows(&counted, &committed)?;
    print!("{}", table(&rows));
    println!("Other threads, whose work depends on time: {}", elsewhere(&counted));
    println!("What callgrind wrote of each phase is in {KEPT}.");
    let over = rows.iter().filter(|row| row.is_over()).count();
    ensure!(
        over == 0,
        "{over} count(s) over the budget by more than {:.0} %; whoever has a reason raises {FILE} in the same commit",
        GROWTH * 100.0
    );
    Ok(())
}

fn build(workspace: &Workspace) -> Result<(PathBuf, PathBuf)> {
    soak::build(workspace, &["--package", "benches", "--bin", "benches"])?;
    let warren = workspace.binary()?;
    let benches = warren.with_file_name("benches");
    Ok((warren, benches))
}

fn count(benches: &Path, warren: &Path, kept: &Path) -> Result<Value> {
    let mut count = Command::new(benches);
    count.arg("count").arg(warren).arg(kept);
    Ok(serde_json::from_str(&command::output(count)?)?)
}

struct Row {
    words: &'static str,
    counted: f64,
    committed: f64,
}

impl Row {
    fn is_over(&self) -> bool {
        self.counted > self.committed * (1.0 + GROWTH)
    }
}

fn rows(counted: &Value, committed: &toml::Table) -> Result<Vec<Row>> {
    let row = |&(part, work, measure, words): &Count| -> Result<Row> {
        let number = committed.get(part).and_then(|at| at.get(work)?.get(measure)).and_then(float);
        let counted = counted[part][work][measure].as_f64();
        Ok(Row {
            words,
            counted: counted.with_context(|| format!("{words}: not counted"))?,
            committed: number.with_context(|| format!("{FILE} has no number: {words}"))?,
        })
    };
    COUNTS.iter().map(row).collect()
}

fn float(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:44}{:>10}{:>10}{:>9}\n", "", "counted", "budget", "");
    for row in rows {
        let more = (row.counted / row.committed - 1.0) * 100.0;
        let sign = if row.is_over() { "  OVER" } else { "" };
        let (counted, committed) = (shown(row.counted), shown(row.committed));
        text += &format!("{:44}{counted:>10}{committed:>10}{more:>+7.1} %{sign}\n", row.words);
    }
    text
}

/// Instructions are whole; of an allocation, a tenth matters.
fn shown(number: f64) -> String {
    if number < 1000.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn elsewhere(counted: &Value) -> String {
    let of = |part: &str| counted[part]["plain"]["elsewhere"].as_f64().unwrap_or(0.0);
    format!(
        "{:.0} instructions of a plain request in the server, {:.0} in the worker.",
        of("server"),
        of("worker")
    )
}

/// The file that these counts make.
fn text(counted: &Value) -> Result<String> {
    let mut text = String::from(
        "# What a plain request and a streamed chunk cost a server and a worker. `cargo xtask budget` counts, and fails when a count\n\
         # is more than a tenth over its number here. Whoever has a reason raises the number in the same commit\n\
         # (`cargo xtask budget --write`).\n",
    );
    for part in ["server", "worker"] {
        text += &format!("\n[{part}]\n");
        for work in ["plain", "chunk"] {
            let number = |measure: &str| {
                let number = counted[part][work][measure].as_f64();
                number.with_context(|| format!("{part}: no {measure} of {work}"))
            };
            text += &format!(
                "{work} = {{ instructions = {:.0}, allocations = {:.1} }}\n",
                number("instructions")?,
                number("allocations")?
            );
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(instructions: f64) -> Value {
        let work = json!({"instructions": instructions, "allocations": 60.5, "elsewhere": 7.0});
        let part = json!({"plain": work, "chunk": work});
        json!({"server": part, "worker": part})
    }

    fn committed(instructions: f64) -> toml::Table {
        toml::from_str(&text(&counted(instructions)).unwrap()).unwrap()
    }

    #[test]
    fn a_tenth_more_is_borne_and_what_is_over_it_is_said() {
        let over = |now| {
            let rows = rows(&counted(now), &committed(1000.0)).unwrap();
            (rows.iter().filter(|row| row.is_over()).count(), table(&rows))
        };
        assert_eq!(over(1099.0).0, 0);
        let (count, table) = over(1101.0);
        assert_eq!(count, 4, "instructions of both, plain and chunk");
        assert_eq!(table.matches("OVER").count(), 4, "{table}");
        assert!(table.contains("+10.1 %"), "{table}");
    }

    #[test]
    fn a_number_that_is_missing_is_named() {
        let mut none = committed(1000.0);
        none.remove("worker");
        let error = rows(&counted(1.0), &none).err().unwrap().to_string();
        assert!(error.contains("worker: instructions of a plain request"), "{error}");
    }

    #[test]
    fn the_committed_file_has_every_number() {
        let file = toml::from_str(&Workspace::here().read(FILE).unwrap()).unwrap();
        assert_eq!(rows(&counted(1.0), &file).unwrap().len(), COUNTS.len());
    }
}
