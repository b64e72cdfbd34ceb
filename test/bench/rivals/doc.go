// Package rivals holds quorate's watch of the kubelet against what else watches one: systemd's WatchdogSec= alone,
// monit as kube-up ran it, and the loop of a shell script that followed monit.
//
//	lane     one VM for each rival, in which the same faults come one after the other; the VMs of one lane
//	         run at once
//	rival    what is installed in its VM, and how its first word about a fault is found
//	fault    what is broken, and which restarts are right
//	outcome  one fault under one rival: when it was seen, when all was well, what was done wrongly
//
// All VMs boot the same baked image, with the real kubelet and containerd. quorate's is a master. The others have the
// same kubelet, with the certificates of the lane's master, and no control plane beside it: they have less to do.
//
// It decides nothing about goals, and prints nothing but progress.
package rivals
