#!/bin/sh
# The same for the container runtime. ctr stands for crictl, which the image does not have.
pause=2
for _ in 1 2 3 4 5; do
  timeout 60 ctr -n k8s.io containers list -q >/dev/null 2>&1 && break
  sleep $pause
  pause=$((pause * 2))
done
while :; do
  if ! timeout 60 ctr -n k8s.io containers list -q >/dev/null 2>&1; then
    echo "containerd is unhealthy"
    systemctl kill --kill-who=main containerd
    sleep 120
  else
    sleep 10
  fi
done
