//! The files that the paths in a file lead to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::{
    Attribute, Item, ItemMod, ItemUse, Path, UseTree, Visibility,
    visit::{self, Visit},
};

use super::graph::Uses;

/// A module's path from the crate's root, whose path is empty.
type Module = Vec<String>;

/// Which file of a crate uses which. `files` holds their texts by their paths below `src/`.
pub(super) fn uses(files: &BTreeMap<String, String>) -> Result<Uses> {
    let mut modules = BTreeMap::new();
    for (file, text) in files {
        let parsed = syn::parse_file(text).with_context(|| format!("{file} cannot be parsed"))?;
        if !is_test(&parsed.attrs) {
            let mut seen = FilePaths { module: module(file), ..FilePaths::default() };
            seen.visit_file(&parsed);
            modules.insert(seen.module.clone(), (file.clone(), seen));
        }
    }
    let tests: BTreeSet<Module> =
        modules.values().flat_map(|(_, seen)| seen.tests.iter().cloned()).collect();
    modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let crates = Crate { modules: &modules };
    let used = |(file, seen): &(String, FilePaths)| (file.clone(), crates.used(file, seen));
    Ok(modules.values().map(used).collect())
}

/// The module that a file is: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module(file: &str) -> Module {
    let name = file.strip_suffix(".rs").unwrap_or(file);
    let name = name.strip_suffix("/mod").unwrap_or(name);
    let root = ["lib", "main", "mod"].contains(&name);
    if root { Module::new() } else { name.split('/').map(str::to_owned).collect() }
}

#[derive(Default)]
struct FilePaths {
    module: Module,
    /// Paths that it uses, as they are written.
    paths: BTreeSet<Vec<String>>,
    /// Names that it hands on, with the paths that they come from; `*` for all of a module.
    exports: Vec<(String, Vec<String>)>,
    /// Its child modules that are there for tests only.
    tests: Vec<Module>,
}

impl<'ast> Visit<'ast> for FilePaths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // What stands in an inline module counts as its file's.
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            if matches!(item.vis, Visibility::Inherited) {
                self.paths.insert(path);
            } else {
                self.exports.push((name, path));
            }
        }
    }

    /// `pub(in crate::a)` says who may use an item. It uses nothing itself.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.paths.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

impl FilePaths {
    fn visit_file(&mut self, file: &syn::File) {
        for item in &file.items {
            if let Item::Mod(child) = item
                && child.content.is_none()
                && is_test(&child.attrs)
            {
                let mut module = self.module.clone();
                module.push(child.ident.to_string());
                self.tests.push(module);
            }
        }
        visit::visit_file(self, file);
    }
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    let mut leaf = |name: String, last: &str| {
        let mut path = before.clone();
        if last != "self" {
            path.push(last.to_owned());
        }
        leaves.push((name, path));
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) => leaf(name.ident.to_string(), &name.ident.to_string()),
        UseTree::Rename(rename) => leaf(rename.rename.to_string(), &rename.ident.to_string()),
        UseTree::Glob(_) => leaf("*".to_owned(), "*"),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before, leaves);
            }
        }
    }
}

struct Crate<'a> {
    modules: &'a BTreeMap<Module, (String, FilePaths)>,
}

impl Crate<'_> {
    fn used(&self, file: &str, seen: &FilePaths) -> BTreeSet<String> {
        let found = seen.paths.iter().filter_map(|path| self.file_of(&seen.module, path, 0));
        found.filter(|used| used != file).collect()
    }

    /// The file that defines what a path in a module names; none for other crates' paths.
    fn file_of(&self, from: &Module, path: &[String], depth: usize) -> Option<String> {
        let (mut module, mut rest) = self.start(from, path)?;
        while let Some((first, after)) = rest.split_first() {
            let mut child = module.clone();
            child.push(first.clone());
            if !self.modules.contains_key(&child) {
                break;
            }
            (module, rest) = (child, after);
        }
        let (file, seen) = self.modules.get(&module)?;
        // A name may be handed on from file to file; a loop of globs must end, too.
        if let Some(name) = rest.first().filter(|_| depth < 8) {
            for (export, source) in &seen.exports {
                let mut source = source.clone();
                if export == "*" {
                    source.pop();
                    source.push(name.clone());
                } else if export == name {
                    source.extend_from_slice(&rest[1..]);
                } else {
                    continue;
                }
                if let Some(found) = self.file_of(&module, &source, depth + 1) {
                    return Some(found);
                }
            }
        }
        Some(file.clone())
    }

    /// The module in which a path begins, and what follows.
    fn start<'p>(&self, from: &Module, path: &'p [String]) -> Option<(Module, &'p [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Module::new(), rest)),
            "self" => Some((from.clone(), rest)),
            "super" => {
                let (mut module, mut rest) = (from.clone(), path);
                while rest.first().is_some_and(|part| part == "super") {
                    module.pop()?;
                    rest = &rest[1..];
                }
                Some((module, rest))
            }
            _ => {
                let mut child = from.clone();
                child.push(first.clone());
                self.modules.contains_key(&child).then(|| (from.clone(), path))
            }
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses_of(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        uses(&files.iter().map(own).collect()).unwrap()[file].iter().cloned().collect()
    }

    #[test]
    fn paths_are_followed_to_the_file_that_defines_the_name() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::Thing; pub use b::*;"),
            ("a.rs", "use crate::b::Other; pub struct Thing; mod inner { use super::super::b; }"),
            ("b/mod.rs", "mod deep; pub use deep::Deep; pub struct Other; fn f() { deep::run(); }"),
            ("b/deep.rs", "use super::Other; use crate::{Thing, Deep as D, Unknown}; use std::fs;"),
        ];
        assert!(uses_of(&files, "lib.rs").is_empty());
        assert_eq!(uses_of(&files, "a.rs"), ["b/mod.rs"]);
        assert_eq!(uses_of(&files, "b/mod.rs"), ["b/deep.rs"]);
        assert_eq!(uses_of(&files, "b/deep.rs"), ["a.rs", "b/mod.rs"]);
    }

    #[test]
    fn a_visibility_is_no_use() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;"),
            ("a/b.rs", "pub(in crate::a) fn f() {}"),
        ];
        assert!(uses_of(&files, "a/b.rs").is_empty());
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] mod tests;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::tests::Kit; }"),
            ("tests.rs", "use crate::a;"),
        ];
        assert!(uses_of(&files, "a.rs").is_empty());
    }
}
