//! Do the crates keep to the layers of ARCHITECTURE.md?

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    table::{self, Row},
    workspace::Workspace,
};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let table = table::parse(&workspace.read("ARCHITECTURE.md")?)?;
    let graph = Graph::from_metadata(&workspace.metadata()?)?;
    let wrong = violations(&table, &graph);
    if !wrong.is_empty() {
        bail!("the layers of ARCHITECTURE.md are not kept:\n  {}", wrong.join("\n  "));
    }
    println!("layers: {} crates keep to the table", graph.edges.len());
    Ok(())
}

/// The edges between crates, by normal and build dependencies.
struct Graph {
    /// The workspace's crates and their dependencies among each other.
    edges: BTreeMap<String, BTreeSet<String>>,
    /// The workspace's crates from which tokio is reachable, however far down.
    reach_tokio: BTreeSet<String>,
}

fn violations(table: &BTreeMap<String, Row>, graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, uses) in &graph.edges {
        let Some(row) = table.get(name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        let forbidden = uses.difference(&row.may_use);
        wrong.extend(forbidden.map(|used| format!("{name} must not use {used}")));
        if row.pure && graph.reach_tokio.contains(name) {
            wrong.push(format!("{name} is pure, but tokio is reachable from it"));
        }
    }
    wrong
}

impl Graph {
    fn from_metadata(metadata: &Value) -> Result<Self> {
        let resolved = Resolved::from_metadata(metadata)?;
        let members = texts(&metadata["workspace_members"]);
        let names: BTreeMap<_, _> =
            members.iter().map(|id| (*id, resolved.name(id).to_owned())).collect();
        let uses = |id: &&str| {
            let used = resolved.dependencies(id).iter().filter_map(|used| names.get(used));
            (names[id].clone(), used.cloned().collect())
        };
        let reach_tokio = members.iter().filter(|id| resolved.reaches(id, "tokio"));
        Ok(Self {
            edges: members.iter().map(uses).collect(),
            reach_tokio: reach_tokio.map(|id| names[id].clone()).collect(),
        })
    }
}

/// The graph of all packages, as cargo resolved it.
struct Resolved<'a> {
    names: BTreeMap<&'a str, &'a str>,
    dependencies: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Resolved<'a> {
    fn from_metadata(metadata: &'a Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("no packages in the metadata")?;
        let nodes = metadata["resolve"]["nodes"].as_array().context("no nodes in the metadata")?;
        let name = |package: &'a Value| Some((package["id"].as_str()?, package["name"].as_str()?));
        let node = |node: &'a Value| Some((node["id"].as_str()?, linked(node)));
        Ok(Self {
            names: packages.iter().filter_map(name).collect(),
            dependencies: nodes.iter().filter_map(node).collect(),
        })
    }

    fn name(&self, id: &str) -> &'a str {
        self.names.get(id).copied().unwrap_or_default()
    }

    fn dependencies(&self, id: &str) -> &[&'a str] {
        self.dependencies.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    fn reaches(&self, from: &str, name: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.dependencies(from).to_vec();
        while let Some(id) = open.pop() {
            if self.name(id) == name {
                return true;
            }
            if seen.insert(id) {
                open.extend(self.dependencies(id));
            }
        }
        false
    }
}

/// The packages that a node links or builds with; those of its tests are its own affair.
fn linked(node: &Value) -> Vec<&str> {
    let is_linked = |dependency: &&Value| {
        let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"] != "dev")
    };
    let dependencies = node["deps"].as_array().into_iter().flatten().filter(is_linked);
    dependencies.filter_map(|dependency| dependency["pkg"].as_str()).collect()
}

fn texts(array: &Value) -> Vec<&str> {
    array.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        if let Err(error) = run(&Workspace::here()) {
            panic!("{error:?}");
        }
    }

    fn dependency(package: &str, kind: &Value) -> Value {
        json!({ "pkg": package, "dep_kinds": [{ "kind": kind }] })
    }

    /// A workspace of `base`, `pure` and `shell`, with the given dependencies of `pure`.
    fn metadata(pure_uses: &[(&str, Value)]) -> Value {
        let names = ["base", "pure", "shell", "between", "tokio"];
        let packages = names.map(|name| json!({ "id": name, "name": name }));
        let of_pure: Vec<_> = pure_uses.iter().map(|(used, kind)| dependency(used, kind)).collect();
        json!({
            "workspace_members": ["base", "pure", "shell"],
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "base", "deps": [] },
                { "id": "pure", "deps": of_pure },
                { "id": "shell", "deps": [dependency("tokio", &Value::Null)] },
                { "id": "between", "deps": [dependency("tokio", &json!("build"))] },
                { "id": "tokio", "deps": [] },
            ]},
        })
    }

    fn wrong(pure_uses: &[(&str, Value)]) -> Vec<String> {
        let row = |pure, may_use: &[&str]| Row {
            pure,
            may_use: may_use.iter().map(|name| (*name).to_owned()).collect(),
        };
        let table = [("base", row(true, &[])), ("pure", row(true, &["base"]))];
        let mut table: BTreeMap<_, _> =
            table.into_iter().map(|(name, row)| (name.to_owned(), row)).collect();
        table.insert("shell".to_owned(), row(false, &["base", "pure"]));
        table.insert("planned".to_owned(), row(false, &["shell"]));
        violations(&table, &Graph::from_metadata(&metadata(pure_uses)).unwrap())
    }

    #[test]
    fn an_edge_of_the_table_passes_and_a_planned_crate_may_be_absent() {
        assert!(wrong(&[("base", Value::Null)]).is_empty());
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_named() {
        let wrong = wrong(&[("shell", json!("build"))]);
        assert_eq!(wrong[0], "pure must not use shell");
    }

    #[test]
    fn edges_of_tests_are_free() {
        assert!(wrong(&[("shell", json!("dev")), ("between", json!("dev"))]).is_empty());
    }

    #[test]
    fn tokio_is_found_however_far_down() {
        let expected = ["pure is pure, but tokio is reachable from it"];
        assert_eq!(wrong(&[("between", Value::Null)]), expected);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let graph = Graph::from_metadata(&metadata(&[])).unwrap();
        let wrong = violations(&BTreeMap::new(), &graph);
        assert_eq!(wrong.len(), 3);
        assert_eq!(wrong[0], "base is not in the table");
    }
}
