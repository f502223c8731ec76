//! The `openai` package of npm.

use crate::sdk::scenarios;

scenarios!(
    "openai_node.mjs",
    translated: [
        models, plain, stream, stream_helper, tools, tools_run, structured, vision, errors,
        wrong_key, cancel, cancel_plain, completions, responses, responses_stream, responses_tools,
        responses_structured, responses_errors, responses_cancel, responses_continued, responses_stored,
        responses_background, responses_background_cancel, conversations,
    ],
    native: [any_plain, any_stream, any_responses, any_responses_stream, any_responses_continued],
    media: [
        transcriptions, transcriptions_stream, translations, speech, speech_stream, images, images_stream, moderations,
        rankings, media_errors,
    ],
);
