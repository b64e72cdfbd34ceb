#!/usr/bin/env bash
# Runs a command of a bake with the tree of tools as root, in namespaces of its own: mounts, processes, host name, and no network.
#
#   images/master/in_tools.sh TOOLS WORK COMMAND        WORK's debs, in and out are /debs, /in and /out
set -euo pipefail
tools=$1 work=$2
shift 2
exec unshare --mount --pid --net --uts --ipc --fork --kill-child --propagation private bash -euc '
  tools=$1 work=$2
  shift 2
  # The tree stays as it is: what the tools write goes to a tmpfs above it.
  mount -t tmpfs -o size=4g tmpfs /mnt
  mkdir -p /mnt/{upper,work,root}
  mount -t overlay -o "lowerdir=$tools,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
  cd /mnt/root
  for d in debs in out; do mkdir -p "$work/$d"; mount --bind "$work/$d" "$d"; done
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t tmpfs -o mode=755 tmpfs dev
  for d in null zero full random urandom tty; do : >"dev/$d"; mount --bind "/dev/$d" "dev/$d"; done
  ln -s /proc/self/fd dev/fd
  mkdir -p dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  pivot_root . old
  cd /
  umount -l /old
  exec /usr/bin/env -i "$@"
' bash "$tools" "$work" "$@"
