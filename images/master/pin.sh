#!/usr/bin/env bash
# Writes images/master/manifest anew: the newest versions that Debian's archive has of images/master/packages and of what they depend on, with their
# hashes, and the pins of the programs that are built. Run it to take security updates, then look at the difference and bake.
#
#   images/master/pin.sh              all
#   images/master/pin.sh programs     only the lines of programs: after a change of a go.mod
set -euo pipefail
cd "$(dirname "$0")/../.."
. images/master/lib.sh
new=$(mktemp -p images/master)
trap 'rm -f "$new"' EXIT

# resolve prints the lines of all packages that a set needs on an empty machine.
resolve() {
  local role=$1 suite=$2
  shift 2
  (
    use_suite "$suite"
    apt-get update -q >&2
    apt-get install --print-uris -qq '?essential' "$@"
  ) | awk -v role="$role" '
    { split($2, part, "_"); sub(/\.deb$/, "", part[3]); gsub(/%3a/, ":", part[2])
      if ($4 !~ /^SHA256:/) { print "no SHA256 of " $2 >"/dev/stderr"; exit 1 }
      print "deb", role, part[1], part[2], part[3], substr($4, 8) }' | LC_ALL=C sort
}

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
mv "$new" $pins/manifest
