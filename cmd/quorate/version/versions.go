// Package version says which quorate this is, what it brings and is made for, and what this machine was made from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	etcd "go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/controlplane"
)

// Versions say what this program is, what it brings and what it is made for.
type Versions struct {
	Quorate    string `json:"quorate"`
	Etcd       string `json:"etcd"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	// Image is what this machine was made from; absent on one that was not made from an image.
	Image *image `json:"image,omitempty"`
}

// release is the version that is worked on. A build that knows its commit or its tag says that in its place.
const release = "v0.1.0-dev"

// Current are the versions of this program.
func Current() Versions {
	v := Versions{Quorate: release, Etcd: etcd.Version, Kubernetes: controlplane.KubernetesMinor, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Quorate = info.Main.Version
	}
	return v
}

// Text is the versions in a line.
func Text() string {
	v := Current()
	return fmt.Sprintf("%s (etcd %s, for Kubernetes %s)", v.Quorate, v.Etcd, v.Kubernetes)
}
