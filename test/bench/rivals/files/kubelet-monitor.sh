#!/bin/sh
# What kube-up's masters ran from 2016 to 2025 for the kubelet, written anew from its description: one failure is enough, the unit's
# Restart= does the rest, and what ignores SIGTERM stays.
sleep 120
while :; do
  if ! said=$(curl -m 10 -f -s -S http://127.0.0.1:10248/healthz 2>&1); then
    echo "kubelet is unhealthy: $said"
    systemctl kill kubelet
    sleep 60
  else
    sleep 10
  fi
done
