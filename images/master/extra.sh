#!/bin/bash
# Puts what a site adds to an image into a root file system whose packages and files are there: that of a bake, or a running machine's.
#
#   images/master/extra.sh ROOT LAIDOUT        LAIDOUT is what images/addextra wrote
set -euo pipefail
. "$(dirname "$0")/failures.sh"
root=$1 extra=$2
umask 022
cp -r --no-preserve=ownership "$extra/root/." "$root/"
if compgen -G "$extra/root/usr/local/share/ca-certificates/*.crt" >/dev/null; then chroot "$root" update-ca-certificates; fi
mapfile -t units <"$extra/enable"
if ((${#units[@]})); then chroot "$root" systemctl -q enable "${units[@]}"; fi
# `quorate version --image` prints it.
sed -i "s/}\$/, \"extra\": \"sha256:$(cat "$extra/hash")\"}/" "$root/usr/lib/quorate/image.json"
