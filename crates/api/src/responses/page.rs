//! A page of a list: where it begins, how many items it has, and in which order. Pure.

use protocol::json;

use super::{failure::invalid, items};
use crate::error::ApiError;

/// The part of a list that a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    limit: usize,
    /// Whether the oldest comes first.
    ascending: bool,
    after: Option<String>,
}

impl Page {
    /// Reads the parameters of a query. Unknown parameters are ignored.
    ///
    /// # Errors
    /// 400 when the value of a known parameter is not valid.
    pub(crate) fn of(query: Option<&str>) -> Result<Self, ApiError> {
        let mut page = Self { limit: 20, ascending: false, after: None };
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    page.limit = limit.ok_or_else(|| invalid("limit", "must be from 1 to 100"))?;
                }
                "order" => {
                    page.ascending = match &*value {
                        "asc" => true,
                        "desc" => false,
                        _ => return Err(invalid("order", "must be asc or desc")),
                    };
                }
                "after" => page.after = Some(value.into_owned()).filter(|after| !after.is_empty()),
                _ => {}
            }
        }
        Ok(page)
    }

    /// The page of a list, as OpenAI's list object. `all`: the ids and texts of all items, the oldest first.
    ///
    /// # Errors
    /// 400 when the page is to begin after an item that the list does not have.
    pub(crate) fn list(&self, mut all: Vec<(String, String)>) -> Result<String, ApiError> {
        if !self.ascending {
            all.reverse();
        }
        let begin = match &self.after {
            None => 0,
            Some(after) => {
                let at = all.iter().position(|(id, _)| id == after);
                at.ok_or_else(|| invalid("after", "must be the id of an item of this list"))? + 1
            }
        };
        let end = all.len().min(begin + self.limit);
        Ok(list(&all[begin..end], end < all.len()))
    }
}

/// OpenAI's list object of these items, each with its id first.
pub(crate) fn list(items: &[(String, String)], has_more: bool) -> String {
    let id = |of: Option<&(String, String)>| json::write(&of.map(|(id, _)| id));
    let data = items::list(items.iter().map(|(_, item)| item));
    format!(
        r#"{{"object":"list","data":{data},"first_id":{},"last_id":{},"has_more":{has_more}}}"#,
        id(items.first()),
        id(items.last()),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn all(count: usize) -> Vec<(String, String)> {
        (0..count).map(|at| (format!("i{at}"), format!("{{\"id\":\"i{at}\"}}"))).collect()
    }

    fn read(query: &str, count: usize) -> Result<Value, ApiError> {
        let list = Page::of(Some(query))?.list(all(count))?;
        Ok(serde_json::from_str(&list).unwrap())
    }

    #[test]
    fn a_page_that_cannot_be_says_which_parameter() {
        for (query, param) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=x", "limit"),
            ("order=up", "order"),
            ("after=i9", "after"),
        ] {
            assert_eq!(read(query, 3).unwrap_err().param.as_deref(), Some(param), "{query}");
        }
        assert_eq!(Page::of(None), Page::of(Some("include[]=x&after=&limit=20&order=desc")));
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(count in 0usize..30, limit in 1usize..12, ascending: bool) {
            let order = if ascending { "asc" } else { "desc" };
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = read(&format!("limit={limit}&order={order}&after={after}"), count).unwrap();
                let ids: Vec<String> = page["data"].as_array().unwrap().iter()
                    .map(|item| item["id"].as_str().unwrap().to_owned()).collect();
                prop_assert!(ids.len() <= limit);
                prop_assert_eq!(page["first_id"].as_str(), ids.first().map(String::as_str));
                prop_assert_eq!(page["last_id"].as_str(), ids.last().map(String::as_str));
                seen.extend(ids);
                if page["has_more"] == false { break; }
                after = page["last_id"].as_str().unwrap().to_owned();
            }
            let mut wanted: Vec<String> = all(count).into_iter().map(|(id, _)| id).collect();
            if !ascending { wanted.reverse(); }
            prop_assert_eq!(seen, wanted);
        }
    }
}
