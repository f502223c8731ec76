"""The command `llama-server` of llama.cpp: its own server, from the package xllamacpp, with that command's flags.

Only flags that Warren or these tests give are there. Any other ends it, as the command does.
"""
import argparse
import signal
import sys

import xllamacpp

# What the command takes by itself, without --parallel: slots that share one context.
AUTO_SLOTS = 4


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


def arguments():
    parser = Parser(allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"version: {xllamacpp.BUILD_INFO['commit']}")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-a", "--alias")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-c", "--ctx-size", type=int, default=0)
    parser.add_argument("-np", "--parallel", type=int)
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("-ngl", "--n-gpu-layers", type=int)
    parser.add_argument("--mmproj")
    parser.add_argument("--embeddings", action="store_true")
    parser.add_argument("--jinja", action="store_true")
    parser.add_argument("--metrics", action="store_true")
    return parser.parse_args()


def parameters(given):
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    if given.alias:
        params.model_alias = {given.alias}
    params.hostnames, params.port = [given.host], given.port
    params.n_ctx = given.ctx_size
    params.n_parallel = given.parallel or AUTO_SLOTS
    params.kv_unified = given.parallel is None
    if given.threads:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    if given.n_gpu_layers is not None:
        params.n_gpu_layers = given.n_gpu_layers
    if given.mmproj:
        params.mmproj.path = given.mmproj
    params.embedding = given.embeddings
    params.endpoint_metrics = given.metrics
    params.endpoint_slots = True
    return params


def main():
    given = arguments()
    try:
        server = xllamacpp.Server(parameters(given))
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"main: server is listening on {server.listening_address}", file=sys.stderr, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
