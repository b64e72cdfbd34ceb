#!/usr/bin/env bash
# Looks at the demo as its operator would: plain kubectl, etcdctl over TLS, every demo command of the README, and one VM shot
# and started again. The demo is up before and after. The first thing that is not as it must be ends it with one line.
#
#   test/check-demo.sh [STATE]
set -euo pipefail
cd "$(dirname "$0")/.."
state=${1:-_demo}
bin=$PWD/bin
vms=(master-a master-b master-c)
declare -A address=()
pki=/var/lib/quorate/pki
# How long may pass, in seconds: until reads and writes go on after a VM was shot, how long they are watched, until a started VM
# is whole again, and until a controller has done its work.
stall_limit=30 watch=20 return_limit=120 controller_limit=30

say() { printf 'check-demo: %s\n' "$*"; }
die() { printf 'check-demo: FAILED: %s\n' "$*" >&2; exit 1; }
kubectl() { timeout 15 "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig" --request-timeout 3s "$@"; }
through() { local vm=$1; shift; kubectl --server "https://${address[$vm]}" "$@"; }
inside() { local vm=$1; shift; timeout 15 "$bin/localgce" vm exec --state "$state" "$vm" -- "$@"; }
milliseconds() { local t=$EPOCHREALTIME; echo $((${t/[.,]/} / 1000)); }

# within SECONDS WHAT COMMAND...: the command must succeed before the time is over.
within() {
  local end=$((SECONDS + $1)) limit=$1 what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "$what: not within $limit s"
    sleep 0.2
  done
}

etcdctl() {
  local vm=$1
  shift
  inside "$vm" etcdctl --endpoints https://127.0.0.1:2379 --cacert "$pki/etcd-client-ca.crt" \
    --cert "$pki/agent-etcd.pem" --key "$pki/agent-etcd.pem" --dial-timeout 3s --command-timeout 5s "$@"
}

# voters counts the members that etcd lists as started and not as learners.
voters() { etcdctl "$1" member list -w simple 2>/dev/null | grep -c ', started, .*, false$' || true; }
three_voters() { [[ $(voters "$1") == 3 ]]; }
whole() {
  local vm
  for vm in "${vms[@]}"; do ready "$vm" && three_voters "$vm" && well "$vm" || return 1; done
}
well() { inside "$1" quorate status; }
ready() { [[ $(through "$1" get --raw /readyz) == ok ]]; }
# leader is the name of the VM that leads etcd. A status that is not well fails, and has the answer too.
leader() {
  { inside "$1" quorate status -o json || true; } |
    awk -F'"' '/"name": "us-/ {split($4, part, ".")} /"leader": true/ {print part[2]; exit}'
}

# find_addresses reads where the VMs are.
find_addresses() {
  local name zone ip rest
  while read -r name zone ip rest; do address[$name]=$ip; done < <("$bin/localgce" vm list --state "$state" 2>/dev/null)
  for name in "${vms[@]}"; do [[ -n ${address[$name]:-} ]] || die "localgce vm list does not know $name"; done
}

check_readyz() {
  [[ $(kubectl get --raw /readyz) == ok ]] || die "the endpoint is not ready"
  for vm in "${vms[@]}"; do ready "$vm" || die "$vm (${address[$vm]}): its apiserver is not ready"; done
  say "/readyz is ok on the endpoint and on each replica"
}

check_leases() {
  local holder name
  for name in kube-scheduler kube-controller-manager; do
    holder=$(kubectl get lease -n kube-system "$name" -o 'jsonpath={.spec.holderIdentity}') || die "lease kube-system/$name cannot be read"
    [[ $holder == master-* ]] || die "lease kube-system/$name: its holder is '$holder', no master"
    say "$name is led by ${holder%%_*}"
  done
  kubectl get leases -n kube-system >/dev/null || die "get leases -n kube-system fails"
}

check_deployment() {
  kubectl delete deployment check-demo -n default --ignore-not-found >/dev/null
  through master-a create deployment check-demo -n default --image registry.example/none --replicas 2 >/dev/null ||
    die "a Deployment cannot be created through master-a"
  through master-c get deployment check-demo -n default >/dev/null || die "master-c does not know the Deployment that master-a created"
  within "$controller_limit" "the controller-manager makes the Deployment's ReplicaSet" deployment_has_replicaset
  kubectl delete deployment check-demo -n default >/dev/null || die "the Deployment cannot be deleted"
  say "a Deployment created through master-a is read through master-c, and the controller-manager acts on it"
}
deployment_has_replicaset() { [[ -n $(through master-b get replicaset -n default -l app=check-demo -o name) ]]; }

check_members() {
  for vm in "${vms[@]}"; do three_voters "$vm" || die "etcdctl member list on $vm: $(voters "$vm") started voters, not 3"; done
  if inside master-a etcdctl --endpoints https://127.0.0.1:2379 --cacert "$pki/etcd-client-ca.crt" \
    --dial-timeout 2s --command-timeout 2s member list >/dev/null 2>&1; then
    die "etcd answers a client without a certificate"
  fi
  say "etcdctl lists three started voters over TLS on each replica; without a certificate it is refused"
}

# check_readme runs each command of the README's blocks that are marked for the demo.
check_readme() {
  local line out
  while IFS= read -r line; do
    [[ -z $line || $line == \#* ]] && continue
    out=$(timeout 60 bash -c "$line" 2>&1 </dev/null) || die "README: '$line' fails: $(head -n 3 <<<"$out" | tr '\n' ' ')"
    # A second blow before the first has healed would test something else.
    [[ $line == *"net cut"* ]] || within "$return_limit" "README: '$line': three masters that are well after it" whole
    say "README: ${line%%  *}"
  done < <(awk '/^```sh demo$/ {on = 1; next} /^```/ {on = 0} on' README.md)
}

# check_operator runs the README's commands for an operator as they are pasted on this machine: next to a cluster.yaml, with quorate on
# the PATH. Left out are those that need a person or another cluster: a first record, and what ends, replaces or brings back. So are
# those that make and delete masters' VMs, which are of another cluster there (test/fleet_test.go and docs/first-hour.md run them).
check_operator() {
  local line out dir ran=0
  dir=$(mktemp -d)
  cp "$state/cluster.yaml" "$dir/"
  within "$return_limit" "quorate health says that all is well" "$bin/quorate" health --config "$dir/cluster.yaml"
  while IFS= read -r line; do
    case $line in
    *" init "* | *" restore"* | *" rebuild "* | *" override "* | *" leave "* | *" withdraw "* | *" bundle "* | *--watch* | *--newest*) continue ;;
    "quorate create "* | "quorate add "* | "quorate remove "* | "quorate replace "* | "quorate roll "*) continue ;;
    "quorate "*"--config cluster.yaml"* | "quorate config "*) ;;
    *) continue ;;
    esac
    out=$(cd "$dir" && PATH=$bin:$PATH HOME=$dir KUBECONFIG="" timeout 90 bash -c "$line" 2>&1 </dev/null) || die "README: '$line' fails on this machine: $(tail -n 3 <<<"$out" | tr '\n' ' ')"
    ran=$((ran + 1))
  done < <(awk '/^```sh( operator)?$/ {on = 1; next} /^```/ {on = 0} on' README.md)
  rm -r "$dir"
  ((ran >= 12)) || die "README: only $ran commands for an operator were found"
  within "$return_limit" "all is well after the operator's commands" whole
  say "README: $ran commands for an operator work from this machine"
}

write() { kubectl patch configmap check-demo -n default --type merge -p "{\"data\":{\"n\":\"$1\"}}" >/dev/null 2>&1; }
stored() { kubectl get configmap check-demo -n default -o 'jsonpath={.data.n}' 2>/dev/null; }

# check_shot cuts the power of the VM that leads etcd, which is the worst one to lose, and says how long nobody could write.
check_shot() {
  local vm last now worst=0 n=0 acknowledged=0 end
  vm=$(leader master-a)
  [[ -n ${address[$vm]:-} ]] || die "no replica leads etcd ('$vm')"
  kubectl create configmap check-demo -n default --dry-run=client -o yaml | kubectl apply -f - >/dev/null || die "a ConfigMap cannot be written"
  "$bin/localgce" vm kill --state "$state" "$vm" >/dev/null || die "localgce vm kill $vm fails"
  last=$(milliseconds) end=$((SECONDS + watch))
  while ((SECONDS < end)); do
    n=$((n + 1))
    if write "$n"; then
      acknowledged=$n
      if [[ $(stored) == "$n" ]]; then
        now=$(milliseconds)
        ((now - last > worst)) && worst=$((now - last))
        last=$now
      fi
    fi
    (($(milliseconds) - last < stall_limit * 1000)) || die "$vm was shot: no reads and writes through the endpoint for $stall_limit s"
  done
  say "$vm, etcd's leader, was shot: reads and writes through the endpoint went on, the longest stall was $worst ms ($acknowledged writes in $watch s)"
  now=$SECONDS
  "$bin/localgce" vm start --state "$state" "$vm" >/dev/null || die "localgce vm start $vm fails"
  within "$return_limit" "$vm was started again: three masters that are well" whole
  [[ $(stored) == "$acknowledged" ]] || die "the last acknowledged write was $acknowledged, and '$(stored)' is stored"
  kubectl delete configmap check-demo -n default >/dev/null
  say "$vm was started again: three masters that are well after $((SECONDS - now)) s, no acknowledged write lost"
}

[[ -s $state/admin.kubeconfig ]] || die "no demo is up: $state/admin.kubeconfig is missing; run 'make demo'"
find_addresses
check_readyz
check_leases
check_deployment
check_members
check_readme
check_operator
check_shot
check_readyz
say "all is as it must be"
