#!/usr/bin/env bash
# Writes images/master/manifest anew: the newest versions that Debian's archive has of images/master/packages and of what they depend on, with their
# hashes, and the pins of the programs that are built. Run it to take security updates, then look at the difference and bake.
#
#   images/master/pin.sh              all
#   images/master/pin.sh programs     only the lines of programs: after a change of a go.mod
#   images/master/pin.sh extra        the manifest of QUORATE_EXTRA: what its packages need above those of images/master/manifest
set -euo pipefail
. "$(dirname "$0")/lib.sh"
extra_folder
cd "$(dirname "$0")/../.."
manifest=$pins/manifest
if [[ ${1:-all} == extra ]]; then
  if [[ ! -f ${QUORATE_EXTRA:-}/packages ]]; then
    echo "images/master/pin.sh: no packages in QUORATE_EXTRA ('${QUORATE_EXTRA:-}'): want a folder with the file packages" >&2
    exit 2
  fi
  manifest=$QUORATE_EXTRA/manifest
fi
new=$(mktemp -p "$(dirname "$manifest")")
trap 'rm -rf "$new" "${work:-}"' EXIT

# resolve prints the lines of all packages that a set needs on an empty machine.
resolve() {
  local role=$1 suite=$2
  shift 2
  (
    use_suite "$suite"
    apt-get update -q >&2
    apt-get install --print-uris -qq '?essential' "$@"
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
  suite=$(awk '$1 == "suite" && $2 == "system" { print $3 }' $pins/packages)
  work=$(mktemp -d)
  QUORATE_EXTRA='' images/master/fetch.sh image "$work/debs"
  use_suite "$suite"
  awk '{ print } /^Package: / { print "Status: install ok installed" }' "$work/debs/Packages" >"$cache/apt/$suite/status"
  apt-get update -q >&2
  apt-get install --print-uris -qq --no-remove "$@" >"$work/uris"
  pins_of image <"$work/uris" >"$work/pins"
  changed=$(awk 'NR == FNR { image[$3] = $2 == "image"; next } image[$3] { print $3, $4 }' <(grep '^deb image ' $pins/manifest) "$work/pins")
  if [[ -n $changed ]]; then
    echo "images/master/pin.sh: these packages need newer ones than images/master/manifest pins: run images/master/pin.sh first. Newer: $changed" >&2
    return 1
  fi
  cat "$work/pins"
}

if [[ ${1:-all} == extra ]]; then
  {
    echo "# The versions and SHA-256 of what packages names, and of what these need. Written by images/master/pin.sh extra."
    echo "of $(grep '^deb image ' $pins/manifest | sha256sum | cut -d' ' -f1)"
    resolve_extra $(extra_names)
  } >"$new"
  chmod 0644 "$new"
  mv "$new" "$manifest"
  exit
fi

{
  echo "# What an image of a master is made of: the versions and SHA-256 of Debian's packages, of the programs their modules' (go.mod and go.sum)."
  echo "# Written by images/master/pin.sh. The epoch is the time that all files of the image bear."
  if [[ ${1:-all} == programs ]]; then
    grep '^epoch ' $pins/manifest
    programs | sed 's/^/program /'
    grep '^deb ' $pins/manifest
  else
    echo "epoch $(date +%s)"
    programs | sed 's/^/program /'
    resolve image "$(awk '$1 == "suite" && $2 == "system" { print $3 }' $pins/packages)" $(names system master)
    resolve tools "$(awk '$1 == "suite" && $2 == "tools" { print $3 }' $pins/packages)" $(names tools)
  fi
} >"$new"
chmod 0644 "$new"
mv "$new" "$manifest"
