#!/usr/bin/env bash
# Runs a command of a bake with the tree of tools as root, in namespaces of its own: mounts, processes, host name, and no network.
#
#   images/master/in_tools.sh TOOLS WORK COMMAND        WORK's debs, in and out are /debs, /in and /out
#
# With ARCH=arm64 the kernel runs programs of that architecture by the tools' qemu, there alone: a user namespace has a binfmt_misc of its own, which needs
# Linux 6.7. Where the machine itself runs them, and its kernel has the emulator open (flag F), that is used.
set -euo pipefail
tools=$1 work=$2 arch=${ARCH:-amd64}
shift 2
if [[ ! $arch =~ ^(amd64|arm64)$ ]]; then
  echo "images/master/in_tools.sh: ARCH is '$arch': want amd64 or arm64" >&2
  exit 2
fi

# machine_runs says whether this machine runs programs of arm64 in any namespace.
machine_runs() {
  local f
  if [[ $(uname -m) == aarch64 ]]; then return 0; fi
  for f in $(grep -slE '^magic 7f454c460201.{20}0200b700$' /proc/sys/fs/binfmt_misc/* || true); do
    if grep -qx enabled "$f" && grep -q '^flags:.*F' "$f"; then return 0; fi
  done
  return 1
}

emulator=
if [[ $arch != amd64 ]] && ! machine_runs; then
  if [[ ! -d /proc/sys/fs/binfmt_misc ]]; then modprobe -q binfmt_misc || true; fi
  read -r major minor < <(uname -r | tr '.-' ' ' | cut -d' ' -f1,2)
  if [[ ! -d /proc/sys/fs/binfmt_misc ]] || ((major < 6 || major == 6 && minor < 7)); then
    echo "images/master/in_tools.sh: this machine runs no programs of $arch, and its kernel ($(uname -r)) cannot be taught to in a namespace:" \
      "want Linux 6.7 with binfmt_misc, or Debian's qemu-user-static" >&2
    exit 1
  fi
  emulator=/usr/bin/qemu-aarch64
fi

# enter runs a program in a user namespace whose users are the machine's: who is in it has no right to write that down, so a child does. A shell that
# waits for it has lost root's rights; the program that it becomes then has them again, in the namespace.
enter() {
  local own
  own=$(readlink /proc/self/ns/user)
  (
    while [[ $(readlink /proc/$$/ns/user) == "$own" ]]; do sleep 0.05; done
    echo 0 0 4294967295 >/proc/$$/uid_map
    echo 0 0 4294967295 >/proc/$$/gid_map
  ) &
  exec unshare --user bash -c 'while [[ -z $(</proc/$$/gid_map) ]]; do sleep 0.05; done; exec "$@"' bash "$@"
}

start=exec
if [[ -n $emulator ]]; then start=enter; fi
$start unshare --mount --pid --net --uts --ipc --fork --kill-child --propagation private bash -euc '
  tools=$1 work=$2 emulator=$3
  shift 3
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
  if [[ -n $emulator ]]; then
    # F: it is opened now, so no root file system needs it. P: the program sees its own name.
    mount -t binfmt_misc binfmt_misc proc/sys/fs/binfmt_misc
    elf="\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00"
    mask="\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff"
    printf %s ":qemu-aarch64:M::$elf:$mask:$PWD$emulator:FP" >proc/sys/fs/binfmt_misc/register
  fi
  pivot_root . old
  cd /
  umount -l /old
  exec /usr/bin/env -i "$@"
' bash "$tools" "$work" "$emulator" "$@"
