//! Which of the models here a peer means.

/// The model that is meant by a name: the one that has it, or has it in other letters' case, or whose
/// last part it is, or that is its last part. In doubt the first in the list.
///
/// Names in the mesh are often those of files or of repositories: `org/Qwen3-8B` and `qwen3-8b` are
/// the same to those who ask.
pub(super) fn meant<'a>(asked: &str, models: &'a [String]) -> Option<&'a str> {
    let by =
        |same: &dyn Fn(&str) -> bool| models.iter().map(String::as_str).find(|model| same(model));
    let last = last_part(asked);
    by(&|model| model == asked)
        .or_else(|| by(&|model| model.eq_ignore_ascii_case(asked)))
        .or_else(|| by(&|model| last_part(model).eq_ignore_ascii_case(last)))
}

fn last_part(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant_and_no_part_of_one() {
        let models = ["Org/M-8b", "m-8B", "other/m-8b", "org/x"].map(str::to_owned);
        let table = [
            ("m-8B", Some("m-8B")),
            ("org/m-8b", Some("Org/M-8b")),
            ("M-8B", Some("m-8B")),
            ("new/M-8B", Some("Org/M-8b")),
            ("X", Some("org/x")),
            ("m", None),
            ("m-8", None),
            ("", None),
        ];
        for (asked, expected) in table {
            assert_eq!(meant(asked, &models), expected, "{asked}");
        }
    }
}
