#!/usr/bin/env bash
# The demo: three real masters in three zones of a local GCE project.
#
#   test/demo.sh up|down [STATE]
#
# It does what `quorate create` does against Google: writes the cluster's configuration, begins its record, starts the VMs,
# and asks for an administrator's kubeconfig. Everything it makes is in STATE (default _demo) and goes with `down`.
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:-up} state=${2:-_demo}
name=demo endpoint=10.240.0.100
bin=$PWD/bin
export PATH=$bin:$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*" >&2; }
die() { say "demo: $*"; exit 1; }

[[ $(id -u) == 0 ]] || die "needs root, because a VM is a set of namespaces with a disk of its own: run it with sudo"

down() { localgce down --state "$state" && rm -rf "$state"; }

case $verb in
down) if [[ -d $state ]]; then down; fi; exit 0 ;;
up) ;;
*) die "$verb: unknown; up and down are what it does" ;;
esac

if localgce status --state "$state" >/dev/null 2>&1; then
  die "it is up already: see 'bin/localgce status', or take it down with 'make demo-down'"
fi
begin=$SECONDS
rm -rf "$state"
mkdir -p "$state/bucket"
state=$(cd "$state" && pwd)

say "· writing the cluster's configuration ($state/cluster.yaml)"
umask 077
cat >"$state/cluster.yaml" <<YAML
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: $name
replicas: 3
endpoint:
  externalIP: $endpoint
record:
  url: file:///srv/bucket
seal:
  key: base64key://$(head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_')
compute:
  endpoint: http://10.240.0.1:8080/compute/v1/
etcd:
  dataDisk: quorate-data
YAML
host=(--config "$state/cluster.yaml" --record "file://$state/bucket")

say "· beginning its record ($state/bucket)"
quorate record init "${host[@]}" --region us-central1 --project-number 271828182845 >/dev/null

say "· starting three VMs in three zones"
localgce up --state "$state" --project-number 271828182845 --cluster "$state/cluster.yaml" --endpoint "$endpoint" \
  --bind "$bin:/usr/local/bin:ro" --bind "$state/bucket:/srv/bucket" \
  --vm master-a@us-central1-a@10.240.0.11 --vm master-b@us-central1-b@10.240.0.12 --vm master-c@us-central1-c@10.240.0.13 >/dev/null

say "· asking for an administrator's kubeconfig ($state/admin.kubeconfig)"
for _ in $(seq 100); do
  quorate kubeconfig "${host[@]}" --output "$state/admin.kubeconfig" 2>"$state/kubeconfig.err" && break
  sleep 0.2
done
[[ -s $state/admin.kubeconfig ]] || die "no bundle in the record after 20 s: $(cat "$state/kubeconfig.err"); the agents' logs are in $state/logs"
rm -f "$state/kubeconfig.err"

voters() { localgce vm exec --state "$state" "$1" -- quorate status -o json 2>/dev/null | grep -c '"role": "voter"' || true; }
ready() { kubectl --kubeconfig "$state/admin.kubeconfig" --request-timeout 2s get --raw /readyz --server "https://$1" >/dev/null 2>&1; }

say "· waiting for three voters and three apiservers"
last=""
for _ in $(seq 600); do
  n=0
  for a in 10.240.0.11 10.240.0.12 10.240.0.13; do if ready "$a"; then n=$((n + 1)); fi; done
  now="  $n of 3 apiservers ready, $(voters master-a) voters"
  [[ $now == "$last" ]] || say "$now"
  last=$now
  if [[ $n == 3 && $(voters master-a) == 3 ]] && ready "$endpoint"; then whole=yes; break; fi
  sleep 0.5
done
if [[ ${whole:-} != yes ]]; then
  localgce vm list --state "$state" >&2 || true
  die "not whole after five minutes; the agents' logs are in $state/logs"
fi

say ""
localgce vm list --state "$state"
cat <<TEXT

Three masters run since $((SECONDS - begin)) s. Next:
  bin/kubectl --kubeconfig _demo/admin.kubeconfig get --raw '/readyz?verbose'
  bin/localgce vm exec master-a -- quorate status
  bin/localgce vm kill master-b; bin/localgce vm start master-b     # shoot a master, and let it come back
TEXT
