//! Every setting is documented, and everything documented is a setting: by their variables, which
//! each has exactly one of.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::workspace::Workspace;

/// How the name of every variable begins.
const PREFIX: &str = "WARREN_";
/// The page that lists them all, which a test of the binary keeps fresh.
const PAGE: &str = "docs/src/commands.md";

/// Names every variable that only the code or only the page knows.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut in_code = BTreeSet::new();
    for path in workspace.files(&["crates"], ".rs")? {
        if path.contains("/src/") {
            in_code.extend(settings(&workspace.read(&path)?));
        }
    }
    Ok(differences(&in_code, &variables(&workspace.read(PAGE)?)))
}

fn differences(in_code: &BTreeSet<String>, on_page: &BTreeSet<String>) -> Vec<String> {
    let unsaid = in_code.difference(on_page).map(|name| format!("{PAGE} does not list {name}"));
    let gone =
        on_page.difference(in_code).map(|name| format!("{PAGE} lists {name}, which is none"));
    unsaid.chain(gone).collect()
}

/// The variables in clap's attributes.
fn settings(code: &str) -> BTreeSet<String> {
    let told = code.split("env = \"").skip(1).filter_map(|rest| rest.split('"').next());
    told.filter(|name| name.starts_with(PREFIX)).map(str::to_owned).collect()
}

/// All variables that a text names.
fn variables(text: &str) -> BTreeSet<String> {
    let of_name = |letter: &char| letter.is_ascii_uppercase() || *letter == '_';
    let names = text.split(PREFIX).skip(1).map(|rest| rest.chars().take_while(of_name).collect());
    names.filter(|name: &String| !name.is_empty()).map(|name| format!("{PREFIX}{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_one_side_lacks_is_named() {
        let code = settings("#[arg(long, env = \"WARREN_A\")] #[arg(env = \"WARREN_B_C\")]");
        let page = variables("`WARREN_B_C`, `WARREN_D`; the prefix is `WARREN_`");
        let expected = [
            "docs/src/commands.md does not list WARREN_A",
            "docs/src/commands.md lists WARREN_D, which is none",
        ];
        assert_eq!(differences(&code, &page), expected);
        assert!(differences(&code, &code).is_empty());
    }
}
