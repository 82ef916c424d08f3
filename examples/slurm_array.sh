#!/bin/sh
# Four shards of a run as a Slurm array, and a job that merges them once all have ended well:
#
#     MODEL=my-model URL=http://host:8000/v1 sh examples/slurm_array.sh
#
# Each task writes below the same results folder, on a file system that all nodes see. After a task failed, submit the
# whole array again: --reuse repeats only what is missing. A part of it (--array=2) is refused, since its tasks could not
# tell which of the four they are; BFCL_SHARD_COUNT is there for that.
set -eu
: "${MODEL:?name the model}" "${URL:?give the endpoint, ending in /v1}"
results=${RESULTS:-$PWD/results}
name=${NAME:-slurm}

array=$(sbatch --parsable --array=0-3 --cpus-per-task=1 --mem=2G --export=ALL,BFCL_SHARD_COUNT=4 --wrap "
    agentcompass-bfcl run '$MODEL' --base-url '$URL' --draw full --shard auto --reuse \
        --temperature 0 --seed 42 --progress plain --results-dir '$results' --run-name '$name'
")
sbatch --dependency="afterok:$array" --kill-on-invalid-dep=yes --cpus-per-task=1 --mem=2G --wrap "
    agentcompass-bfcl merge '$results/$name' --out '$results/$name-merged/whole'
"
