package main

import (
	"runtime/debug"

	etcd "go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/controlplane"
)

// version says what this program is and what it brings.
func version() string {
	v := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	return v + " (etcd " + etcd.Version + ", for Kubernetes " + controlplane.KubernetesMinor + ")"
}
