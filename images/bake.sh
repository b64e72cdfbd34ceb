#!/usr/bin/env bash
# Bakes the disk image of a master from images/master/manifest and the programs in bin/:
#
#   images/bake.sh OUTPUT        OUTPUT/root.tar, the tree; OUTPUT/disk.raw, the disk; OUTPUT/quorate-master.tar.gz, the disk as GCE takes it;
#                                OUTPUT/sbom.spdx.json and OUTPUT/provenance.json, what it is made of
#
# With ARCH=arm64 it is one for machines of that architecture, from images/master/manifest.arm64 and the programs in bin/arm64/.
# With QUORATE_EXAMPLES=yes it holds the container images of the example add-ons, too; with QUORATE_EXTRA=FOLDER what a site adds (images/README.md).
#
# The tools come from the manifest too and run in namespaces of their own, without a network. This machine gives its kernel, apt and dpkg-deb; its shell and
# coreutils copy what goes in. The same commit gives the same bytes. Needs root. What is interrupted leaves nothing mounted: all mounts are the namespace's.
set -euo pipefail
if [[ $# != 1 || $(id -u) != 0 ]]; then
  echo "usage, as root: images/bake.sh OUTPUT" >&2
  exit 2
fi
. "$(dirname "$0")/master/lib.sh"
out=$(mkdir -p "$1" && cd "$1" && pwd)
extra_folder
cd "$(dirname "$0")/.."
if ! diff <(programs | sed 's/^/program /') <(grep '^program ' $manifest) >&2; then
  echo "images/bake.sh: the manifest has other programs than the modules: run images/master/pin.sh programs" >&2
  exit 1
fi

work=$(mktemp -d -p "$out")
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$work/in/programs" "$work/out"
if [[ -n ${QUORATE_EXTRA:-} ]]; then
  bin/addextra -manifest $manifest "$QUORATE_EXTRA" "$work/in/extra"
  if [[ -f $(extra_manifest) ]]; then cp "$(extra_manifest)" "$work/in/extra/manifest"; fi
fi
images/master/fetch.sh image "$work/debs"
lay_pins "$work/in/pins"
cp -r systemd/units "$work/in/units"
commit=$(commit)
echo "$commit" >"$work/in/commit"
if with_examples; then cp $bin/{coredns,kube-proxy} "$work/in/programs/"; fi
cp $bin/{quorate,kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet,etcdctl,etcdutl,pause} "$work/in/programs/"
# A checkout's files have the rights that the umask of who checked it out gave them.
find "$work/in" -type d -exec chmod 0755 {} + -o -perm /0100 -exec chmod 0755 {} + -o -exec chmod 0644 {} +

tools=$(images/master/tools.sh)
echo "baking; about two minutes, for another architecture than this machine's much longer" >&2
code=0
images/master/in_tools.sh "$tools" "$work" /in/pins/inside.sh >"$work/log" 2>&1 || code=$?
if ((code)); then
  tail -n 30 "$work/log" >&2
  echo "images/bake.sh: the bake in the tree of tools ended with exit code $code; it printed $(wc -l <"$work/log") lines" >&2
  exit 1
fi
size=$((3 << 30))
[[ $(stat -c %s "$work/out/disk.raw") == "$size" ]] # GCE wants whole GiB
(cd "$work/out" && sha256sum -- * >SHA256SUMS)
bin/describe -manifest $manifest -programs "$work/in/programs" -commit "$commit" -image "$work/out" ${QUORATE_EXTRA:+-extra "$QUORATE_EXTRA"}
(cd "$work/out" && sha256sum -- provenance.json sbom.spdx.json >>SHA256SUMS)
# The list is there only while it is true.
rm -f "$out/SHA256SUMS"
mv "$work/out/SHA256SUMS" "$work/SHA256SUMS"
mv "$work"/out/* "$out/"
mv "$work/SHA256SUMS" "$out/"
