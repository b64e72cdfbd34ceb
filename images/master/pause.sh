#!/bin/bash
# Makes the sandbox image of pods of one static program. The same program gives the same bytes.
#
#   images/master/pause.sh PROGRAM OUTPUT
set -euo pipefail
. "$(dirname "$0")/failures.sh"
program=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install -m 0755 "$program" "$work/pause"
# containerd's sandbox_image names it.
"$(dirname "$0")/pack.sh" "$work" quorate.local/pause:1 '{"User":"65535:65535","Entrypoint":["/pause"]}' "$out"
