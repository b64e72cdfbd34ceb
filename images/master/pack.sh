#!/bin/bash
# Makes a container image of a folder, an archive that `ctr images import` reads. The same folder gives the same bytes.
#
#   images/master/pack.sh FOLDER NAME CONFIG OUTPUT        NAME with its tag; CONFIG is the image's, in JSON; ARCH is the architecture, or amd64
set -euo pipefail
. "$(dirname "$0")/failures.sh"
folder=$1 name=$2 config=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of this format tar 1.34 and 1.35, Debian 12's and the tools', make the same bytes.
pack() { tar --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf - "${@:2}"; }

mkdir "$work/image"
mapfile -t names < <(cd "$folder" && LC_ALL=C ls -A)
pack "$folder" "${names[@]}" >"$work/image/layer.tar"
layer=$(sha256sum <"$work/image/layer.tar" | cut -d' ' -f1)
printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "${ARCH:-amd64}" "$config" "$layer" \
  >"$work/image/config.json"
printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$name" >"$work/image/manifest.json"
chmod 0644 "$work"/image/*
pack "$work/image" config.json layer.tar manifest.json >"$work/out"
install -D -m 0644 "$work/out" "$out"
