package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/supervisor"
)

// What a process writes becomes its own with all that is in it; a link leads nowhere.
func TestAMembersDirectoryIsHandedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	dir := t.TempDir()
	etcd, config := filepath.Join(dir, "data", "etcd"), filepath.Join(dir, "run", "member", "etcd.json")
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(etcd, "member", "wal"), filepath.Dir(config)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"name": "m", "dnsName": "m", "dir": etcd, "address": "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{config: text, filepath.Join(etcd, "member", "wal", "0.wal"): nil,
		outside: nil} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(etcd, "link")); err != nil {
		t.Fatal(err)
	}
	if err := giveMember(config, supervisor.Account{UID: 64951, GID: 64952}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]uint32{config: 64951, filepath.Dir(config): 64951, etcd: 64951,
		filepath.Join(etcd, "member", "wal", "0.wal"): 64951, outside: 0, filepath.Join(dir, "data"): 0} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != want {
			t.Errorf("%s is %d's, want %d's", path, uid, want)
		}
	}
	if err := giveMember(filepath.Join(dir, "absent"), supervisor.Account{}); err == nil ||
		!strings.Contains(err.Error(), "absent") {
		t.Errorf("a configuration that is not there: %v", err)
	}
}

func TestAComponentsFileIsItsReaders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	f := controlplane.File{Path: filepath.Join(t.TempDir(), "file"), Data: []byte("text")}
	reader := durable.Owner{UID: 64951, GID: 64952}
	for _, c := range []struct {
		name  string
		owner *durable.Owner
		want  uint32
	}{
		{"the agent's", nil, 0}, {"one that was the agent's", &reader, 64951}, {"as it has to be", &reader, 64951},
	} {
		if err := writeChanged(f, c.owner); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != c.want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d's with mode %#o, want %d's", c.name, uid, info.Mode().Perm(), c.want)
		}
	}
}

// The add-on manager's user reads its examples and cannot write them: they say what the agents let it do.
func TestAPublicFileStaysTheAgents(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	f := controlplane.File{Path: filepath.Join(t.TempDir(), "examples", "file"), Data: []byte("text"), Public: true}
	for range 2 {
		if err := writeChanged(f, &durable.Owner{UID: 64951, GID: 64952}); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]os.FileMode{f.Path: 0o644, filepath.Dir(f.Path): 0o755} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Geteuid() || info.Mode().Perm() != want {
			t.Errorf("%s is %d's with mode %#o, want %#o", path, uid, info.Mode().Perm(), want)
		}
	}
}
