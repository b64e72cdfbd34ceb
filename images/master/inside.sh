#!/bin/bash
# The bake itself, in the tree of tools and without a network; bake.sh starts it.
#
#   /debs        the manifest's packages of the image, a repository for apt
#   /in          pins (images/master), programs (for /usr/local/bin), units (systemd/units), extra (what a site adds, or nothing)
#   /out         root.tar, boot.efi, disk.raw, quorate-master.tar.gz
set -euo pipefail
umask 022
hostname bake
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TZ=UTC DEBIAN_FRONTEND=noninteractive
. /in/pins/failures.sh
ARCH=$(awk '$1 == "architecture" { print $2 }' /in/pins/manifest)
export ARCH=${ARCH:-amd64}
efi=x64 console=console=ttyS0,115200
# Google's machines of arm64 are to have an ARM UART. A kernel takes the last console that is there.
if [[ $ARCH == arm64 ]]; then efi=aa64 console+=" console=ttyAMA0,115200"; fi
SOURCE_DATE_EPOCH=$(awk '$1 == "epoch" { print $2 }' /in/pins/manifest)
export SOURCE_DATE_EPOCH
# Identities that must not be random: the same bytes from each bake. No machine's secret hangs on them.
root_uuid=7d2b1c1e-7f0a-4f55-9d4a-6b1c4a7e0b02

manifests=(/in/pins/manifest)
if [[ -f /in/extra/manifest ]]; then manifests+=(/in/extra/manifest); fi
packages=$(cat "${manifests[@]}" | awk '$1 == "deb" && $2 == "image" { print $3 }' | paste -sd,)
# in_tools.sh sees to it that programs of another architecture run here. mmdebstrap would look for it in another way.
mmdebstrap --quiet --variant=apt --mode=root --format=tar --architectures="$ARCH" --skip=check/qemu --include="$packages" \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
  --customize-hook='/in/pins/finish.sh "$1"' \
  '' /out/root.tar 'deb [trusted=yes] copy:/debs ./'

ukify build --linux=/out/vmlinuz --initrd=/out/initrd --output=/out/boot.efi \
  --efi-arch=$efi --stub=/usr/lib/systemd/boot/efi/linux$efi.efi.stub \
  --os-release="NAME=quorate" --cmdline="root=PARTUUID=$root_uuid rw $console systemd.firstboot=off" >/dev/null

# repart gives the file in the EFI partition the time of its source.
touch -d "@$SOURCE_DATE_EPOCH" /out/boot.efi

# As large as its content and a third more, in whole MiB: systemd lets it grow to its disk at boot.
size=$(($(stat -c %s /out/root.tar) * 4 / 3 / 1048576 + 64))
rm -f /out/root.img
truncate -s ${size}M /out/root.img
mke2fs -q -t ext4 -L quorate-root -U $root_uuid -m 1 -E hash_seed=$root_uuid,lazy_itable_init=0,lazy_journal_init=0 -d /out/root.tar /out/root.img
rm -f /out/disk.raw
systemd-repart --empty=create --size=3G --sector-size=512 --offline=yes --dry-run=no --seed=$root_uuid --definitions=/in/pins/repart.d --no-pager \
  /out/disk.raw >/dev/null
rm -f /out/root.img /out/vmlinuz /out/initrd
/in/pins/gce.sh /out "$SOURCE_DATE_EPOCH"
