#!/bin/bash
# Packs a disk as GCE takes it: a file disk.raw, with its holes, in an archive of tar's old GNU format, compressed.
#
#   images/master/gce.sh FOLDER EPOCH        makes quorate-master.tar.gz of disk.raw, both in FOLDER
set -euo pipefail
. "$(dirname "$0")/failures.sh"
folder=$1 epoch=$2
# tar looks for holes in a sparse file alone. Without one the archive would be another.
if (($(stat -c '%b * %B' "$folder/disk.raw") >= $(stat -c %s "$folder/disk.raw"))); then
  echo "images/master/gce.sh: disk.raw takes all of its size: bake on a file system that has sparse files" >&2
  exit 1
fi
# Raw: holes are where zeros are read. Where a file system says they are differs from one to another.
tar --format=oldgnu --sparse --hole-detection=raw --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=0644 \
  -C "$folder" -cf - disk.raw | gzip -n >"$folder/quorate-master.tar.gz"
