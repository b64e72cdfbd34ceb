#!/usr/bin/env bash
# Installs a master's packages on the running Debian in the pinned versions: those of the role master, those that a site
# adds, and what these want in one version alone, as curl wants libcurl4. All else that they need is the machine's.
#
#   images/master/debs.sh DEBS        DEBS is the folder for the packages
#
# What is newer on the machine is exchanged for the pinned version, as the master is to be the image's. Nothing that
# somebody installed is removed for that: what needs the newer version is named, and then nothing is changed.
set -euo pipefail
if [[ -z ${1:-} ]]; then
  echo "usage, as root: images/master/debs.sh DEBS" >&2
  exit 2
fi
debs=$(mkdir -p "$1" && cd "$1" && pwd)
. "$(dirname "$0")/lib.sh"
extra_folder
cd "$(dirname "$0")/../.."

# exact prints which packages the fetched ones want in one version alone, if that is the pinned one. The archive has a
# newer one from the next update on, and apt would try that.
exact() {
  sed -nE 's/^(Pre-)?Depends: //p' "$debs/Packages" | tr ',|' '\n\n' |
    sed -nE 's/^ *([a-z0-9.+-]+)(:[a-z0-9]+)? *\(= *([^ )]+)\) *$/\1 \3/p' |
    awk 'NR == FNR { pinned[$1 " " $2] = 1; next } $0 in pinned { print $1 }' <(pinned image) -
}
named=$({ names master; extra_names; } | sort -u)
wanted=$named fetched=
while [[ $wanted != "$fetched" ]]; do
  images/master/fetch.sh image "$debs" $wanted
  fetched=$wanted
  wanted=$({ echo "$named"; exact; } | sort -u)
done

# The files of the last run may differ from the packages' own; ours stay.
get=(apt-get install -q -y --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-confold
  "$debs"/*.deb)
apt-get update -q
if ! plan=$("${get[@]}" --simulate); then
  echo "$plan" >&2
  echo "images/master/debs.sh: apt cannot install the pinned versions: above is what stands against them" >&2
  exit 1
fi
# chrony takes the place of another daemon that sets the clock.
removed=()
for name in $(awk '$1 == "Remv" || $1 == "Purg" { print $2 }' <<<"$plan"); do
  provides=$(dpkg-query --show --showformat '${Provides}' "$name")
  if [[ ! $provides =~ (^|[ ,])time-daemon($|[ ,]) ]]; then removed+=("$name"); fi
done
if ((${#removed[@]})); then
  echo "$plan" >&2
  echo "images/master/debs.sh: with the pinned versions apt would remove ${removed[*]}: remove that by hand, if the" \
    "machine can do without. If it needs a newer version, pin that: images/master/pin.sh. Nothing is changed" >&2
  exit 1
fi
"${get[@]}"
