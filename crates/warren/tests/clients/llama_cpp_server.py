"""llama.cpp's own server on a port of loopback, until standard input ends.

    llama_cpp_server.py MODEL PORT NAME [--reranking]
"""
import sys

import xllamacpp

SLOTS = 4


def main():
    path, port, name, *flags = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_parallel = SLOTS
    # All slots together. Prompts of coding agents have tens of thousands of tokens.
    params.n_ctx = SLOTS * 65_536
    # Threads of one answer wait for each other by spinning: on a busy machine two are far slower.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.sampling.seed = 1
    if "--reranking" in flags:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
