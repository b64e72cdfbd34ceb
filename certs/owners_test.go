package certs

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/durable"
)

// Files are their readers' from the first byte on, also those of a disk on which all were root's; the folders let the
// readers pass.
func TestFilesAreTheirOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r) // all are root's
	f := r.Files
	reader, group := durable.Owner{UID: 64951, GID: 64951}, durable.Owner{UID: 64951, GID: 64952}
	r.Owners = map[string]Owner{f.Leaf(APIServer): {Owner: reader}, f.Kubeconfig(Scheduler): {Owner: reader},
		f.ServiceAccountKey(): {Owner: group, GroupReads: true}, f.CASignerKey(Kubernetes): {Owner: reader}}
	check := func(when string) {
		t.Helper()
		for path, want := range map[string]struct {
			owner durable.Owner
			mode  fs.FileMode
		}{
			f.Leaf(APIServer): {reader, 0o600}, f.Kubeconfig(Scheduler): {reader, 0o600},
			f.ServiceAccountKey(): {group, 0o640}, f.CASignerKey(Kubernetes): {reader, 0o600},
			f.Leaf(AgentEtcd): {durable.Owner{}, 0o600}, f.Dir: {durable.Owner{}, 0o711},
			f.Volatile: {durable.Owner{}, 0o711},
		} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			st := info.Sys().(*syscall.Stat_t)
			if got := (durable.Owner{UID: int(st.Uid), GID: int(st.Gid)}); got != want.owner ||
				info.Mode().Perm() != want.mode {
				t.Errorf("%s: %s is %+v's with mode %#o, want %+v and %#o", when, path, got, info.Mode().Perm(),
					want.owner, want.mode)
			}
		}
	}
	bundle := r.Bundle
	r.Bundle = nil // a restart without KMS
	if _, err := Ensure(r); err != nil {
		t.Fatal(err)
	}
	check("without a bundle")
	for _, path := range []string{f.Leaf(APIServer), f.ServiceAccountKey(), f.Kubeconfig(Scheduler)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	r.Bundle = bundle
	if _, err := Ensure(r); err != nil {
		t.Fatal(err)
	}
	check("written anew")
	if report, err := Ensure(r); err != nil || len(report.Changes) > 0 {
		t.Errorf("what is as it has to be is written again: %+v, %v", report.Changes, err)
	}
}

// Not even for a moment is a file in its place that its reader cannot read: etcd reads its own at each handshake.
func TestAFileIsItsOwnersBeforeItIsInItsPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	r := testRequest(t, nil)
	path := t.TempDir() + "/leaf"
	r.Owners = map[string]Owner{path: {Owner: durable.Owner{UID: 64951, GID: 64952}}}
	if _, err := r.write(durable.File{Path: path, Data: []byte("leaf"), Perm: secretMode}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 64951 || st.Gid != 64952 || info.Mode().Perm() != secretMode {
		t.Errorf("written as %d:%d's with mode %#o", st.Uid, st.Gid, info.Mode().Perm())
	}
}
