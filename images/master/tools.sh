#!/usr/bin/env bash
# Unpacks the manifest's tools into the cache, once for each set of them, and prints the folder. Nothing of them is configured, so none can run a script
# on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
. images/master/lib.sh
tree=$cache/tools-$({ pinned tools; cat images/master/tools.sh; } | sha256sum | cut -c1-16)
if [[ ! -d $tree ]]; then
  umask 022
  mkdir -p "$cache"
  tmp=$(mktemp -d -p "$cache")
  trap 'rm -rf "$tmp"' EXIT
  images/master/fetch.sh tools "$tmp/debs" >&2
  mkdir -m 0755 "$tmp/tree"
  # First the package with the links from / to /usr.
  dpkg-deb -x "$tmp/debs/base-files.deb" "$tmp/tree"
  for deb in "$tmp"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -C "$tmp/tree" --keep-directory-symlink -xpf -; done
  echo root:x:0:0:root:/root:/bin/sh >"$tmp/tree/etc/passwd"
  echo root:x:0: >"$tmp/tree/etc/group"
  ln -sf mawk "$tmp/tree/usr/bin/awk"
  mkdir -p "$tmp/tree"/{proc,sys,dev,tmp,debs,in,out,old}
  chmod 1777 "$tmp/tree/tmp"
  mv -T "$tmp/tree" "$tree" 2>/dev/null || [[ -d $tree ]] # another may have been faster
fi
echo "$tree"
