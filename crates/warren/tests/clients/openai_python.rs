//! The `openai` package of PyPI.

use crate::sdk::scenarios;

scenarios!(
    "openai_python.py",
    translated: [
        models, plain, plain_async, stream, stream_usage, stream_async, tools, tools_streamed,
        structured, vision, reasoning, errors, embeddings_are_not_served, wrong_key, cancel,
        cancel_async, completions, responses, responses_async, responses_stream, responses_tools,
        responses_structured, responses_vision, responses_reasoning, responses_errors,
        responses_cancel, responses_continued, responses_stored, responses_background,
        responses_background_cancel, conversations,
    ],
    native: [any_plain, any_stream, any_responses, any_responses_stream, any_responses_continued],
    media: [
        transcriptions, transcriptions_stream, translations, speech, speech_stream, images, images_stream, moderations,
        rankings, media_errors, media_async,
    ],
);
