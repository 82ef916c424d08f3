#!/bin/sh
# Eight shards of a run on a Ray cluster; what they leave comes back here and is merged.
#
#     MODEL=my-model URL=http://host:8000/v1 RAY_ADDRESS=auto sh examples/ray_cluster.sh
#
# RAY_ADDRESS is the cluster's ("auto" on one of its machines, or host:6379); without it Ray starts on this machine. The
# package has to be installed on every machine of the cluster, and the endpoint has to be reachable from there. Every
# shard takes one core. After a failure the same command repeats only what is missing.
set -eu
: "${MODEL:?name the model}" "${URL:?give the endpoint, ending in /v1}"

agentcompass-bfcl run "$MODEL" --base-url "$URL" --draw full --shards 8 --executor ray --concurrency 64 \
    --temperature 0 --seed 42 --results-dir "${RESULTS:-results}" --run-name ray --reuse
