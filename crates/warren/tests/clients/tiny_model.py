"""Write a GGUF model of about 1 MB with random weights, for llama.cpp's server.

    tiny_model.py FILE [--ends-after TOKENS] [--calls-every TOKENS]

It is an ordinary small llama, so that everything around the weights is real: tokens, sampling,
streaming, grammars. Its answers are strings of common words. The same options give the same bytes.

Channel 0 carries the same number from the embedding to the output, because no layer writes to it.
The output matrix reads it as a bias for each token, and so decides how likely words, the end and a
tool call are. All else is noise.
"""
import argparse
import math

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, KEY_HEADS, INNER = 128, 2, 4, 2, 256
HEAD = WIDTH // HEADS
CONTEXT = 131_072
SEED = 20
# How much the likelihood of words differs: the standard deviation of their logits.
SPREAD = 1.5
NEVER = -20.0

WORDS = (
    "the of and to in is you that it he was for on are as with his they at be this have from or one "
    "had by but not what all were we when your can said there use an each which she do how their if "
    "will up other about out many then them these so some her would make like him into time has look "
    "two more write go see number no way could people my than first water been call who oil its now "
    "find long down day did get come made may part burrow tunnel field meadow grass clover hare rabbit "
    "ear paw night moon hill hedge nest warm quiet quick soft small deep dark green early late").split()

# The calls' form is one that llama.cpp recognises and constrains with a grammar. A newline after
# the opening tag would break that.
TEMPLATE = """
{%- macro turn(role) -%}{{ '<|im_start|>' + role + '\\n' }}{%- endmacro -%}
{%- if tools -%}
{{ turn('system') }}{{ 'Functions:' }}
{%- for tool in tools -%}{{ '\\n' + (tool | tojson) }}{%- endfor -%}
{{ '\\nCall: <tool_call>{"name": <name>, "arguments": <arguments>}</tool_call><|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{{ turn(message.role) }}{{ message.content or '' }}
{%- for call in message.tool_calls or [] -%}
{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}</tool_call>' }}
{%- endfor -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ turn('assistant') }}{%- endif -%}
"""

SPACE = "\u2581"  # how SentencePiece writes a space
Kind = gguf.TokenType


class Vocabulary:
    """Control tokens, every byte, printable ASCII, and each word with all its beginnings."""

    def __init__(self):
        self.texts, self.scores, self.kinds, self.biases = [], [], [], []
        self.add("<unk>", 0, Kind.UNKNOWN)
        for control in ("<s>", "</s>", "<|im_start|>", "<|im_end|>"):
            self.add(control, 0, Kind.CONTROL)
        for tag in ("<tool_call>", "</tool_call>"):
            self.add(tag, 0, Kind.USER_DEFINED)
        for byte in range(256):
            self.add(f"<0x{byte:02X}>", 0, Kind.BYTE)
        self.add_words()
        for char in SPACE + "".join(map(chr, range(33, 127))):
            self.add(char, -1, Kind.NORMAL, -1.0 if char in ".," else NEVER)

    def add_words(self):
        words = {SPACE + word for word in WORDS}
        pieces = {word[:end] for word in words for end in range(2, len(word) + 1)}
        # The tokenizer joins the best score first: longer pieces win, and whole words come out.
        for piece in sorted(pieces, key=lambda piece: (-len(piece), piece)):
            self.add(piece, len(piece), Kind.NORMAL, 0.0 if piece in words else NEVER)

    def add(self, text, score, kind, bias=NEVER):
        self.texts.append(text)
        self.scores.append(float(score))
        self.kinds.append(int(kind))
        self.biases.append(bias)

    def token(self, text):
        return self.texts.index(text)

    def draw(self, text, every):
        """Make a token come about once in so many."""
        weight = math.log(sum(map(math.exp, self.biases))) + SPREAD**2 / 2
        self.biases[self.token(text)] = weight - math.log(max(every - 1, 1e-3))


def tensors(vocabulary):
    draw = np.random.default_rng(SEED)
    size = len(vocabulary.texts)
    # Channel 0 is as large as all others together, and both survive the last norm alike.
    constant = math.sqrt(WIDTH)
    spread = 1 + 0.3 * LAYERS
    norm = math.sqrt((constant**2 + (WIDTH - 1) * spread) / WIDTH)

    def noise(rows, columns, deviation):
        return (draw.standard_normal((rows, columns)) * deviation).astype(np.float32)

    embedding = noise(size, WIDTH, 1)
    embedding[:, 0] = constant
    output = noise(size, WIDTH, SPREAD * norm / math.sqrt((WIDTH - 1) * spread))
    for steady in ("<|im_end|>", "<tool_call>"):
        output[vocabulary.token(steady)] = 0
    output[:, 0] = np.array(vocabulary.biases) * norm / constant

    yield "token_embd.weight", embedding
    yield "output_norm.weight", np.ones(WIDTH, np.float32)
    yield "output.weight", output
    for layer in range(LAYERS):
        for name, rows, columns, gain in (
            ("attn_q", WIDTH, WIDTH, 1), ("attn_k", KEY_HEADS * HEAD, WIDTH, 1),
            ("attn_v", KEY_HEADS * HEAD, WIDTH, 1), ("attn_output", WIDTH, WIDTH, 0.5),
            ("ffn_gate", INNER, WIDTH, 1), ("ffn_up", INNER, WIDTH, 1),
            ("ffn_down", WIDTH, INNER, 0.5),
        ):
            weights = noise(rows, columns, gain / math.sqrt(columns))
            if name in ("attn_output", "ffn_down"):
                weights[0] = 0
            yield f"blk.{layer}.{name}.weight", weights
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32)


def describe(writer, vocabulary):
    writer.add_name("warren-tiny")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_vocab_size(len(vocabulary.texts))
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary.texts)
    writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.kinds)
    writer.add_unk_token_id(vocabulary.token("<unk>"))
    writer.add_bos_token_id(vocabulary.token("<s>"))
    writer.add_eos_token_id(vocabulary.token("</s>"))
    writer.add_eot_token_id(vocabulary.token("<|im_end|>"))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    # With a prefix, grammars of JSON schemas cannot be begun.
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE.strip())


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("file")
    arguments.add_argument("--ends-after", type=float, help="mean length of an answer, in tokens; else it never ends")
    arguments.add_argument("--calls-every", type=float, help="offered tools are called about once in so many tokens")
    given = arguments.parse_args()
    vocabulary = Vocabulary()
    for text, every in (("<|im_end|>", given.ends_after), ("<tool_call>", given.calls_every)):
        if every:
            vocabulary.draw(text, every)
    writer = gguf.GGUFWriter(given.file, "llama")
    describe(writer, vocabulary)
    for name, tensor in tensors(vocabulary):
        writer.add_tensor(name, tensor if tensor.ndim == 1 else tensor.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
