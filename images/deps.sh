#!/usr/bin/env bash
# Installs the few programs that the demo and the tests call, if they are missing: iproute2 (ip), nftables (nft),
# util-linux (losetup, nsenter), e2fsprogs (mkfs.ext4), xfsprogs (mkfs.xfs), curl and git. Go itself is the one thing that must be there before: 1.21 or
# newer, which fetches the version that go.mod asks for.
#
#   images/deps.sh [guest]        guest: qemu as well, for the one test in `make rounds` that emulates a machine;
#                                 with ARCH=arm64 the one that emulates a machine of arm64, for `make image-test ARCH=arm64`
set -euo pipefail
declare -A package=([ip]=iproute2 [nft]=nftables [losetup]=util-linux [nsenter]=util-linux [mount]=mount [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [git]=git [curl]=curl)
if [[ ${1:-} == guest ]]; then
  case ${ARCH:-amd64} in
  amd64) package[qemu-system-x86_64]=qemu-system-x86 ;;
  arm64) package[qemu-system-aarch64]=qemu-system-arm ;;
  *)
    echo "images/deps.sh: ARCH is '$ARCH': want amd64 or arm64" >&2
    exit 2
    ;;
  esac
fi
export PATH=$PATH:/usr/sbin:/sbin
export GOTOOLCHAIN=local
if ! go version 2>/dev/null | awk '{ split(substr($3, 3), v, "."); exit !(v[1] > 1 || v[2] >= 21) }'; then
  echo "Go 1.21 or newer is needed (found: $(go version 2>/dev/null || echo none)): install it, and have it on the PATH" >&2
  exit 1
fi
missing=()
for program in "${!package[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
if ((${#missing[@]} == 0)); then exit 0; fi
if [[ $(id -u) != 0 ]]; then
  echo "missing here: ${missing[*]}; install them, or run this as root" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "missing here: ${missing[*]}; this machine has no apt-get: install them by its own means" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
