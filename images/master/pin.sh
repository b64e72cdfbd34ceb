#!/usr/bin/env bash
# Writes images/master/manifest anew: the newest versions that Debian's archive has of images/master/packages and of what they depend on, with their
# hashes, and the pins of the programs that are built. Run it to take security updates, then look at the difference and bake.
#
#   images/master/pin.sh              all
#   images/master/pin.sh programs     only the lines of programs: after a change of a go.mod
#   images/master/pin.sh extra        the manifest of QUORATE_EXTRA: what its packages need above those of images/master/manifest
#
# amd64 has manifest, arm64 has manifest.arm64. Both are written; with ARCH that of one, and the one of QUORATE_EXTRA is amd64's unless ARCH says another.
set -euo pipefail
if [[ -z ${ARCH:-} && ${1:-all} != extra ]]; then
  for ARCH in amd64 arm64; do ARCH=$ARCH "$0" "$@"; done
  exit
fi
. "$(dirname "$0")/lib.sh"
extra_folder
cd "$(dirname "$0")/../.."
out=$manifest
if [[ ${1:-all} == extra ]]; then
  if [[ ! -f ${QUORATE_EXTRA:-}/packages ]]; then
    echo "images/master/pin.sh: no packages in QUORATE_EXTRA ('${QUORATE_EXTRA:-}'): want a folder with the file packages" >&2
    exit 2
  fi
  out=$(extra_manifest)
fi
new=$(mktemp -p "$(dirname "$out")")
trap 'rm -rf "$new" "${work:-}"' EXIT

# resolve prints the lines of all packages that a set needs on a machine of an architecture that has none.
resolve() {
  local role=$1 suite=$2 architecture=$3
  shift 3
  (
    use_suite "$suite" "$architecture"
    apt-get update -q >&2
    apt-get install --print-uris -qq "$@"
  ) | pins_of "$role"
}

# pins_of makes lines of the manifest of what apt would download.
pins_of() {
  awk -v role="$1" '
    { split($2, part, "_"); sub(/\.deb$/, "", part[3]); gsub(/%3a/, ":", part[2])
      if ($4 !~ /^SHA256:/) { print "no SHA256 of " $2 >"/dev/stderr"; exit 1 }
      print "deb", role, part[1], part[2], part[3], substr($4, 8) }' | LC_ALL=C sort
}

# resolve_extra prints the lines of what packages need on a machine that has those of the image. Apt may neither exchange nor remove one of these.
resolve_extra() {
  local suite changed
  suite=$(suite system)
  work=$(mktemp -d)
  QUORATE_EXTRA='' images/master/fetch.sh image "$work/debs"
  use_suite "$suite" $arch
  awk '{ print } /^Package: / { print "Status: install ok installed" }' "$work/debs/Packages" >"$cache/apt/$suite$(of_arch $arch -)/status"
  apt-get update -q >&2
  apt-get install --print-uris -qq --no-remove "$@" >"$work/uris"
  pins_of image <"$work/uris" >"$work/pins"
  changed=$(awk 'NR == FNR { image[$3] = $2 == "image"; next } image[$3] { print $3, $4 }' <(grep '^deb image ' $manifest) "$work/pins")
  if [[ -n $changed ]]; then
    echo "images/master/pin.sh: these packages need newer ones than $manifest pins: run images/master/pin.sh first. Newer: $changed" >&2
    return 1
  fi
  cat "$work/pins"
}

if [[ ${1:-all} == extra ]]; then
  {
    echo "# The versions and SHA-256 of what packages names, and of what these need. Written by images/master/pin.sh extra."
    echo "of $(grep '^deb image ' $manifest | sha256sum | cut -d' ' -f1)"
    resolve_extra $(extra_names)
  } >"$new"
  chmod 0644 "$new"
  mv "$new" "$out"
  exit
fi

{
  echo "# What an image of a master is made of: the versions and SHA-256 of Debian's packages, of the programs their modules' (go.mod and go.sum)."
  echo "# Written by images/master/pin.sh. The epoch is the time that all files of the image bear."
  if [[ ${1:-all} == programs ]]; then
    grep -E '^(architecture|epoch) ' $manifest
    programs | sed 's/^/program /'
    grep '^deb ' $manifest
  else
    if [[ $arch != amd64 ]]; then echo "architecture $arch"; fi
    echo "epoch $(date +%s)"
    programs | sed 's/^/program /'
    resolve image "$(suite system)" $arch '?essential' $(names system master)
    resolve tools "$(suite tools)" amd64 '?essential' $(names tools)
    if [[ -n $(names stub) ]]; then resolve tools "$(suite tools)" $arch $(names stub); fi
  fi
} >"$new"
chmod 0644 "$new"
mv "$new" "$out"
