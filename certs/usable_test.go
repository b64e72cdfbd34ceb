package certs

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestUsableGoesByTheDiskAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, r *Request)
		want   string // part of the error; empty: none
	}{
		"all is there":     {func(*testing.T, *Request) {}, ""},
		"without a bundle": {func(_ *testing.T, r *Request) { r.Bundle = nil }, ""},
		"a renewal is due": {func(_ *testing.T, r *Request) { r.Now = r.Now.Add(LeafLifetime - time.Hour) },
			""},
		"expired": {func(_ *testing.T, r *Request) { r.Now = r.Now.Add(LeafLifetime + time.Hour) },
			"etcd-peer: expired at"},
		"another leaf is missing": {func(t *testing.T, r *Request) { remove(t, r.Files.Leaf(Scheduler)) }, ""},
		"one of them is missing": {func(t *testing.T, r *Request) { remove(t, r.Files.Leaf(EtcdPeerLeaf)) },
			"etcd-peer: missing"},
		"its CA is missing": {func(t *testing.T, r *Request) { remove(t, r.Files.CA(EtcdPeer)) },
			"etcd-peer: its CA is not there"},
		"the binding is missing": {func(t *testing.T, r *Request) { remove(t, r.Files.Binding()) }, ""},
		"of another cluster":     {func(_ *testing.T, r *Request) { r.ClusterUID = "another" }, "folder of cluster"},
		"of another replica":     {func(_ *testing.T, r *Request) { r.Identity.Name = "master-9" }, "etcd-peer: "},
		"no certificates at all": {func(t *testing.T, r *Request) { r.Files.Dir = t.TempDir() },
			"etcd-peer: its CA is not there"},
		"a kubeconfig is obsolete": {func(t *testing.T, r *Request) { remove(t, r.Files.Kubeconfig(Scheduler)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRequest(t, testBundle(t))
			mustEnsure(t, r)
			c.change(t, &r)
			err := Usable(r, EtcdServer, EtcdPeerLeaf, AgentEtcd)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
