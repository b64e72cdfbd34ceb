#!/usr/bin/env bash
# Makes an apt repository of the manifest's packages, each checked against its hash:
#
#   images/master/fetch.sh image|tools OUTPUT [NAME...]        OUTPUT/NAME.deb and OUTPUT/Packages; all packages, or these
#
# A package is downloaded once, by apt and its ordinary sources, into a cache where its name is its hash. The archive keeps few versions: one that is
# gone, and not in the cache, is named, and the manifest must be written anew (images/master/pin.sh).
set -euo pipefail
role=${1:-} out=${2:-}
if [[ ! $role =~ ^(image|tools)$ || -z $out ]]; then
  echo "usage: images/master/fetch.sh image|tools OUTPUT [NAME...]" >&2
  exit 2
fi
shift 2
out=$(mkdir -p "$out" && cd "$out" && pwd)
. "$(dirname "$0")/lib.sh"
extra_folder
cd "$(dirname "$0")/../.."
mkdir -p "$cache/debs"

wanted() { if (($# == 0)); then pinned "$role"; else pinned "$role" | grep -E "^($(IFS='|'; echo "${*//+/\\+}")) "; fi; }
hash_of() { sha256sum "$1" | cut -d' ' -f1; }
missing=()
while read -r name version architecture hash; do
  # What lies in the cache is read again: a disk may have damaged it.
  if [[ -f $cache/debs/$hash && $(hash_of "$cache/debs/$hash") != "$hash" ]]; then rm "$cache/debs/$hash"; fi
  [[ -f $cache/debs/$hash ]] || missing+=("$architecture $name=$version")
done < <(wanted "$@")

if ((${#missing[@]})); then
  echo "downloading ${#missing[@]} packages of Debian" >&2
  tmp=$(mktemp -d -p "$cache/debs")
  trap 'rm -rf "$tmp"' EXIT
  own=$arch # what is for all architectures is taken with that of the others
  if [[ $role == tools ]]; then own=amd64; fi
  printf '%s\n' "${missing[@]}" | sed "s/^all /$own /" | LC_ALL=C sort >"$tmp/missing"
  for architecture in $(cut -d' ' -f1 "$tmp/missing" | uniq); do
    mapfile -t wanted < <(awk -v a="$architecture" '$1 == a { print $2 }' "$tmp/missing")
    use_suite "$(suite "${role/image/system}")" "$architecture"
    # apt downloads none where it does not know one: those are named below.
    apt-get update -q >/dev/null
    mapfile -t known < <(apt-cache show "${wanted[@]}" 2>/dev/null |
      awk '$1 == "Package:" { name = $2 } $1 == "Version:" { print name "=" $2 }' | sort -u |
      grep -xF -f <(printf '%s\n' "${wanted[@]}") || true)
    if ((${#known[@]})); then (cd "$tmp" && apt-get download -q "${known[@]}" >/dev/null); fi
  done
  for deb in "$tmp"/*.deb; do
    [[ -e $deb ]] || continue
    mv "$deb" "$cache/debs/$(hash_of "$deb")"
  done
fi

gone=0
while read -r name version architecture hash; do
  if [[ ! -f $cache/debs/$hash ]]; then
    echo "images/master/fetch.sh: $name $version ($architecture, sha256 $hash) is not to be had: the archive has moved on, or has another content under" \
      "this version. Run images/master/pin.sh and look at the difference" >&2
    gone=1
    continue
  fi
  ln -f "$cache/debs/$hash" "$out/$name.deb" 2>/dev/null || cp "$cache/debs/$hash" "$out/$name.deb"
  dpkg-deb -f "$out/$name.deb"
  printf 'Filename: ./%s.deb\nSize: %d\nSHA256: %s\n\n' "$name" "$(stat -c %s "$out/$name.deb")" "$hash"
done < <(wanted "$@") >"$out/Packages"
exit $gone
