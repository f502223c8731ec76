//! The types by name, as the sources declare them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use syn::{Item, ItemEnum, ItemStruct, ItemType};

use crate::{attributes::derives_serde, messages::Messages};

/// The declarations in the sources that serde writes or reads.
pub(crate) struct Sources(BTreeMap<String, Vec<(PathBuf, Declared)>>);

/// A declaration.
pub(crate) enum Declared {
    Struct(ItemStruct),
    Enum(ItemEnum),
    Alias(ItemType),
    Messages(Messages),
}

impl Sources {
    /// Reads these files and folders of the crate.
    pub(crate) fn read(places: &[&str]) -> Self {
        let mut sources = Self(BTreeMap::new());
        for whole in places {
            let (place, only) = whole.split_once('#').unzip();
            let place = place.unwrap_or(whole);
            let is_wanted = |name: &str| only.is_none_or(|only| only == name);
            for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(place)) {
                let text = fs::read_to_string(&file).unwrap();
                let items = syn::parse_file(&text).unwrap().items;
                let all = items.into_iter().filter_map(declared);
                for (name, it) in all.filter(|(name, _)| is_wanted(name)) {
                    sources.0.entry(name).or_default().push((file.clone(), it));
                }
            }
        }
        sources
    }

    /// The type of this name, and its file.
    pub(crate) fn find(&self, name: &str) -> &(PathBuf, Declared) {
        match self.0.get(name).map(Vec::as_slice) {
            Some([one]) => one,
            Some(_) => panic!("{name} is declared more than once: the page needs two names"),
            None => panic!("{name} is in no source: add its file, or say in `known` what it is"),
        }
    }
}

fn declared(item: Item) -> Option<(String, Declared)> {
    match item {
        Item::Struct(it) if derives_serde(&it.attrs) => {
            Some((it.ident.to_string(), Declared::Struct(it)))
        }
        Item::Enum(it) if derives_serde(&it.attrs) => {
            Some((it.ident.to_string(), Declared::Enum(it)))
        }
        Item::Type(it) => Some((it.ident.to_string(), Declared::Alias(it))),
        Item::Macro(it) if it.mac.path.is_ident("messages") => {
            let messages: Messages = it.mac.parse_body().unwrap();
            Some((messages.name.to_string(), Declared::Messages(messages)))
        }
        _ => None,
    }
}

/// A file, or all files of a folder, in the order of their names.
fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let mut all: Vec<PathBuf> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    all.sort();
    all
}
