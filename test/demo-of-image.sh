#!/usr/bin/env bash
# The demo in VMs that boot the baked image: up, looked at as its operator would, and down again. It has a folder of its own; a
# demo that is up already stays, and keeps this one from its network.
#
#   test/demo-of-image.sh
set -euo pipefail
cd "$(dirname "$0")/.."
state=_demo-of-image
trap 'test/demo.sh down "$state"' EXIT
QUORATE_DEMO_VMS=systemd test/demo.sh up "$state"
test/check-demo.sh "$state"
trap - EXIT
test/demo.sh down "$state"
