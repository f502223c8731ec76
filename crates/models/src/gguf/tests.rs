//! The content of heads, and the result of reading damaged ones.

use std::path::Path;

use base::Capability;
use testkit::GgufFile;

use super::*;

fn read(bytes: &[u8]) -> Result<Gguf, GgufError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Gguf::read(file.path())
}

fn head(file: &GgufFile) -> Gguf {
    read(&file.bytes(0)).unwrap()
}

fn least(bytes: &[u8]) -> Option<u64> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    least_length(file.path())
}

/// With values of all sorts.
fn file(alignment: u32) -> Vec<u8> {
    let long = "a name that is passed over from some byte on, as it is so long ".repeat(8);
    let file = GgufFile::model().text("general.name", &long).alignment(alignment);
    file.numbers("scores", &[1, 2]).value("wide", 12, &[0; 8]).bytes(1)
}

#[test]
fn a_whole_file_is_as_long_as_its_head_says_and_one_that_broke_off_is_not() {
    for alignment in [1, 32, 4096] {
        let whole = file(alignment);
        assert_eq!(least(&whole), Some(whole.len() as u64), "{alignment}");
        assert_eq!(least(&[&whole[..], b"more"].concat()), Some(whole.len() as u64));
        for length in (8..whole.len()).step_by(7) {
            let least = least(&whole[..length]).unwrap();
            assert!(least > length as u64, "{length} of {}: {least}", whole.len());
        }
    }
}

#[test]
fn what_is_no_file_of_a_model_says_so() {
    assert!(matches!(read(b"something else"), Err(GgufError::Foreign)));
    assert!(matches!(read(b"GG"), Err(GgufError::Foreign)));
    assert!(matches!(read(b"GGUF\x03\0"), Err(GgufError::Ended { length: 6 })));
    let nowhere = Gguf::read(Path::new("/nowhere/m.gguf"));
    assert!(matches!(nowhere, Err(GgufError::Unreadable(_))));
    let mut other = file(32);
    other[4] = 9;
    assert!(matches!(read(&other), Err(GgufError::Unknown)), "of another version");
    assert_eq!(least(&other), None);
    let mut endless = file(32);
    endless[24..32].fill(0xff);
    assert!(matches!(read(&endless), Err(GgufError::Unknown)), "a key as long as no file is");
}

#[test]
fn any_damage_of_a_head_is_an_answer_within_bounds() {
    let whole = file(32);
    let mut random = testkit::Random::new(7);
    for _ in 0..2_000 {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(900) as usize;
            damaged[at] = random.next() as u8;
        }
        if let Ok(head) = read(&damaged) {
            head.needs.memory(u64::MAX, u64::MAX, u64::MAX);
        }
    }
}

#[test]
fn a_head_tells_the_facts_of_its_model() {
    let model = head(
        &GgufFile::model()
            .number("general.file_type", 15)
            .text("general.name", "Tiny")
            .text("tokenizer.chat_template", "{% if tools %}<think>{% endif %}")
            .number("tokenizer.ggml.fim_pre_token_id", 3),
    );
    assert_eq!((model.kind, model.split), (GgufKind::Model, None));
    assert_eq!(model.name.as_deref(), Some("Tiny"));
    let facts = model.facts();
    assert_eq!((facts.context_tokens, facts.parameters), (Some(512), Some(4096)));
    assert_eq!(facts.family.as_deref(), Some("llama"));
    assert_eq!(facts.quantization.as_deref(), Some("Q4_K_M"));
    let can = [Capability::Completion, Capability::Tools, Capability::Insert, Capability::Thinking];
    assert_eq!(facts.capabilities, Some(can.into_iter().collect()));
}

#[test]
fn a_quantization_that_is_not_said_is_that_of_most_of_the_file() {
    assert_eq!(head(&GgufFile::model()).quantization.as_deref(), Some("F32"));
    let unknown = head(&GgufFile::model().number("general.file_type", 999));
    assert_eq!(unknown.quantization.as_deref(), Some("F32"));
}

#[test]
fn models_that_make_vectors_or_ranks_make_no_text() {
    let pooled = |pooling: u32| {
        let file = GgufFile::model().number("llama.pooling_type", pooling);
        head(&file.text("tokenizer.chat_template", "tools")).capabilities
    };
    assert_eq!(pooled(1).iter().collect::<Vec<_>>(), [Capability::Embedding]);
    assert_eq!(pooled(4).iter().count(), 0);
    assert!(pooled(0).contains(Capability::Completion));
    let encoder = head(&GgufFile::model().flag("llama.attention.causal", false));
    assert_eq!(encoder.capabilities.iter().collect::<Vec<_>>(), [Capability::Embedding]);
    assert_eq!(encoder.needs.cache_per_token, 0);
}

#[test]
fn what_is_no_model_is_told_apart() {
    let projector = head(&GgufFile::projector());
    assert_eq!(projector.kind, GgufKind::Projector);
    assert!(projector.capabilities.contains(Capability::Vision));
    let kind = |file: GgufFile| head(&file).kind;
    assert_eq!(kind(GgufFile::model().text("adapter.type", "lora")), GgufKind::Adapter);
    assert_eq!(kind(GgufFile::new().text("general.type", "adapter")), GgufKind::Adapter);
    assert_eq!(kind(GgufFile::new().text("general.architecture", "llama")), GgufKind::Vocabulary);
    let imatrix = GgufFile::new().text("general.type", "imatrix").tensor("a", &[1]);
    assert_eq!(kind(imatrix), GgufKind::Importance);
}

#[test]
fn parts_are_counted_from_one() {
    let part = GgufFile::new().value("split.no", 2, &1u16.to_le_bytes()).value(
        "split.count",
        2,
        &3u16.to_le_bytes(),
    );
    let part = head(&part);
    assert_eq!((part.kind, part.split), (GgufKind::Model, Some(Split { number: 2, of: 3 })));
}

#[test]
fn memory_is_files_cache_computing_and_the_program() {
    let needs = head(&GgufFile::model()).needs;
    // 2 layers with 2 heads of 16 numbers for keys and for values.
    assert_eq!(needs.cache_per_token, 2 * 2 * (16 + 16) * 2);
    assert_eq!(needs.compute, 512 * 4 * (8 + 4 * 64 + 2 * 128));
    let of = needs.memory(1_000, 100, 3);
    let masks = 512 * 2 * 300;
    assert_eq!(of, 1_000 + 300 * needs.cache_per_token + needs.compute + masks + PROGRAM);
    assert_eq!(needs.memory(u64::MAX, 1, 1), u64::MAX);
}

#[test]
fn layers_may_have_different_heads_and_a_state() {
    let mixed = GgufFile::new()
        .text("general.architecture", "hybrid")
        .number("hybrid.block_count", 3)
        .number("hybrid.embedding_length", 8)
        .number("hybrid.attention.head_count", 2)
        .numbers("hybrid.attention.head_count_kv", &[0, 2, 0])
        .number("hybrid.attention.key_length", 5)
        .number("hybrid.ssm.inner_size", 10)
        .number("hybrid.ssm.state_size", 4)
        .number("hybrid.ssm.conv_kernel", 3);
    let needs = head(&mixed.tensor("a", &[1])).needs;
    assert_eq!(needs.cache_per_token, 2 * (5 + 4) * 2);
    assert_eq!(needs.state, 3 * (2 * 10 + 10 * 4) * 4);
}
