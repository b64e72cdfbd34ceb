#!/usr/bin/env bash
# Puts Debian's monit into a file, without installing it: `make bench` runs it in VMs of its own, next to quorate.
#
#   test/bench/monit.sh OUTPUT        OUTPUT: the program
set -euo pipefail
out=$(realpath -m "${1:?usage: test/bench/monit.sh OUTPUT}")
if [[ -x $out ]]; then exit 0; fi
command -v apt-get >/dev/null || { echo "no apt-get here, so no monit to hold quorate against" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if ! (cd "$tmp" && apt-get download -q monit >&2); then
  [[ $(id -u) == 0 ]] || { echo "apt has no monit: run apt-get update as root" >&2; exit 1; }
  apt-get update -q >&2
  (cd "$tmp" && apt-get download -q monit >&2)
fi
dpkg -x "$tmp"/monit_*.deb "$tmp/whole"
mkdir -p "$(dirname "$out")"
cp "$tmp/whole/usr/bin/monit" "$out.new"
mv "$out.new" "$out"
