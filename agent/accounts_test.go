package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// withUsers is an agent on a system that has some of the users.
func withUsers(t *testing.T, ids map[string]uint32) (*vm, *Agent) {
	t.Helper()
	v := newVM(t)
	a := v.agent()
	a.cfg.Account = func(name string) (supervisor.Account, bool) {
		return supervisor.Account{UID: ids[name], GID: ids[name]}, ids[name] != 0
	}
	a.findAccounts()
	return v, a
}

func TestWhoseTheFilesAre(t *testing.T) {
	t.Parallel()
	all := map[string]uint32{etcdName: 1, replica.APIServer: 2, replica.Scheduler: 3, replica.ControllerManager: 4,
		replica.Autoscaler: 5, replica.AddonManager: 6}
	for _, tc := range []struct {
		name string
		ids  map[string]uint32
		want []string
	}{
		{"a system with none of the users", nil, nil},
		{"a system with all", all, []string{"addons.kubeconfig 6:6", "addons.pem 6:6", "apiserver-etcd.pem 2:2",
			"apiserver-kubelet.pem 2:2", "apiserver.pem 2:2", "autoscaler.kubeconfig 5:5", "autoscaler.pem 5:5",
			"controller-manager-serving.pem 4:4", "controller-manager.kubeconfig 4:4", "controller-manager.pem 4:4",
			"etcd-peer.pem 1:1", "etcd-server.pem 1:1", "front-proxy-client.pem 2:2", "kubernetes-ca-signer.key 4:4",
			"scheduler-serving.pem 3:3", "scheduler.kubeconfig 3:3", "scheduler.pem 3:3",
			"service-account.key 2:4 and its group's"}},
		{"etcd alone", map[string]uint32{etcdName: 1}, []string{"etcd-peer.pem 1:1", "etcd-server.pem 1:1"}},
		{"the controller-manager alone reads the key that the apiserver, which is root, reads too",
			map[string]uint32{replica.ControllerManager: 4}, []string{"controller-manager-serving.pem 4:4",
				"controller-manager.kubeconfig 4:4", "controller-manager.pem 4:4", "kubernetes-ca-signer.key 4:4",
				"service-account.key 0:4 and its group's"}},
	} {
		_, a := withUsers(t, tc.ids)
		a.files = certs.Files{Dir: "/pki", Volatile: "/run/pki"}
		var got []string
		for path, o := range a.owners() {
			text := fmt.Sprintf("%s %d:%d", filepath.Base(path), o.UID, o.GID)
			if o.GroupReads {
				text += " and its group's"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A component that the document declares runs as the user of its name; other names of the document change nothing.
func TestADeclaredComponentRunsAsTheUserOfItsName(t *testing.T) {
	t.Parallel()
	_, a := withUsers(t, map[string]uint32{replica.Scheduler: 3, "konnectivity-server": 7,
		"cloud-controller-manager": 0})
	got := a.accountsFor(&replica.Cluster{Components: map[string]replica.Component{"konnectivity-server": {},
		"cloud-controller-manager": {}, replica.Autoscaler: {}}})
	want := map[string]supervisor.Account{replica.Scheduler: {UID: 3, GID: 3}, "konnectivity-server": {UID: 7, GID: 7}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := a.accounts["konnectivity-server"]; ok {
		t.Error("the agent's own list has grown")
	}
}

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
