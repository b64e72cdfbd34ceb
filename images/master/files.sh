#!/bin/bash
# Puts a master's own files, programs and enabled units into a root file system whose packages are there: that of a bake, or a running machine's.
#
#   images/master/files.sh ROOT PINS PROGRAMS UNITS COMMIT        folders: images/master, the programs, systemd/units; and what all that is of
set -euo pipefail
. "$(dirname "$0")/failures.sh"
root=$1 pins=$2 programs=$3 units=$4 commit=$5
umask 022
for f in $(cd "$pins/files/master" && find . -type f); do
  mode=0644
  if [[ -x $pins/files/master/$f ]]; then mode=0755; fi
  install -D -m $mode "$pins/files/master/$f" "$root/$f"
done
chroot "$root" systemd-sysusers quorate.conf
install -m 0644 "$units"/*.service "$root/usr/lib/systemd/system/"
install -m 0644 -D "$pins/manifest" "$root/usr/share/quorate/manifest"
install -d "$root/usr/local/bin"
for p in quorate kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet etcdctl etcdutl; do
  install -m 0755 "$programs/$p" "$root/usr/local/bin/$p"
done
# `quorate version --image` prints it.
printf '{"commit": "%s", "manifest": "sha256:%s", "pinned": "%s"}\n' "$commit" "$(sha256sum <"$pins/manifest" | cut -d' ' -f1)" \
  "$(date -u -d "@$(awk '$1 == "epoch" { print $2 }' "$pins/manifest")" +%Y-%m-%dT%H:%M:%SZ)" >"$root/usr/lib/quorate/image.json"
chmod 0644 "$root/usr/lib/quorate/image.json"
"$pins/pause.sh" "$programs/pause" "$root/usr/share/quorate/pause.tar"
chroot "$root" systemctl -q enable containerd.service chrony.service chrony-wait.service kubelet.service quorate.service quorate-hostname.service \
  quorate-data-growfs.service quorate-pause-image.timer quorate-addon-images.timer
