//! Tiny GGUF files, as a test wants them: heads of any values, and tensors full of one byte.

/// A file in the making.
#[derive(Debug, Clone)]
pub struct GgufFile {
    alignment: usize,
    values: Vec<u8>,
    value_count: u64,
    tensors: Vec<(String, Vec<u64>)>,
}

/// The types of values.
const U32: u32 = 4;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

impl Default for GgufFile {
    fn default() -> Self {
        Self { alignment: 32, values: Vec::new(), value_count: 0, tensors: Vec::new() }
    }
}

impl GgufFile {
    pub fn new() -> Self {
        Self::default()
    }

    /// A model of the architecture `llama` with 2 layers of 4 heads, 2 of them for keys and values, 64 wide,
    /// a vocabulary of 8 words, for 512 tokens, with 4,096 parameters.
    pub fn model() -> Self {
        Self::new()
            .text("general.architecture", "llama")
            .text("general.type", "model")
            .number("llama.context_length", 512)
            .number("llama.block_count", 2)
            .number("llama.embedding_length", 64)
            .number("llama.feed_forward_length", 128)
            .number("llama.attention.head_count", 4)
            .number("llama.attention.head_count_kv", 2)
            .texts("tokenizer.ggml.tokens", &["a", "b", "c", "d", "e", "f", "g", "h"])
            .tensor("token_embd.weight", &[64, 64])
    }

    /// A projector for pictures.
    pub fn projector() -> Self {
        Self::new()
            .text("general.architecture", "clip")
            .text("general.type", "mmproj")
            .flag("clip.has_vision_encoder", true)
            .tensor("v.patch_embd.weight", &[16, 16])
    }

    #[must_use]
    pub fn text(self, key: &str, text: &str) -> Self {
        self.value(key, STRING, &string(text))
    }

    #[must_use]
    pub fn number(self, key: &str, number: u32) -> Self {
        self.value(key, U32, &number.to_le_bytes())
    }

    #[must_use]
    pub fn flag(self, key: &str, flag: bool) -> Self {
        self.value(key, BOOL, &[flag.into()])
    }

    #[must_use]
    pub fn texts(self, key: &str, texts: &[&str]) -> Self {
        let items: Vec<u8> = texts.iter().flat_map(|text| string(text)).collect();
        self.array(key, STRING, texts.len(), &items)
    }

    #[must_use]
    pub fn numbers(self, key: &str, numbers: &[u32]) -> Self {
        let items: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.array(key, U32, numbers.len(), &items)
    }

    /// Where tensors begin: at multiples of this.
    #[must_use]
    pub fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment as usize;
        self.number("general.alignment", alignment)
    }

    /// A value of any type, by its number and its bytes.
    #[must_use]
    pub fn value(mut self, key: &str, kind: u32, bytes: &[u8]) -> Self {
        self.values.extend(string(key));
        self.values.extend(kind.to_le_bytes());
        self.values.extend(bytes);
        self.value_count += 1;
        self
    }

    /// A tensor of numbers of 32 bits.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[u64]) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec()));
        self
    }

    /// The whole file. Its tensors are full of this byte.
    pub fn bytes(&self, fill: u8) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend(self.value_count.to_le_bytes());
        file.extend(&self.values);
        let mut offset = 0;
        for (name, shape) in &self.tensors {
            file.extend(tensor(name, shape, offset));
            offset += length(shape).next_multiple_of(self.alignment);
        }
        file.resize(file.len().next_multiple_of(self.alignment), 0);
        for (_, shape) in &self.tensors {
            file.resize(file.len().next_multiple_of(self.alignment), 0);
            file.resize(file.len() + length(shape), fill);
        }
        file
    }

    fn array(self, key: &str, kind: u32, count: usize, items: &[u8]) -> Self {
        let head = [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes()].concat();
        self.value(key, ARRAY, &[&head, items].concat())
    }
}

fn tensor(name: &str, shape: &[u64], offset: usize) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((shape.len() as u32).to_le_bytes());
    bytes.extend(shape.iter().flat_map(|size| size.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    bytes.extend((offset as u64).to_le_bytes());
    bytes
}

/// In bytes.
fn length(shape: &[u64]) -> usize {
    shape.iter().product::<u64>() as usize * 4
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}
