package accounts

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// withUsers are the accounts of a system that has some of the users.
func withUsers(ids map[string]uint32) *Accounts {
	return Find(slog.New(slog.DiscardHandler), func(name string) (supervisor.Account, bool) {
		return supervisor.Account{UID: ids[name], GID: ids[name]}, ids[name] != 0
	})
}

func TestWhoseTheFilesAre(t *testing.T) {
	t.Parallel()
	all := map[string]uint32{Etcd: 1, replica.APIServer: 2, replica.Scheduler: 3, replica.ControllerManager: 4,
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
		{"etcd alone", map[string]uint32{Etcd: 1}, []string{"etcd-peer.pem 1:1", "etcd-server.pem 1:1"}},
		{"the controller-manager alone reads the key that the apiserver, which is root, reads too",
			map[string]uint32{replica.ControllerManager: 4}, []string{"controller-manager-serving.pem 4:4",
				"controller-manager.kubeconfig 4:4", "controller-manager.pem 4:4", "kubernetes-ca-signer.key 4:4",
				"service-account.key 0:4 and its group's"}},
	} {
		a := withUsers(tc.ids)
		var got []string
		for path, o := range a.Owners(certs.Files{Dir: "/pki", Volatile: "/run/pki"}) {
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
	a := withUsers(map[string]uint32{replica.Scheduler: 3, "konnectivity-server": 7,
		"cloud-controller-manager": 0})
	got := a.For(&replica.Cluster{Components: map[string]replica.Component{"konnectivity-server": {},
		"cloud-controller-manager": {}, replica.Autoscaler: {}}})
	want := map[string]supervisor.Account{replica.Scheduler: {UID: 3, GID: 3}, "konnectivity-server": {UID: 7, GID: 7}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := a.found["konnectivity-server"]; ok {
		t.Error("the list of those that are confined has grown")
	}
}
