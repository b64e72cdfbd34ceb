#!/usr/bin/env bash
# The demo in VMs that boot the baked image: up, looked at as its operator would, and down again. One that is up already is
# another person's: it stays as it is.
#
#   test/demo-of-image.sh
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ! -e _demo ]] || { echo "a demo is up, or was (_demo is there): make demo-down, then again" >&2; exit 1; }
trap 'test/demo.sh down' EXIT
QUORATE_DEMO_VMS=systemd test/demo.sh up
test/check-demo.sh
trap - EXIT
test/demo.sh down
