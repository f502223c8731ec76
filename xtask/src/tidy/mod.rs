//! The rules of the house that no compiler knows.

mod architecture;
mod fuzz_targets;
mod manifests;
mod metrics;
mod names;
mod pages;
mod settings;
mod sources;
mod words;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// Checks everything and names all that is out of order.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut findings = sources::check(workspace)?;
    findings.extend(manifests::check(workspace)?);
    findings.extend(fuzz_targets::check(workspace)?);
    findings.extend(pages::check(workspace)?);
    findings.extend(settings::check(workspace)?);
    findings.extend(metrics::check(workspace)?);
    findings.extend(words::check(workspace)?);
    findings.extend(architecture::check(workspace)?);
    findings.extend(names::check(workspace)?);
    if !findings.is_empty() {
        bail!("the house is not tidy:\n  {}", findings.join("\n  "));
    }
    println!("tidy: nothing to do");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        if let Err(error) = run(&Workspace::here()) {
            panic!("{error:?}");
        }
    }
}
