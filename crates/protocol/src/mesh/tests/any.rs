//! Every message, with anything in it.

use base::Thermal;
use proptest::{option, prelude::*};
use serde_json::{Map, Value, json, value::RawValue};

use crate::mesh::{
    AppleTime, DeviceInfo, Hardware, WireId,
    cluster::{
        ClusterMessage, Dialect, ErrorCode, Heartbeat, Hello, InferenceCancel, InferenceChunk,
        InferenceComplete, InferenceError, InferenceRequest, LoadModel, ManifestFile,
        ModelLoadError, ModelLoaded, ModelManifest, ModelManifestRequest, ModelPieceRequest,
        ModelQuery, ModelQueryResponse, ModelTransferChunk, ModelTransferComplete,
        ModelTransferError, ModelTransferRequest, ModelTreeRequest, WarrenHello, decode, encode,
    },
};

fn id() -> impl Strategy<Value = WireId> {
    prop_oneof![
        any::<u128>().prop_map(WireId::from_random),
        "[0-9A-F]{8}-[0-9A-F]{4}".prop_map(|text| WireId::from(text.as_str())),
        any::<String>()
            .prop_filter("short", |text| text.len() <= 128)
            .prop_map(|text| WireId::from(text.as_str())),
    ]
}

/// Numbers that are the same after they were written and read.
fn number() -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(|number| f64::from(number) / 8.0)
}

fn models() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zA-Z0-9/._-]{0,20}|\\PC{0,9}", 0..4)
}

fn extra() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({"a": [1, {"_0": true}]})),
    ];
    prop::collection::btree_map("x[a-z]{0,5}", value, 0..3)
        .prop_map(|map| map.into_iter().collect())
}

fn object() -> impl Strategy<Value = Box<RawValue>> {
    (extra(), any::<bool>()).prop_map(|(map, spaced)| {
        let map = Value::Object(map);
        let text = if spaced { format!("{map:#}") } else { map.to_string() };
        RawValue::from_string(text).unwrap()
    })
}

fn hardware() -> impl Strategy<Value = Hardware> {
    let numbers = (number(), any::<u32>(), number(), option::of(number()), 0..5_u8);
    let texts = (any::<String>(), any::<String>(), option::of("[a-z]*"), option::of("[a-z]*"));
    (numbers, texts).prop_map(|(numbers, texts)| Hardware {
        chip_family: texts.0,
        chip_name: texts.1,
        total_ram_gb: numbers.0,
        gpu_core_count: numbers.1,
        memory_bandwidth_gbs: numbers.2,
        tier: numbers.4,
        gpu_backend: texts.2,
        platform: texts.3,
        gpu_vram_gb: numbers.3,
    })
}

fn device() -> impl Strategy<Value = DeviceInfo> {
    (id(), any::<String>(), hardware(), number(), any::<bool>(), models(), extra()).prop_map(
        |(id, name, hardware, date, current, loaded_models, extra)| DeviceInfo {
            id,
            name,
            hardware,
            registered_at: AppleTime(date),
            last_seen_at: AppleTime(-date),
            is_current_device: current,
            loaded_models,
            extra,
        },
    )
}

fn warren() -> impl Strategy<Value = WarrenHello> {
    let numbers = (option::of(any::<u32>()), option::of(any::<u64>()), option::of(any::<u64>()));
    let addresses = prop::collection::vec(any::<std::net::Ipv4Addr>(), 0..3);
    (any::<[u8; 32]>(), any::<String>(), any::<bool>(), addresses, numbers).prop_map(
        |(key, version, psk, addresses, (max_concurrent_requests, instance, dial))| WarrenHello {
            node_id: base::NodeId::new(key),
            version,
            psk,
            addresses: addresses.into_iter().map(|ip| (ip, 9180).into()).collect(),
            max_concurrent_requests,
            instance,
            dial,
        },
    )
}

fn hello() -> impl Strategy<Value = Box<Hello>> {
    let texts = (option::of("[0-9a-f]{64}"), option::of(any::<String>()));
    (device(), any::<u32>(), texts, models(), option::of(warren()), extra()).prop_map(
        |(device_info, protocol_version, (hash, owner), loaded_models, warren, extra)| {
            Box::new(Hello {
                device_info,
                protocol_version,
                cluster_passcode_hash: hash,
                loaded_models,
                owner_user_id: owner,
                warren,
                extra,
            })
        },
    )
}

fn heartbeat() -> impl Strategy<Value = Box<Heartbeat>> {
    let thermal = prop::sample::select(vec![
        Thermal::Nominal,
        Thermal::Fair,
        Thermal::Serious,
        Thermal::Critical,
    ]);
    let numbers =
        (number(), 0..=100_u8, any::<u32>(), option::of(number()), option::of(any::<u32>()));
    let texts = (option::of(any::<String>()), option::of(any::<String>()));
    (id(), thermal, numbers, models(), any::<bool>(), texts, extra()).prop_map(
        |(device_id, thermal_level, numbers, loaded_models, is_generating, texts, extra)| {
            Box::new(Heartbeat {
                device_id,
                timestamp: AppleTime(numbers.0),
                thermal_level,
                throttle_level: numbers.1,
                loaded_models,
                is_generating,
                queue_depth: numbers.2,
                organization_id: texts.0,
                owner_user_id: texts.1,
                ewma_tokens_per_second: numbers.3,
                max_concurrent_requests: numbers.4,
                extra,
            })
        },
    )
}

fn inference() -> impl Strategy<Value = ClusterMessage> {
    use ClusterMessage as M;
    let code = option::of(prop::sample::select(ErrorCode::ALL.to_vec()));
    let counts = (option::of(any::<u32>()), option::of(any::<u32>()));
    let error =
        (id(), any::<String>(), code, option::of(any::<u32>()), option::of(any::<String>()));
    prop_oneof![
        (id(), object(), any::<bool>(), option::of(any::<u32>()), option::of(any::<String>()))
            .prop_map(|(request_id, request, streaming, hops, via)| {
                M::InferenceRequest(InferenceRequest { request_id, request, streaming, hops, via })
            }),
        (id(), object()).prop_map(|(request_id, chunk)| M::InferenceChunk(InferenceChunk {
            request_id,
            chunk
        })),
        (id(), counts).prop_map(|(request_id, (tokens_in, tokens_out))| {
            M::InferenceComplete(InferenceComplete { request_id, tokens_in, tokens_out })
        }),
        error.prop_map(|(request_id, error_message, code, status, body)| {
            M::InferenceError(InferenceError { request_id, error_message, code, status, body })
        }),
        id().prop_map(|request_id| M::InferenceCancel(InferenceCancel { request_id })),
    ]
}

fn models_of_stock_peers() -> impl Strategy<Value = ClusterMessage> {
    use ClusterMessage as M;
    let named = || (id(), any::<String>());
    let size = option::of(any::<u64>());
    let chunk = (id(), any::<String>(), any::<u64>(), any::<String>(), any::<bool>());
    prop_oneof![
        any::<String>().prop_map(|model_id| M::ModelQuery(ModelQuery { model_id })),
        (any::<String>(), any::<bool>(), size).prop_map(|(model_id, available, size)| {
            let total_size_bytes = size;
            M::ModelQueryResponse(ModelQueryResponse { model_id, available, total_size_bytes })
        }),
        named().prop_map(|(transfer_id, model_id)| {
            M::ModelTransferRequest(ModelTransferRequest { transfer_id, model_id })
        }),
        chunk.prop_map(|(transfer_id, file_name, offset, data, is_last_chunk)| {
            let chunk = ModelTransferChunk { transfer_id, file_name, offset, data, is_last_chunk };
            M::ModelTransferChunk(chunk)
        }),
        named().prop_map(|(transfer_id, model_id)| {
            M::ModelTransferComplete(ModelTransferComplete { transfer_id, model_id })
        }),
        named().prop_map(|(request_id, model_id)| M::LoadModel(LoadModel { request_id, model_id })),
        (named(), any::<u32>()).prop_map(|((request_id, model_id), load_time_ms)| {
            M::ModelLoaded(ModelLoaded { request_id, model_id, load_time_ms })
        }),
        (named(), any::<String>()).prop_map(|((request_id, model_id), reason)| {
            M::ModelLoadError(ModelLoadError { request_id, model_id, reason })
        }),
    ]
}

fn models_of_warrens() -> impl Strategy<Value = ClusterMessage> {
    use ClusterMessage as M;
    let named = || (id(), any::<String>());
    let file = (any::<String>(), any::<u64>(), "[0-9a-f]{64}")
        .prop_map(|(name, size, root)| ManifestFile { name, size, root });
    prop_oneof![
        named().prop_map(|(transfer_id, model_id)| {
            M::ModelManifestRequest(ModelManifestRequest { transfer_id, model_id })
        }),
        (named(), prop::collection::vec(file, 0..3)).prop_map(
            |((transfer_id, model_id), files)| {
                M::ModelManifest(ModelManifest { transfer_id, model_id, files })
            }
        ),
        (named(), any::<u32>()).prop_map(|((transfer_id, model_id), file)| {
            M::ModelTreeRequest(ModelTreeRequest { transfer_id, model_id, file })
        }),
        (named(), any::<[u32; 3]>()).prop_map(|((transfer_id, model_id), [file, first, count])| {
            M::ModelPieceRequest(ModelPieceRequest { transfer_id, model_id, file, first, count })
        }),
        named().prop_map(|(transfer_id, error_message)| {
            M::ModelTransferError(ModelTransferError { transfer_id, error_message })
        }),
    ]
}

fn message() -> impl Strategy<Value = ClusterMessage> {
    prop_oneof![
        hello().prop_map(ClusterMessage::Hello),
        hello().prop_map(ClusterMessage::HelloAck),
        heartbeat().prop_map(ClusterMessage::Heartbeat),
        heartbeat().prop_map(ClusterMessage::HeartbeatAck),
        inference(),
        models_of_stock_peers(),
        models_of_warrens(),
    ]
}

/// Something near a message: what is in the way of a reader that trusts.
fn near() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "hello",
        "heartbeatAck",
        "inferenceRequest",
        "inferenceChunk",
        "inferenceError",
        "modelQuery",
        "modelTransferRequest",
        "modelTransferChunk",
        "modelManifest",
        "agentMessage",
        "_0",
    ]);
    let names = "(_0|requestID|request|chunk|deviceInfo|modelID|transferID|offset|data|files)";
    let value = "(null|[0-9]{1,22}|-?[0-9]\\.[0-9]e[0-9]{1,4}|\"[a-z\\\\/]{0,3}\"|\\[\\[\\]\\]|\\{\\}|\\{\"_0\":1\\})";
    let members = proptest::string::string_regex(&format!(
        "\\{{(\"{names}\":{value},){{0,3}}\"{names}\":{value}\\}}"
    ))
    .unwrap();
    (kind, members, any::<bool>()).prop_map(|(kind, members, wrapped)| match wrapped {
        true => format!("{{\"{kind}\":{{\"_0\":{members}}}}}"),
        false => format!("{{\"{kind}\":{members}}}"),
    })
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written_in_both_forms(message in message()) {
        for dialect in [Dialect::Flat, Dialect::Wrapped] {
            let written = encode(&message, dialect);
            let read = decode(&written).unwrap();
            prop_assert_eq!(read.dialect, dialect);
            prop_assert_eq!(format!("{:?}", &read.message), format!("{message:?}"));
            prop_assert_eq!(encode(&read.message, dialect), written);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes: Vec<u8>, text: String) {
        for bytes in [&bytes[..], text.as_bytes()] {
            prop_assert!(decode(bytes).is_err());
        }
    }

    #[test]
    fn near_messages_are_read_or_get_a_short_error(text in near()) {
        match decode(text.as_bytes()) {
            Ok(read) => {
                let written = encode(&read.message, read.dialect);
                prop_assert_eq!(decode(&written).unwrap().dialect, read.dialect);
            }
            Err(bad) => prop_assert!(bad.kind.len() <= 64 && bad.why.len() <= 256),
        }
    }
}
