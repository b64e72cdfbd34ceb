#!/bin/bash
# Makes the tree of packages a master's: its own files and programs, and nothing that one machine alone should have. For mmdebstrap's hook.
set -euo pipefail
. "$(dirname "$0")/failures.sh"
root=$1
/in/pins/files.sh "$root" /in/pins /in/programs /in/units "$(cat /in/commit)"
if [[ -e /in/programs/coredns ]]; then /in/pins/examples.sh "$root" /in/programs "$root/usr/share/quorate/images"; fi
cp -r --no-preserve=ownership /in/pins/files/system/. "$root/"
if [[ -d /in/extra ]]; then /in/pins/extra.sh "$root" /in/extra; fi

chroot "$root" systemctl -q enable quorate-growfs.service systemd-networkd.service systemd-resolved.service
chroot "$root" systemctl -q disable e2scrub_all.timer e2scrub_reap.service nvmefc-boot-connections.service nvmf-autoconnect.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"

# The kernel and what it starts with are in a file of the EFI partition.
mv "$root"/boot/vmlinuz-* /out/vmlinuz
mv "$root"/boot/initrd.img-* /out/initrd
rm -f "$root"/{boot/*,vmlinuz,vmlinuz.old,initrd.img,initrd.img.old}

# Each machine has these of its own, or none.
: >"$root/etc/machine-id"
: >"$root/etc/fstab"
rm -f "$root"/etc/hostname "$root"/etc/nvme/host{nqn,id} "$root"/etc/ssh/ssh_host_* "$root"/var/lib/dbus/machine-id "$root"/var/lib/systemd/random-seed
printf '127.0.0.1 localhost\n169.254.169.254 metadata.google.internal metadata\n::1 localhost\n' >"$root/etc/hosts"
# What packages note about the moment of their installation, and the repository of the bake.
rm -rf "$root"/var/log/* "$root"/var/cache/{apt,debconf,ldconfig}/* "$root"/var/lib/apt/lists/* "$root"/etc/apt/sources.list.d/* \
  "$root"/etc/apt/sources.list
rm -f "$root"/etc/{passwd,group,shadow,gshadow,subuid,subgid}- "$root"/var/lib/dpkg/*-old
