#!/usr/bin/env bash
# Times weft's training step beside the same step in JAX and prints the table of BENCHMARKS.md. See `bash bench/run.sh --help`.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./bench "$@"
