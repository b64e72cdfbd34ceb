#!/bin/bash
# Makes the sandbox image of pods, an archive that `ctr images import` reads, of one static program. The same program gives the same bytes.
#
#   images/master/pause.sh PROGRAM OUTPUT
set -euo pipefail
program=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of this format tar 1.34 and 1.35, Debian 12's and the tools', make the same bytes.
pack() { tar --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf - "${@:2}"; }

mkdir "$work/layer" "$work/image"
install -m 0755 "$program" "$work/layer/pause"
pack "$work/layer" pause >"$work/image/layer.tar"
layer=$(sha256sum <"$work/image/layer.tar" | cut -d' ' -f1)
printf '{"architecture":"amd64","os":"linux","config":{"User":"65535:65535","Entrypoint":["/pause"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$layer" >"$work/image/config.json"
# containerd's sandbox_image names it.
printf '[{"Config":"config.json","RepoTags":["quorate.local/pause:1"],"Layers":["layer.tar"]}]' >"$work/image/manifest.json"
chmod 0644 "$work"/image/*
pack "$work/image" config.json layer.tar manifest.json >"$work/out"
install -D -m 0644 "$work/out" "$out"
