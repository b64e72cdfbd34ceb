#!/usr/bin/env bash
# The demo: three real masters in three zones of a local GCE project.
#
#   test/demo.sh check|up|down [STATE]
#   test/demo.sh watch [STATE [SECONDS]]
#
# `up` does what `quorate create` does against Google: writes the cluster's configuration, begins its record, starts the VMs, and asks for
# an administrator's kubeconfig. Each step is left out where it is done already, so `up` again goes on where it was interrupted, and
# starts VMs that are off. Those that `quorate remove` took away are not made again. `watch` writes a ConfigMap and reads it back, on and on, and counts for how long that failed. `check` says whether this machine and this user can have a demo, before anything is built. Everything that it
# makes is in STATE (default _demo) and goes with `down`. QUORATE_DEMO_NET names another range than 10.240.0 (a /24).
#
# QUORATE_DEMO_VMS is what the VMs are: process, which run one agent each; systemd, which boot the image that `make image` has baked
# in bin/image, with a kubelet, and run pods; or auto (the default), which is systemd where there is an image and the machine can.
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:-up} given=${2:-_demo} net=${QUORATE_DEMO_NET:-10.240.0} vms_are=${QUORATE_DEMO_VMS:-auto}
name=demo endpoint=$net.100 region=us-central1 project_number=271828182845
declare -A first=([master-a]=$region-a@$net.11 [master-b]=$region-b@$net.12 [master-c]=$region-c@$net.13)
names=(master-a master-b master-c)
declare -A vms=() # the address of each VM that is there
there=()
bin=$PWD/bin
image=$bin/image/root.tar
state=$(realpath -m "$given")
export PATH=$bin:$PATH:/usr/sbin:/sbin
# In seconds: until the first master has made the bundle, and until all is whole on a slow machine.
bundle_limit=60 whole_limit=300 pods_limit=120
# In MiB: what three boots, their logs and a day of tries write.
room=1024

# A terminal has one line that moves, with the number of the step; elsewhere each step is a line.
moving="" steps=7 at_step=0
on_terminal() { [[ -t 2 && ${TERM:-dumb} != dumb ]]; }
say() { printf '%s%s\n' "${moving:+$'\r\e[K'}" "$*" >&2; moving=""; }
step() {
  at_step=$((at_step + 1))
  if on_terminal; then move "$*"; else say "· $*"; fi
}
move() {
  on_terminal || return 0
  printf '\r\e[K[%d/%d] %s' "$at_step" "$steps" "$*" >&2
  moving=yes
}
die() { say "demo: $*"; exit 1; }
project() { local verb=$1; shift; localgce "$verb" --state "$state" "$@"; }
vm() { local verb=$1; shift; localgce vm "$verb" --state "$state" "$@"; }

# ours says whether STATE is a demo's, or nothing: `up` and `down` remove it whole.
ours() { [[ ! -e $state || -e $state/.demo || -e $state/cluster.yaml || -e $state/logs/localgce.log ]] || rmdir "$state" 2>/dev/null; }

needs_root() { [[ $(id -u) == 0 ]] || die "needs root, because a VM is a set of namespaces with a disk of its own: run it with sudo"; }

check() {
  needs_root
  [[ $net =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "QUORATE_DEMO_NET=$net: the first three numbers of a /24 are needed, such as 10.240.0"
  case $vms_are in
  auto | process) ;;
  systemd) [[ -s $image ]] || die "systemd VMs boot a baked image, and there is none in bin/image: make image (3 minutes)" ;;
  *) die "QUORATE_DEMO_VMS=$vms_are: auto, process and systemd are known" ;;
  esac
  ours || die "$given exists and is no demo's folder: name another, or remove it"
  local parent=$state free
  while [[ ! -d $parent ]]; do parent=$(dirname "$parent"); done
  free=$(df --output=avail -BM "$parent" | tail -1 | tr -dc 0-9)
  ((free >= room)) || die "the disk of $parent has $free MiB left; at least $room MiB are needed for three VMs and their logs"
}

down() {
  ours || die "$given is no demo's folder: nothing was removed"
  if [[ ! -x $bin/localgce ]]; then
    [[ -e $state ]] || return 0
    die "bin/localgce is needed to take the demo down: make build"
  fi
  local code=0
  project status >/dev/null 2>&1 || code=$?
  if ((code == 4)) && [[ ! -e $state ]]; then
    say "No demo is up, and nothing of one is left."
    return 0
  fi
  needs_root
  project down >/dev/null
  rm -rf "$state"
  say "The demo is gone, and nothing of it is left on this machine."
}

configure() {
  step "writing the cluster's configuration ($given/cluster.yaml)"
  (umask 077 && cat >"$state/cluster.yaml.part") <<YAML
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: $name
replicas: 3
endpoint:
  externalIP: $endpoint
record:
  url: gs://record?endpoint=http://$net.1:8080
seal:
  key: base64key://$(head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_')
compute:
  endpoint: http://$net.1:8080/compute/v1/
etcd:
  dataDisk: quorate-data
gce:
  project: quorate-local
  region: $region
  zones: [$region-a, $region-b, $region-c]
  image: family/quorate-master
  serviceAccount: $project_number-compute@developer.gserviceaccount.com
  dataDisk: {sizeGB: 25, type: pd-balanced}
  machineType: e2-standard-2
  bootDisk: {sizeGB: 10}
YAML
  mv "$state/cluster.yaml.part" "$state/cluster.yaml"
}

# try_project makes a project whose VMs are of a kind.
try_project() {
  project up --cluster "$state/cluster.yaml" --subnet "$net.0/24" --disk-size 25GiB --watchdog 30s --bind "$bin:/usr/local/bin:ro" --kind "$1" --image "$image" >/dev/null
}

# make_project makes the network and the bucket. Exit code 7 of localgce says that this machine lacks something.
make_project() {
  # What an interrupted or dead demo left is of no use: its VMs are gone.
  project down >/dev/null
  rm -rf "$state"
  mkdir -p "$state"
  : >"$state/.demo"
  configure
  step "making a project with a network and a bucket"
  local code=0
  if [[ $vms_are == systemd || $vms_are == auto && -s $image ]]; then
    say "· its VMs boot the image in bin/image, of $(date -r "$image" '+%F %H:%M'), with systemd and a kubelet; one that is new is unpacked first"
    try_project systemd || code=$?
    if ((code == 0)); then return; fi
    if ((code != 7)) || [[ $vms_are == systemd ]]; then no_project; fi
    say "· this machine cannot boot the image (see above): its VMs run one agent each, and no pods"
  elif [[ $vms_are == auto ]]; then
    say "· its VMs run one agent each; after \"make image\" they boot that image, and run pods"
  fi
  try_project process || no_project
}

no_project() {
  die "the project does not start (see above); where the range is in use, name another: QUORATE_DEMO_NET=10.77.0 make demo"
}

begin_record() {
  [[ ! -e $state/buckets/record/$name/inception.json ]] || return 0
  step "beginning its record ($given/buckets/record)"
  quorate record init --config "$state/cluster.yaml" --region "$region" --project-number "$project_number" >/dev/null
}

# start_vms brings back what a person has hurt, and makes the three VMs of a demo that is new. Once they were made, one that is not
# there was taken away on purpose.
start_vms() {
  local n started=()
  project net heal >/dev/null
  find_vms
  for n in "${there[@]}"; do
    project do vm/thaw "vm=$n" >/dev/null 2>&1 || true # refused by a VM that is not frozen
    vm start "$n" >/dev/null 2>&1 || true # refused by a VM that runs
  done
  if [[ ! -e $state/.made ]]; then
    for n in "${names[@]}"; do
      [[ -z ${vms[$n]:-} ]] || continue
      project do vm/create "vm=$n" "zone=${first[$n]%@*}" "address=${first[$n]#*@}" >/dev/null &
      started+=($!)
    done
    for n in "${started[@]}"; do wait "$n" || die "a VM does not start (see above)"; done
    : >"$state/.made"
    find_vms
  fi
  ((${#there[@]})) || die "no VM is left: the cluster was deleted; \"make demo-down\" removes what is there, then \"make demo\" makes another"
}

# find_vms reads which VMs there are, and where. A list that cannot be read ends the demo: it is not an empty one.
find_vms() {
  local list n zone address rest
  list=$(vm list) || die "the VMs cannot be listed (see above)"
  there=() vms=()
  while read -r n zone address rest; do
    [[ $n == NAME || -z $n ]] || { there+=("$n") vms[$n]=$address; }
  done <<<"$list"
}

kubeconfig() {
  step "asking for an administrator's kubeconfig ($given/admin.kubeconfig)"
  local end=$((SECONDS + bundle_limit)) why
  until why=$(quorate kubeconfig --config "$state/cluster.yaml" --output "$state/admin.kubeconfig" --force 2>&1); do
    ((SECONDS < end)) || die "no kubeconfig after $bundle_limit s: $why; the agents' logs are in $given/logs"
    sleep 0.2
  done
}

# voters counts what the first VM that answers says. Until that one is well, status prints its answer and fails.
voters() {
  local n status
  for n in "${there[@]}"; do
    status=$(vm exec "$n" quorate status -o json 2>/dev/null) || true
    if [[ $status == *'"verdict": '* ]]; then
      grep -c '"role": "voter"' <<<"$status" || true
      return
    fi
  done
  echo 0
}

kubectl() { command kubectl --kubeconfig "$state/admin.kubeconfig" --request-timeout 10s "$@"; }
ready() { kubectl --request-timeout 2s get --raw /readyz --server "https://$1" >/dev/null 2>&1; }

# well says whether a master is, in its own eyes.
well() { vm exec "$1" quorate status >/dev/null 2>&1; }

# masters says how many there are, as a person would.
masters() {
  case ${#there[@]} in
  1) echo "one master" ;;
  3) echo "three masters" ;;
  *) echo "${#there[@]} masters" ;;
  esac
}

# await waits until all are whole. Of two one does not vote.
await() {
  step "waiting for $(masters)"
  local begin=$SECONDS n v apiservers fine all=${#there[@]}
  local votes=$((all == 2 ? 1 : all))
  while ((SECONDS < begin + whole_limit)); do
    apiservers=0 fine=0
    for n in "${there[@]}"; do
      if ready "${vms[$n]}"; then apiservers=$((apiservers + 1)); fi
      if well "$n"; then fine=$((fine + 1)); fi
    done
    v=$(voters)
    move "waiting for $(masters): $v of $votes voters, $apiservers of $all apiservers, $fine of $all well ($((SECONDS - begin)) s)"
    if [[ $apiservers == "$all" && $v == "$votes" && $fine == "$all" ]] && ready "$endpoint"; then return 0; fi
    sleep 0.5
  done
  vm list >&2 || true
  die "not whole after $whole_limit s; 'bin/localgce vm exec ${there[0]} quorate status' says why, and the agents' logs are in $given/logs"
}

# systemd_vms says whether the VMs of the demo that is up boot the image.
systemd_vms() { [[ $(vm exec "${there[0]}" cat /proc/1/comm 2>/dev/null) == systemd ]]; }

# run_pods puts a pod on each master, as a person would.
run_pods() {
  step "putting a pod on each master (test/pods.yaml)"
  kubectl apply -f test/pods.yaml >/dev/null || die "the Deployment cannot be created"
  local end=$((SECONDS + pods_limit))
  until [[ $(kubectl get deployment programs -o 'jsonpath={.status.readyReplicas}' 2>/dev/null) == 3 ]]; do
    ((SECONDS < end)) || die "no pod on each master after $pods_limit s; 'kubectl get nodes,pods -o wide' and 'journalctl -u kubelet' in a VM say why"
    sleep 0.5
  done
}

show_pods() {
  say ""
  kubectl get nodes
  say ""
  kubectl get pods -o wide | cut -c1-100
}

milliseconds() { local t=$EPOCHREALTIME; echo $((${t/[.,]/} / 1000)); }
seconds() { printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100)); }
write() { kubectl --request-timeout 3s patch configmap pulse -n default --type merge -p "{\"data\":{\"n\":\"$1\"}}" >/dev/null 2>&1; }
stored() { kubectl --request-timeout 3s get configmap pulse -n default -o 'jsonpath={.data.n}' 2>/dev/null; }

# watch is what to look at while masters are shot. An acknowledged write that cannot be read back ends it with 1.
watch() {
  [[ -s $state/admin.kubeconfig ]] || die "no demo is up in $given: make demo"
  local n=0 acknowledged=0 read last now pause worst=0 stalled="" end=$((SECONDS + ${1:-1000000})) out=""
  kubectl create configmap pulse -n default --dry-run=client -o yaml | kubectl apply -f - >/dev/null || die "a ConfigMap cannot be written"
  trap 'end=0' INT TERM
  last=$(milliseconds)
  while ((SECONDS < end)); do
    n=$((n + 1))
    if write "$n"; then acknowledged=$n; fi
    read=$(stored) || read=""
    now=$(milliseconds) pause=$((now - last))
    if [[ -n $read ]] && ((read < acknowledged)); then die "write $acknowledged was acknowledged, and $read is stored"; fi
    if [[ $read == "$n" && $acknowledged == "$n" ]]; then
      ((pause <= worst)) || worst=$pause
      [[ -z $stalled ]] || say "  served again, after $(seconds "$pause")"
      stalled="" last=$now
    elif [[ -z $stalled ]]; then
      say "  write $n fails"
      stalled=yes
    fi
    if on_terminal; then
      printf '\r\e[Kwrite %d, read back: %s; longest pause %s   (^C ends)' "$n" "${read:-nothing}" "$(seconds "$worst")" >&2
      moving=yes
    fi
    sleep 0.2 || true
  done
  say "$n writes, the last that was acknowledged is $acknowledged; the longest pause was $(seconds "$worst"); nothing that was acknowledged is lost"
}

next_pods() {
  cat <<TEXT
  bin/kubectl --kubeconfig _demo/admin.kubeconfig logs deployment/programs
  bin/kubectl --kubeconfig _demo/admin.kubeconfig exec deployment/programs -- /programs/quorate version
  bin/localgce vm exec master-a -- systemctl status quorate kubelet
TEXT
}

next() {
  local who verb=are
  who=$(masters)
  ((${#there[@]} > 1)) || verb=is
  cat <<TEXT

${who^} $verb up$1. Next:
  bin/kubectl --kubeconfig _demo/admin.kubeconfig get --raw '/readyz?verbose'
  bin/quorate health --config _demo/cluster.yaml
  make demo-watch FOR=40                                            # writes and reads on and on; in another terminal:
  bin/localgce vm kill master-b; bin/localgce vm start master-b     # shoot a master, and let it come back
TEXT
}

up() {
  check
  trap 'say ""; say "demo: interrupted; \"make demo\" goes on, \"make demo-down\" removes what is there"; exit 130' INT TERM
  local begin=$SECONDS since=""
  if project status >/dev/null 2>&1; then
    steps=3
    step "it is up already: starting what is off"
  else
    make_project
    since=yes
  fi
  begin_record
  [[ -z $since ]] || step "starting three VMs in three zones"
  start_vms
  [[ -s $state/admin.kubeconfig ]] || kubeconfig
  await
  local pods=""
  if systemd_vms && ((${#there[@]} >= 3)); then
    pods=yes steps=$((steps + 1))
    run_pods
  fi
  [[ -z $since ]] || since=" ($((SECONDS - begin)) s)"
  say ""
  vm list
  [[ -z $pods ]] || show_pods
  if [[ $given == _demo ]]; then what_next; else what_next | sed "s#_demo/#$given/#; s#localgce vm [a-z]*#& --state $given#g"; fi
}

what_next() {
  next "$since"
  [[ -z $pods ]] || next_pods
}

case $verb in
check | up | down) "$verb" ;;
watch) watch "${3:-}" ;;
*) die "$verb: unknown; check, up, down and watch are what it does" ;;
esac
