# What pin.sh, fetch.sh, debs.sh, bake.sh and install.sh share. Sourced, with the repository as working directory.
. "$(dirname "${BASH_SOURCE[0]}")/failures.sh"
pins=images/master
# arch is the architecture of the image's machines. The tools that bake run on amd64.
arch=${ARCH:-amd64}
if [[ ! $arch =~ ^(amd64|arm64)$ ]]; then
  echo "ARCH is '$arch': want amd64 or arm64" >&2
  exit 2
fi
# of_arch prints what is appended to a name where it stands for another architecture than amd64.
of_arch() { if [[ $1 != amd64 ]]; then echo "$2$1"; fi; }
manifest=$pins/manifest$(of_arch $arch .)
bin=bin$(of_arch $arch /)
cache=${QUORATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quorate}/images

# with_examples says whether the images of the example add-ons are wanted: QUORATE_EXAMPLES=yes.
with_examples() {
  case ${QUORATE_EXAMPLES:-no} in
  yes) return 0 ;;
  no) return 1 ;;
  esac
  echo "QUORATE_EXAMPLES is '$QUORATE_EXAMPLES': want yes or no" >&2
  exit 2
}

# extra_folder makes QUORATE_EXTRA, the folder of what a site adds, absolute; before anything changes the working directory. Empty: nothing is added.
extra_folder() {
  if [[ -z ${QUORATE_EXTRA:-} ]]; then return; fi
  if [[ ! -d $QUORATE_EXTRA ]]; then
    echo "QUORATE_EXTRA is '$QUORATE_EXTRA': want a folder (images/README.md has its layout)" >&2
    exit 2
  fi
  QUORATE_EXTRA=$(cd "$QUORATE_EXTRA" && pwd)
  export QUORATE_EXTRA
  if [[ -f $QUORATE_EXTRA/sources ]]; then export QUORATE_APT_SOURCES=$QUORATE_EXTRA/sources; fi
}

# extra_names prints the packages that a site adds.
extra_names() { if [[ -f ${QUORATE_EXTRA:-}/packages ]]; then awk '!/^[ \t]*(#|$)/ { print $1 }' "$QUORATE_EXTRA/packages"; fi; }

# extra_manifest is where the pins of what a site adds are: they are of one architecture.
extra_manifest() { echo "${QUORATE_EXTRA:-}/manifest$(of_arch $arch .)"; }

# names prints the packages of roles, those of this architecture.
names() {
  local role
  for role; do awk -v role="$role" -v arch=$arch '$1 == role && ($3 == "" || $3 == arch) { print $2 }' $pins/packages; done
}

# suite prints Debian's release of a role.
suite() { awk -v role="$1" '$1 == "suite" && $2 == role { print $3 }' $pins/packages; }

# pinned prints "name version architecture sha256" of the packages of a role of the manifest, image or tools; an image's with those that a site adds.
pinned() {
  local manifests=("$manifest")
  if [[ -n ${QUORATE_EXTRA:-} && -f $(extra_manifest) ]]; then manifests+=("$(extra_manifest)"); fi
  awk -v role="$1" '$1 == "deb" && $2 == role { print $3, $4, $5, $6 }' "${manifests[@]}"
}

# programs prints "name version toolchain sha256" of the modules that the programs are built from. The hash of go.mod and go.sum pins all sources.
programs() {
  local dir name module version
  for name in kubernetes coredns etcd quorate; do
    dir=images/$name module=go.etcd.io/etcd/etcdctl/v3
    if [[ $name == kubernetes ]]; then module=k8s.io/kubernetes; fi
    if [[ $name == coredns ]]; then module=github.com/coredns/coredns; fi
    if [[ $name == quorate ]]; then dir=. module=go.etcd.io/etcd/server/v3; fi
    version=$(awk -v m=$module '{ sub(/^require /, "") } $1 == m && $2 ~ /^v/ { print $2; exit }' $dir/go.mod)
    if [[ $name == quorate ]]; then version=etcd-$version; fi
    echo "$name $version $(awk '$1 == "toolchain" { print $2 }' $dir/go.mod) $(cat $dir/go.mod $dir/go.sum | sha256sum | cut -d' ' -f1)"
  done
}

# commit prints what an image is made of: this commit, with -dirty where the files are not the commit's, also by one that git does not track. A bake copies
# its folders as they are, so there what git ignores counts, too. QUORATE_COMMIT is taken at its word.
commit() {
  local git=(git -c safe.directory='*') commit changed
  if [[ -n ${QUORATE_COMMIT:-} ]]; then
    if [[ ! $QUORATE_COMMIT =~ ^[a-zA-Z0-9._+-]+$ ]]; then
      echo "QUORATE_COMMIT is '$QUORATE_COMMIT': want letters, digits and . _ + -" >&2
      return 1
    fi
    echo "$QUORATE_COMMIT"
    return
  fi
  if ! commit=$("${git[@]}" rev-parse --verify HEAD 2>/dev/null); then echo unknown; return; fi
  changed=$("${git[@]}" status --porcelain) || return
  changed+=$("${git[@]}" status --porcelain --ignored $pins systemd/units) || return
  echo "$commit${changed:+-dirty}"
}

# lay_pins copies the folder of pins to a new one as an image of this architecture has it: its manifest, and the names that the architecture has in the
# definitions of partitions.
lay_pins() {
  cp -r $pins "$1"
  if [[ $arch == amd64 ]]; then return; fi
  mv "$1/manifest.$arch" "$1/manifest"
  sed -i 's/root-x86-64/root-arm64/; s/BOOTX64/BOOTAA64/' "$1"/repart.d/*.conf "$1"/files/system/etc/repart.d/*.conf
}

# use_suite SUITE ARCHITECTURE makes apt see one Debian suite, by the sources and the proxy of this machine, with a state of its own: nothing of the machine's changes.
use_suite() {
  local suite=$1 state list sources=/etc/apt/sources.list.d/debian.sources
  if [[ ! -s $sources ]]; then sources=/etc/apt/sources.list; fi
  sources=${QUORATE_APT_SOURCES:-$sources}
  if ! grep -qE '^(deb |Types: deb)' "$sources" 2>/dev/null; then
    echo "no Debian sources in $sources: set QUORATE_APT_SOURCES to a file that has them" >&2
    return 1
  fi
  state=$cache/apt/$suite$(of_arch "$2" -)
  list=$state/debian.list
  if grep -q '^Types:' "$sources"; then list=$state/debian.sources; fi # apt reads the format from the name
  mkdir -p "$state"/{lists,archives}/partial
  : >"$state/status"
  # The machine's own release may be another one; its archive has all.
  sed -E "s/\b(bullseye|bookworm|trixie|forky)(-updates|-security)?\b/$suite\2/g" "$sources" >"$list"
  cat >"$state/apt.conf" <<C
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Etc::sourcelist "$list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::ForceHash "SHA256";
Acquire::Retries "3";
C
  # A mirror may show a certificate of the site's own CA.
  if compgen -G "${QUORATE_EXTRA:-/nowhere}/certificates/*.crt" >/dev/null; then
    cat /etc/ssl/certs/ca-certificates.crt "$QUORATE_EXTRA"/certificates/*.crt >"$state/cas.pem" 2>/dev/null ||
      cat "$QUORATE_EXTRA"/certificates/*.crt >"$state/cas.pem"
    echo "Acquire::https::CAInfo \"$state/cas.pem\";" >>"$state/apt.conf"
  fi
  export APT_CONFIG=$state/apt.conf
}
