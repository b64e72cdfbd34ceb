#!/usr/bin/env bash
# Builds the pinned programs of an image from their source modules and copies them to a folder.
#
#   images/build.sh kubernetes|coredns|etcd|etcd-former OUTPUT
#
# ARCH=arm64 builds them for machines of that architecture; amd64 where it is not given.
#
# The result is cached outside the repository under a key made of the pin (go.mod, go.sum, our own main), the toolchain and the flags,
# so a build happens once for each pin and architecture. A build that is interrupted leaves nothing under the key: the next one starts again.
set -euo pipefail
what=${1:-} out=${2:-}
if [[ -n $out ]]; then out=$(mkdir -p "$out" && cd "$out" && pwd); fi
cd "$(dirname "$0")"
if [[ ! -f ${what:-none}/go.mod || -z $out ]]; then
  echo "usage: images/build.sh kubernetes|coredns|etcd|etcd-former OUTPUT" >&2
  exit 2
fi
# The toolchain is the one that go.mod names, also where this machine has a newer one: the pin decides what is built.
toolchain=$(awk '$1 == "toolchain" { print $2 }' "$what/go.mod")
if [[ -z $toolchain ]]; then
  echo "images/build.sh: images/$what/go.mod has no toolchain line: want toolchain goX.Y.Z" >&2
  exit 2
fi
arch=${ARCH:-amd64}
if [[ ! $arch =~ ^(amd64|arm64)$ ]]; then
  echo "images/build.sh: ARCH is '$arch': want amd64 or arm64" >&2
  exit 2
fi
export GOARCH=$arch GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
cache=${QUORATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quorate}/images
version() { (cd "$what" && go list -m -f '{{.Version}}' "$1"); }

# Kubernetes takes its version from the linker; without it `--version` says v0.0.0-master and every skew check is blind.
kubernetes_ldflags() {
  local v minor ld="-s -w" p
  v=$(version k8s.io/kubernetes)
  minor=${v#v*.}
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ld+=" -X $p.gitVersion=$v -X $p.gitMajor=1 -X $p.gitMinor=${minor%%.*} -X $p.gitTreeState=archive"
    ld+=" -X $p.gitCommit=source-modules -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  echo "$ld"
}

# progress shows one line that moves on a terminal, and elsewhere a line for each quarter. It runs in the module's folder.
progress() {
  local total terminal=0
  total=$(go list -deps tool | wc -l)
  if [[ -t 2 && ${TERM:-dumb} != dumb ]]; then terminal=1; fi
  awk -v what="$what" -v total="$total" -v terminal=$terminal '
    /^[a-zA-Z0-9._\/-]+$/ {
      n++
      if (terminal) printf "\r\033[K  %s: %d of %d packages compiled", what, n, total
      else if (n * 4 >= total * (quarter + 1)) { quarter++; printf "  %s: %d of %d packages compiled\n", what, n, total }
      fflush(); next
    }
    /^go: downloading/ { next }
    { if (terminal && n) print ""; print; fflush() }
    END { if (terminal && n) print "" }' >&2
}

ld="-s -w"
[[ $what == kubernetes ]] && ld=$(kubernetes_ldflags)
key=$({ echo "$ld $GOFLAGS"; go version; cat "$what"/go.{mod,sum} $(find "$what" -name '*.go' | sort); } | sha256sum | cut -c1-16)
store=$cache/$what-$key
if [[ $arch != amd64 ]]; then store+=-$arch; fi

if [[ ! -d $store ]]; then
  mkdir -p "$cache"
  tmp=$(mktemp -d -p "$cache")
  trap 'rm -rf "$tmp"' EXIT
  echo "building $what from its source modules, once for this pin (kubernetes: 4 to 8 minutes on two cores)" >&2
  # One build command for all programs: the packages that they share are compiled once.
  # -v names each package as it is compiled; a person wants to see that something happens, not 2000 names.
  (cd "$what" && go build -v -ldflags "$ld" -o "$tmp/" tool 2> >(progress))
  if [[ -f $tmp/server ]]; then mv "$tmp/server" "$tmp/etcd"; fi # etcd-former's package is go.etcd.io/etcd/server/v3
  mv -T "$tmp" "$store" 2>/dev/null || [[ -d $store ]] # a build at the same time may have been first
fi
for f in "$store"/*; do
  cmp -s "$f" "$out/$(basename "$f")" || { cp "$f" "$out/.$(basename "$f").new" && mv "$out/.$(basename "$f").new" "$out/$(basename "$f")"; }
done
