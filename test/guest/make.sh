#!/usr/bin/env bash
# Makes what the machine of TestCase16AReplicaWhoseClockIsAnHourOff boots from, of Debian's packages, without installing any of them:
#
#   test/guest/make.sh OUTPUT        OUTPUT/vmlinuz and OUTPUT/initramfs: the distribution's kernel, busybox, the modules that the machine needs, init;
#                              OUTPUT/busybox, for what the tests of the image ask of a network
#
# The packages are downloaded once for each version of the kernel, into the cache.
set -euo pipefail
out=$(mkdir -p "${1:?usage: test/guest/make.sh OUTPUT}" && cd "$1" && pwd)
cd "$(dirname "$0")"
command -v apt-get >/dev/null || { echo "no apt-get here, so no kernel for a machine of its own: its test will be skipped" >&2; exit 1; }
cache=${QUORATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quorate}/guest

# The kernel's package hangs on one without a version.
kernel() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }'; }
package=$(kernel)
if [[ -z $package && $(id -u) == 0 ]]; then
  apt-get update -q >&2
  package=$(kernel)
fi
[[ -n $package ]] || { echo "apt knows no kernel: run apt-get update as root" >&2; exit 1; }

tree=$cache/$package
if [[ ! -d $tree ]]; then
  mkdir -p "$cache"
  tmp=$(mktemp -d -p "$cache")
  trap 'rm -rf "$tmp"' EXIT
  (cd "$tmp" && apt-get download -q "$package" busybox-static >&2)
  for deb in "$tmp"/*.deb; do dpkg -x "$deb" "$tmp/whole"; done
  mkdir -p "$tmp/tree/modules"
  cp "$tmp"/whole/boot/vmlinuz-* "$tmp/tree/vmlinuz"
  cp "$tmp"/whole/bin/busybox "$tmp/tree/" 2>/dev/null || cp "$tmp"/whole/usr/bin/busybox "$tmp/tree/"
  for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk failover net_failover virtio_net \
    netfs fscache 9pnet 9pnet_virtio 9p crc16 crc32c_generic mbcache jbd2 ext4 overlay; do
    find "$tmp/whole" -name "$module.ko*" -exec cp {} "$tmp/tree/modules/" \; # some are built in
  done
  mv -T "$tmp/tree" "$tree" 2>/dev/null || [[ -d $tree ]] # another may have been faster
fi

root=$(mktemp -d)
trap 'rm -rf "$root" "${tmp:-$root}"' EXIT
mkdir "$root/bin"
cp "$tree/busybox" "$root/bin/"
cp -r "$tree/modules" init "$root/"
(cd "$root" && find . | bin/busybox cpio -o -H newc 2>/dev/null) >"$out/initramfs.new"
mv "$out/initramfs.new" "$out/initramfs"
cp --remove-destination "$tree/vmlinuz" "$tree/busybox" "$out/" # a test may run them
