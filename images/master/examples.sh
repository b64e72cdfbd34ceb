#!/bin/bash
# Makes the container images of the example add-ons: of the programs coredns and kube-proxy, and of Debian's nft and shell, with their libraries, from a
# root file system. addons/examples has the manifests that name them.
#
#   images/master/examples.sh ROOT PROGRAMS OUTPUT
set -euo pipefail
. "$(dirname "$0")/failures.sh"
root=$1 programs=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# debian copies programs of the root file system, and the libraries that they are linked to, into a folder at the same paths.
debian() {
  local to=$1 f
  shift
  for f in "$@" $(chroot "$root" ldd "$@" | grep -oE '/[^ :()]+' | LC_ALL=C sort -u); do
    install -D -m 0755 "$(realpath "$root")$(chroot "$root" realpath "$f")" "$to$f"
  done
}
image() { "$(dirname "$0")/pack.sh" "$work/$1" "quorate.local/$1:1" "$2" "$out/$1.tar"; }
path='"Env":["PATH=/usr/sbin:/usr/bin:/bin"]'

debian "$work/nftables" /usr/sbin/nft /bin/sh /bin/sleep
image nftables "{$path}"
debian "$work/kube-proxy" /usr/sbin/nft
# Without it nft lists protocols as numbers, so kube-proxy takes the elements of its maps for another's and deletes them.
install -D -m 0644 "$(realpath "$root")/etc/protocols" "$work/kube-proxy/etc/protocols"
install -D -m 0755 "$programs/kube-proxy" "$work/kube-proxy/usr/bin/kube-proxy"
image kube-proxy "{$path,\"Entrypoint\":[\"/usr/bin/kube-proxy\"]}"
install -D -m 0755 "$programs/coredns" "$work/coredns/usr/bin/coredns"
image coredns '{"User":"65532:65532","Entrypoint":["/usr/bin/coredns"]}'
