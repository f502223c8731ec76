//! Messages that stock peers drop without a word.

use serde_json::Value;

const THERMAL: [&str; 4] = ["nominal", "fair", "serious", "critical"];

const CODES: [&str; 6] =
    ["model_not_loaded", "queue_full", "unavailable", "internal_error", "timeout", "cancelled"];

/// The message as a Mac reads it: wrapped, with exactly one key, ids that are UUIDs, and everything
/// there that its types need.
pub(super) fn mac(message: &Value) -> Option<(String, Value)> {
    let object = message.as_object().filter(|object| object.len() == 1)?;
    let (kind, outer) = object.iter().next()?;
    let body = outer.get("_0")?;
    mac_takes(kind, body).then(|| (kind.clone(), body.clone()))
}

fn mac_takes(kind: &str, body: &Value) -> bool {
    match kind {
        "hello" | "helloAck" => hello(body) && is_uuid(&body["deviceInfo"]["id"]),
        "heartbeat" | "heartbeatAck" => heartbeat(body) && is_uuid(&body["deviceID"]),
        "inferenceRequest" => {
            is_uuid(&body["requestID"])
                && body["request"].is_object()
                && body["streaming"].is_boolean()
        }
        "inferenceChunk" => is_uuid(&body["requestID"]) && chunk(&body["chunk"]),
        "inferenceComplete" => is_uuid(&body["requestID"]),
        "inferenceError" => is_uuid(&body["requestID"]) && body["errorMessage"].is_string(),
        _ => false,
    }
}

fn chunk(chunk: &Value) -> bool {
    let texts = ["id", "object", "model"].iter().all(|name| chunk[name].is_string());
    texts && chunk["created"].is_number() && chunk["choices"].is_array()
}

/// The message as a stock node or a gateway reads it: in either form; `None` where it would see a
/// kind that it does not know.
pub(super) fn node(message: &Value) -> Option<(String, Value)> {
    let (kind, body) = super::wire::either(message)?;
    node_takes(&kind, &body).then_some((kind, body))
}

fn node_takes(kind: &str, body: &Value) -> bool {
    match kind {
        "hello" | "helloAck" => hello(body),
        "heartbeat" | "heartbeatAck" => heartbeat(body),
        "inferenceRequest" => body["requestID"].is_string() && request(&body["request"]),
        "inferenceChunk" => body["requestID"].is_string() && body["chunk"].is_object(),
        "inferenceComplete" => body["requestID"].is_string(),
        "inferenceError" => {
            let code = &body["code"];
            let known = code.is_null() || code.as_str().is_some_and(|code| CODES.contains(&code));
            body["requestID"].is_string() && body["errorMessage"].is_string() && known
        }
        "loadModel" => body["requestID"].is_string() && body["modelID"].is_string(),
        _ => false,
    }
}

fn request(request: &Value) -> bool {
    let stop = &request["stop"];
    let limit = &request["max_tokens"];
    let messages = request["messages"].as_array();
    request["model"].is_string()
        && (stop.is_null() || stop.is_array())
        && (limit.is_null() || limit.is_u64())
        && messages.is_some_and(|all| all.iter().all(|one| one.get("content").is_some()))
}

fn hello(body: &Value) -> bool {
    let device = &body["deviceInfo"];
    let hardware = &device["hardware"];
    let texts = [&device["id"], &device["name"], &hardware["chipFamily"], &hardware["chipName"]];
    let numbers = [
        &device["registeredAt"],
        &device["lastSeenAt"],
        &hardware["totalRAMGB"],
        &hardware["gpuCoreCount"],
        &hardware["memoryBandwidthGBs"],
    ];
    texts.iter().all(|text| text.is_string())
        && numbers.iter().all(|number| number.is_number())
        && hardware["tier"].is_u64()
        && device["isCurrentDevice"].is_boolean()
        && device["loadedModels"].is_array()
        && body["protocolVersion"].is_u64()
        && body["loadedModels"].is_array()
}

fn heartbeat(body: &Value) -> bool {
    body["deviceID"].is_string()
        && body["timestamp"].is_number()
        && body["thermalLevel"].as_str().is_some_and(|level| THERMAL.contains(&level))
        && body["throttleLevel"].is_i64()
        && body["queueDepth"].is_i64()
        && body["isGenerating"].is_boolean()
        && body["loadedModels"].is_array()
}

fn is_uuid(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let parts: Vec<_> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mac_takes_only_the_wrapped_form_alone_and_with_uuids() {
        let id = super::super::wire::uuid();
        let good = json!({"inferenceComplete": {"_0": {"requestID": id.to_uppercase()}}});
        assert!(mac(&good).is_some());
        for bad in [
            json!({"inferenceComplete": {"requestID": id}}),
            json!({"inferenceComplete": {"_0": {"requestID": "r-1"}}}),
            json!({"inferenceComplete": {"_0": {"requestID": id}}, "x": 1}),
            json!({"loadModel": {"_0": {"requestID": id, "modelID": "m"}}}),
            json!(null),
        ] {
            assert_eq!(mac(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_node_takes_either_form_but_no_code_that_it_does_not_know() {
        let error = |code: &str| json!({"inferenceError": {"requestID": "r", "errorMessage": "e", "code": code}});
        assert!(node(&error("timeout")).is_some());
        assert_eq!(node(&error("on_fire")), None);
        let ask = |request: Value| json!({"inferenceRequest": {"_0": {"requestID": "r", "request": request}}});
        assert!(node(&ask(json!({"model": "m", "messages": []}))).is_some());
        for odd in [
            json!({"model": "m", "messages": [], "stop": "x"}),
            json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": []}]}),
            json!({"model": "m", "messages": [], "max_tokens": 1.5}),
        ] {
            assert_eq!(node(&ask(odd.clone())), None, "{odd}");
        }
        assert_eq!(node(&json!({"modelQuery": {"_0": {"modelID": "m"}}})), None);
    }
}
