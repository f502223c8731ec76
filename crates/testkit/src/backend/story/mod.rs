//! A model server that goes on with answers that have begun, as a real one does.
//!
//! Its next words depend only on the prompt and on the beginning of the answer, whichever server said that. So the rest
//! of an answer is right exactly if the same server would have said it undisturbed. [`Story::whole`] is that answer.
//!
//! A worker takes it for the server that it imitates: [`Story::like_llama_cpp`] goes on with the assistant's last message and streams
//! the events of llama.cpp in all four shapes; [`Story::like_vllm`] goes on when it is told to, and knows Chat
//! Completions and Completions.
//!
//! The model's name says how it behaves:
//!
//! | Model | Answers |
//! | --- | --- |
//! | `story` | some twenty to two hundred pieces of text |
//! | `thoughts` | likewise, after thinking |
//! | `tools` | some pieces of text, and then a call of the first tool that is offered |
//!
//! - `request`: requests in the four shapes
//! - `answer`: the words
//! - `render`: the events

mod answer;
mod render;
mod request;

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};

use self::request::Request;
use super::{Gate, MockBackend, Received, Reply};
use crate::sockets::any_port;

/// The models of a [`Story`].
pub const STORY_MODELS: [&str; 3] = ["story", "thoughts", "tools"];

/// The model server that it imitates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Like {
    LlamaCpp,
    Vllm,
}

/// A model server that goes on with answers.
#[derive(Debug, Clone)]
#[must_use]
pub struct Story {
    like: Like,
    pace: Duration,
    gate: Gate,
}

impl Story {
    /// One like llama.cpp's.
    pub fn like_llama_cpp() -> Self {
        Self { like: Like::LlamaCpp, pace: Duration::ZERO, gate: Gate::opened() }
    }

    /// One like vLLM.
    pub fn like_vllm() -> Self {
        Self { like: Like::Vllm, ..Self::like_llama_cpp() }
    }

    /// The same, with this pause before each event of a stream.
    pub fn at_pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    /// Each event of a stream waits for this gate.
    pub fn through(self, gate: &Gate) -> Self {
        Self { gate: gate.clone(), ..self }
    }

    /// A backend with all of [`STORY_MODELS`].
    pub async fn start(self) -> MockBackend {
        self.start_with(&STORY_MODELS).await
    }

    /// A backend with these of them; any other name tells stories.
    pub async fn start_with(self, models: &[&str]) -> MockBackend {
        self.start_at(any_port(), models).await
    }

    /// The same at a given address, such as that of a backend that was stopped.
    pub async fn start_at(self, address: SocketAddr, models: &[&str]) -> MockBackend {
        let backend = MockBackend::start_at(address, models).await;
        let owner = match self.like {
            Like::LlamaCpp => "llamacpp",
            Like::Vllm => "vllm",
        };
        let item = |id: &&str| json!({"id": id, "object": "model", "owned_by": owner});
        let data: Vec<Value> = models.iter().map(item).collect();
        backend.set_get("/v1/models", json!({"object": "list", "data": data}));
        match self.like {
            Like::LlamaCpp => {
                backend.set_get("/props", props());
                backend.tell_with(|received| {
                    (received.target == "/apply-template").then(|| applied(received))
                });
                backend.answers_only(&request::PATHS);
            }
            Like::Vllm => {
                backend.set_get("/version", json!({"version": "0.33.0"}));
                backend.answers_only(&request::PATHS[..2]);
            }
        }
        backend.answer_with(move |received| self.reply(received));
        backend
    }

    /// All of the text that it answers with if nobody disturbs it, without its thoughts.
    pub fn whole(&self, path: &str, body: &Value) -> String {
        match self.request(path, body) {
            Ok(request) => request.begun.clone() + &answer::story(&request).text.concat(),
            Err(problem) => panic!("{problem}"),
        }
    }

    fn request(&self, path: &str, body: &Value) -> Result<Request, String> {
        Request::read(path, body, self.like == Like::LlamaCpp)
    }

    fn reply(&self, received: &Received) -> Reply {
        let body = received.json();
        let request = match self.request(&received.target, &body) {
            Ok(request) => request,
            Err(problem) => return refusal(&problem),
        };
        let answer = answer::story(&request);
        if body["stream"] != true {
            return Reply::json(200, &render::whole(&request, &answer));
        }
        let reply = Reply::stream(render::events(&request, &answer), &self.gate);
        if self.pace.is_zero() { reply } else { reply.thinking(self.pace) }
    }
}

fn refusal(problem: &str) -> Reply {
    let error = json!({"code": 400, "message": problem, "type": "invalid_request_error"});
    Reply::json(400, &json!({"error": error}))
}

/// How llama.cpp describes itself.
fn props() -> Value {
    json!({"default_generation_settings": {"n_ctx": 8192}, "total_slots": 4, "chat_template": "{{ messages }}",
        "modalities": {"vision": false, "audio": false}, "build_info": "b11549-mock"})
}

/// The prompt that messages become.
fn applied(received: &Received) -> Reply {
    match Request::read("/v1/chat/completions", &received.json(), true) {
        Ok(request) => Reply::json(200, &json!({"prompt": request.context})),
        Err(problem) => refusal(&problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    fn chat(words: &str) -> Value {
        json!({"model": "story", "stream": true, "messages": [{"role": "user", "content": words}]})
    }

    /// The text of the deltas of a stream.
    fn text_of(stream: &str) -> String {
        let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
        let places = ["/choices/0/delta/content", "/choices/0/text", "/delta/text", "/delta"];
        let piece = |data: &str| {
            let event: Value = serde_json::from_str(data).ok()?;
            places.iter().find_map(|place| Some(event.pointer(place)?.as_str()?.to_owned()))
        };
        data.filter_map(piece).collect()
    }

    #[test]
    fn the_rest_of_a_story_depends_on_its_beginning() {
        let story = Story::like_llama_cpp();
        let whole = story.whole("/v1/chat/completions", &chat("once"));
        assert!(whole.len() > 40, "{whole}");
        assert_ne!(whole, story.whole("/v1/chat/completions", &chat("twice")));
        for cut in whole.char_indices().map(|(at, _)| at).filter(|at| whole[*at..].starts_with(' '))
        {
            let mut begun = chat("once");
            let beginning = json!({"role": "assistant", "content": whole[..cut]});
            begun["messages"].as_array_mut().unwrap().push(beginning);
            assert_eq!(story.whole("/v1/chat/completions", &begun), whole, "cut at {cut}");
        }
    }

    #[test]
    fn one_like_vllm_goes_on_only_when_it_is_told_to() {
        let (story, path) = (Story::like_vllm(), "/v1/chat/completions");
        let whole = story.whole(path, &chat("once"));
        let mut begun = chat("once");
        let beginning =
            json!({"role": "assistant", "content": &whole[..whole.rfind(' ').unwrap()]});
        begun["messages"].as_array_mut().unwrap().push(beginning);
        assert_ne!(story.whole(path, &begun), whole);
        begun["continue_final_message"] = true.into();
        begun["add_generation_prompt"] = false.into();
        assert_eq!(story.whole(path, &begun), whole);
    }

    #[tokio::test]
    async fn every_shape_is_streamed_and_said_at_once() {
        let story = Story::like_llama_cpp();
        let backend = story.clone().start().await;
        let client = Client::new(backend.address());
        for path in request::PATHS {
            let mut request = chat("once");
            request["prompt"] = "once".into();
            request["input"] = "once".into();
            request["max_tokens"] = 500.into();
            let whole = story.whole(path, &request);
            let streamed = client.post_json(path, &request).await;
            assert_eq!(text_of(&streamed.text()), whole, "{path}");
            request["stream"] = false.into();
            let said = client.post_json(path, &request).await.text().to_owned();
            assert!(said.contains(&serde_json::to_string(&whole).unwrap()), "{path}: {said}");
        }
        let missing = client.post_json("/v1/embeddings", &chat("once")).await;
        assert_eq!(missing.status, 404);
    }
}
