#!/usr/bin/env bash
# Makes a running Debian 12 a master, for images that are baked with packer or by hand: the manifest's packages, the same files, programs and enabled units
# as images/bake.sh puts into its own. It starts nothing: the next boot does.
#
#   images/install.sh PROGRAMS        the folder with quorate and the Kubernetes programs: bin, after `make build kubernetes etcd`
#
# With QUORATE_EXAMPLES=yes it gets the container images of the example add-ons, too; with QUORATE_EXTRA=FOLDER what a site adds. The machine keeps its own kernel, network and disk layout. Run again, it changes nothing.
set -euo pipefail
# What is made below, such as a site's files, gets its rights from here.
umask 022
programs=${1:-}
if [[ -z $programs || $(id -u) != 0 ]]; then
  echo "usage, as root: images/install.sh PROGRAMS" >&2
  exit 2
fi
programs=$(cd "$programs" && pwd)
ARCH=$(dpkg --print-architecture 2>/dev/null || uname -m)
export ARCH
. "$(dirname "$0")/master/lib.sh"
extra_folder
cd "$(dirname "$0")/.."
. /etc/os-release
if [[ $ID != debian || $VERSION_CODENAME != "$(suite master)" ]]; then
  echo "images/install.sh: this is $PRETTY_NAME; the manifest's packages are of Debian $(suite master)" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -n ${QUORATE_EXTRA:-} ]]; then "$programs/addextra" -manifest $manifest "$QUORATE_EXTRA" "$work/extra"; fi
# Debian's packages start their services when they are installed; a master's first start is its next boot.
printf '#!/bin/sh\nexit 101\n' >"$work/policy"
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  install -m 0755 "$work/policy" /usr/sbin/policy-rc.d
  trap 'rm -rf "$work" /usr/sbin/policy-rc.d' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
images/master/debs.sh "$work/debs"

commit=$(commit)
lay_pins "$work/pins"
images/master/files.sh / "$work/pins" "$programs" systemd/units "$commit"
if with_examples; then images/master/examples.sh / "$programs" /usr/share/quorate/images; fi
if [[ -d $work/extra ]]; then images/master/extra.sh / "$work/extra"; fi
# The machine's own network may be systemd's, as the image's is.
system() { install -D -m 0644 "$pins/files/system/$1" "/$1"; }
if grep -qs '^nameserver 127\.0\.0\.53' /etc/resolv.conf || [[ $(readlink /etc/resolv.conf) == */systemd/resolve/stub-resolv.conf ]]; then
  system etc/kubernetes/kubelet.conf.d/10-resolved.conf
fi
if systemctl -q is-enabled systemd-networkd.service 2>/dev/null; then system usr/lib/systemd/networkd.conf.d/quorate.conf; fi
if [[ -d /run/systemd/system ]]; then systemctl daemon-reload; fi
echo "this machine is a master from its next boot on: its data disk must be attached as quorate-data"
