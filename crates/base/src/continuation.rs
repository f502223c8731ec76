//! Answers that another provider goes on with: how a model server does it, and whether it is wanted.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How a model server goes on with the beginning of an answer: what it has to be sent beside that.
///
/// A server that knows either of these also continues the prompt of a text completion as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    /// It goes on with the last message whenever that is the assistant's, as llama.cpp does.
    LastMessage,
    /// It does so when `continue_final_message` is true and `add_generation_prompt` false, as vLLM does.
    FinalMessage,
}

/// Whether a streamed answer is resumed when its provider is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeAnswers {
    /// It ends with an error.
    Off,
    /// Another provider of the same model goes on, where that can be.
    #[default]
    SameModel,
}

impl ResumeAnswers {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Off, Self::SameModel];

    /// Its name in settings and headers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::SameModel => "same-model",
        }
    }
}

impl fmt::Display for ResumeAnswers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for ResumeAnswers {
    type Err = NotResumeAnswers;

    fn from_str(text: &str) -> Result<Self, NotResumeAnswers> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(NotResumeAnswers)
    }
}

/// A text that names neither of [`ResumeAnswers::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotResumeAnswers;

impl fmt::Display for NotResumeAnswers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ResumeAnswers::ALL.map(ResumeAnswers::as_str).join(" or ");
        write!(out, "expected {names}")
    }
}

impl std::error::Error for NotResumeAnswers {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_as_it_is_written_and_nothing_else_is_one() {
        for known in ResumeAnswers::ALL {
            assert_eq!(known.to_string().parse(), Ok(known));
            let json = serde_json::to_value(known).unwrap();
            assert_eq!(json, known.as_str());
        }
        assert_eq!(
            "on".parse::<ResumeAnswers>().unwrap_err().to_string(),
            "expected off or same-model"
        );
    }
}
