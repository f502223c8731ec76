//! The parts of the program: a bill of materials in CycloneDX, of the crates in the binary and of the packages in its
//! web page.
//!
//! It is made of `cargo metadata`, `Cargo.lock` and `web/package-lock.json` alone, so the same sources always make the same file.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;

/// The package that is handed out.
const ROOT: &str = "warren";

/// The lock file of the web page's packages.
const WEB: &str = "web/package-lock.json";

/// The bill of materials, as text.
pub(super) fn make(workspace: &Workspace) -> Result<String> {
    let metadata = workspace.metadata()?;
    let lock: toml::Table = workspace.read("Cargo.lock")?.parse()?;
    let web: Value = serde_json::from_str(&workspace.read(WEB)?)?;
    let crates = Crates::of(&metadata)?;
    let sums = sums(&lock);
    let mut components = Vec::new();
    for id in crates.reached.iter().filter(|id| **id != crates.root) {
        components.push(crates.component(id, &sums)?);
    }
    components.extend(packages(&web)?);
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": crates.application()? },
        "components": components,
        "dependencies": crates.dependencies()?,
    });
    let text = with_number(bom)?;
    Ok(format!("{}\n", serde_json::to_string_pretty(&text)?))
}

/// Adds a serial number that follows from the content.
fn with_number(mut bom: Value) -> Result<Value> {
    let digest = Sha256::digest(serde_json::to_vec(&bom)?);
    let mut bytes: [u8; 16] = digest[..16].try_into()?;
    // A UUID of version 8: its bits are ours.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    bom["serialNumber"] = json!(format!("urn:uuid:{}", parts.join("-")));
    Ok(bom)
}

/// The crates that end in the binary, or in what builds it.
struct Crates<'a> {
    root: &'a str,
    packages: BTreeMap<&'a str, &'a Value>,
    /// The packages that each needs, tests left out.
    needs: BTreeMap<&'a str, Vec<&'a str>>,
    reached: BTreeSet<&'a str>,
}

impl<'a> Crates<'a> {
    fn of(metadata: &'a Value) -> Result<Self> {
        let id = |value: &'a Value| value["id"].as_str().context("a package without an id");
        let mut packages = BTreeMap::new();
        for package in metadata["packages"].as_array().context("no packages")? {
            packages.insert(id(package)?, package);
        }
        let mut needs = BTreeMap::new();
        for node in metadata["resolve"]["nodes"].as_array().context("no graph")? {
            let all = node["deps"].as_array().into_iter().flatten();
            let used = all.filter(|needed| is_used(needed)).filter_map(|it| it["pkg"].as_str());
            needs.insert(id(node)?, used.collect());
        }
        let is_root = |package: &&&Value| package["name"] == ROOT;
        let root = packages.values().find(is_root).context("no package of the program")?;
        let root = id(root)?;
        let mut crates = Self { root, packages, needs, reached: BTreeSet::new() };
        crates.reach(root);
        Ok(crates)
    }

    fn reach(&mut self, id: &'a str) {
        if self.reached.insert(id) {
            let needed = self.needs.get(id).cloned().unwrap_or_default();
            needed.into_iter().for_each(|id| self.reach(id));
        }
    }

    fn package(&self, id: &str) -> Result<&'a Value> {
        self.packages.get(id).copied().with_context(|| format!("no package {id}"))
    }

    fn application(&self) -> Result<Value> {
        let package = self.package(self.root)?;
        let mut component = described("application", package, &reference(package)?);
        component["purl"] = json!(reference(package)?);
        Ok(component)
    }

    fn component(&self, id: &str, sums: &BTreeMap<(String, String), String>) -> Result<Value> {
        let package = self.package(id)?;
        let reference = reference(package)?;
        let mut component = described("library", package, &reference);
        component["purl"] = json!(reference);
        if let Some(sum) = sums.get(&(text(package, "name")?, text(package, "version")?)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        if let Some(repository) = package["repository"].as_str() {
            component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        Ok(component)
    }

    fn dependencies(&self) -> Result<Vec<Value>> {
        let of = |id: &&str| -> Result<Value> {
            let needed = self.needs.get(id).into_iter().flatten();
            let needed = needed.map(|id| reference(self.package(id)?));
            let needed: BTreeSet<String> = needed.collect::<Result<_>>()?;
            Ok(json!({ "ref": reference(self.package(id)?)?, "dependsOn": needed }))
        };
        let mut all = self.reached.iter().map(of).collect::<Result<Vec<Value>>>()?;
        all.sort_by_key(|of| of["ref"].to_string());
        Ok(all)
    }
}

/// Whether an edge of the graph is for more than tests.
fn is_used(needed: &Value) -> bool {
    let kinds = needed["dep_kinds"].as_array();
    kinds.into_iter().flatten().any(|kind| kind["kind"] != "dev")
}

/// A crate as package URLs name it. One of this project has no registry.
fn reference(package: &Value) -> Result<String> {
    Ok(format!("pkg:cargo/{}@{}", text(package, "name")?, text(package, "version")?))
}

fn described(kind: &str, package: &Value, reference: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
    });
    if let Some(licence) = package["license"].as_str() {
        // An older form of the same.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    component
}

/// The sums of `Cargo.lock`, by name and version.
fn sums(lock: &toml::Table) -> BTreeMap<(String, String), String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let sum = |package: &toml::Value| {
        let of = |name: &str| Some(package.get(name)?.as_str()?.to_owned());
        Some(((of("name")?, of("version")?), of("checksum")?))
    };
    packages.filter_map(sum).collect()
}

/// The packages that end in the web page: those that its build alone needs are left out.
fn packages(web: &Value) -> Result<Vec<Value>> {
    let all = web["packages"].as_object().context("no packages of the web page")?;
    let shown = all.iter().filter(|(path, it)| !path.is_empty() && it["dev"] != true);
    shown.map(|(path, package)| of_web(path, package)).collect()
}

fn of_web(path: &str, package: &Value) -> Result<Value> {
    let name = path.rsplit("node_modules/").next().unwrap_or(path);
    let version = text(package, "version")?;
    let reference = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
    let named = json!({ "name": name, "version": version, "license": package["license"] });
    let mut component = described("library", &named, &reference);
    component["purl"] = json!(reference);
    let integrity = text(package, "integrity")?;
    let sum = integrity.strip_prefix("sha512-").context("a sum that is no SHA-512")?;
    let content = hex::encode(BASE64_STANDARD.decode(sum)?);
    component["hashes"] = json!([{ "alg": "SHA-512", "content": content }]);
    Ok(component)
}

fn text(of: &Value, name: &str) -> Result<String> {
    let text = of[name].as_str().with_context(|| format!("a package without its {name}"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bom() -> Value {
        serde_json::from_str(&make(&Workspace::here()).unwrap()).unwrap()
    }

    fn named<'a>(bom: &'a Value, name: &str) -> Option<&'a Value> {
        bom["components"].as_array().unwrap().iter().find(|component| component["name"] == name)
    }

    #[test]
    fn it_has_what_is_in_the_program_with_licences_and_sums() {
        let bom = bom();
        assert_eq!(bom["metadata"]["component"]["name"], "warren");
        for (name, kind, length) in
            [("tokio", "SHA-256", 64), ("rusqlite", "SHA-256", 64), ("preact", "SHA-512", 128)]
        {
            let component = named(&bom, name).expect(name);
            assert_eq!(component["hashes"][0]["alg"], kind);
            assert_eq!(component["hashes"][0]["content"].as_str().unwrap().len(), length);
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        }
        assert!(named(&bom, "daemon").is_some(), "the house's own crates");
        for name in ["proptest", "testkit", "xtask", "vite", "typescript"] {
            assert!(named(&bom, name).is_none(), "{name} is for tests and builds alone");
        }
        let scoped = named(&bom, "@xterm/xterm").unwrap()["purl"].as_str().unwrap();
        assert!(scoped.starts_with("pkg:npm/%40xterm/xterm@"), "{scoped}");
    }

    #[test]
    fn every_reference_leads_to_a_component_and_all_are_different() {
        let bom = bom();
        let components = bom["components"].as_array().unwrap();
        let all = components.iter().chain([&bom["metadata"]["component"]]);
        let known: BTreeSet<&str> = all.map(|it| it["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(known.len(), components.len() + 1);
        for dependency in bom["dependencies"].as_array().unwrap() {
            assert!(known.contains(dependency["ref"].as_str().unwrap()));
            for needed in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(needed.as_str().unwrap()), "{needed}");
            }
        }
    }

    #[test]
    fn the_same_sources_make_the_same_file() {
        let workspace = Workspace::here();
        let first = make(&workspace).unwrap();
        assert_eq!(make(&workspace).unwrap(), first);
        let number = bom()["serialNumber"].as_str().unwrap().to_owned();
        assert_eq!((number.len(), &number[..9], &number[23..24]), (45, "urn:uuid:", "8"));
    }

    #[test]
    fn older_forms_of_licences_are_put_right() {
        let package = json!({ "name": "a", "version": "1", "license": "MIT/Apache-2.0" });
        let component = described("library", &package, "r");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
