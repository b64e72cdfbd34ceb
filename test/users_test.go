package test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
)

// unitCapabilities are those that the agent's unit leaves it, as setpriv(1) takes them.
func unitCapabilities(t *testing.T) (out string) {
	t.Helper()
	b, err := os.ReadFile("../systemd/units/quorate.service")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(b), "\nCapabilityBoundingSet=")
	if !ok {
		t.Fatal("the agent's unit has no CapabilityBoundingSet")
	}
	list, _, _ = strings.Cut(list, "\n")
	for _, name := range strings.Fields(list) {
		out += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	return out
}

// The processes that can do without root run as users of their own, where the system has those: from an agent's next
// start on, also on a disk whose files are root's. What a user may do besides reading its own files is to listen on the
// apiserver's port. The agent does all of it with the capabilities that its unit leaves it.
func TestComponentsRunAsUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := begin(t, plan{vms: []string{"master-a"}, agent: localgce.Agent{Command: []string{"/usr/bin/setpriv",
		"--no-new-privs", "--inh-caps=-all", "--bounding-set=-all" + unitCapabilities(t), "/usr/local/bin/quorate",
		"agent"}}})
	c.must(t, os.Chmod(c.programs, 0o755)) // as a master's /usr/local/bin
	c.awaitWhole(t)
	const vm = "master-a"
	users := map[string]string{"etcd": "951", "kube-apiserver": "952", "kube-scheduler": "953",
		"kube-controller-manager": "954", "addons": "956"}
	c.in(t, vm, `mkdir -p /etc/quorate/addons && cd /etc/quorate/addons && echo 1 >version && printf '%s\n' \
		'{apiVersion: v1, kind: ConfigMap, metadata: {name: applied, namespace: kube-public}}' >a.yaml`)
	withAddons := c.document + "addons: {folder: /etc/quorate/addons}\n"
	c.must(t, c.SetAttribute("", agent.ClusterAttribute, &withAddons))
	c.kill(t, vm, c.processes(vm)["agent"][0])
	await(t, "the add-on manager runs", func() error { return c.one(vm, append(kinds, "addons")...) })
	uids := func(want func(name string) string) error {
		found := c.processes(vm)
		for name := range users {
			if len(found[name]) != 1 {
				return fmt.Errorf("%s: processes %v", name, found[name])
			}
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/proc/%s/status", c.vm(vm).InitPID, found[name][0]))
			if err != nil {
				return err
			}
			status := strings.ReplaceAll(string(b), "\t", " ")
			for _, line := range strings.Split(want(name), "\n") {
				if !strings.Contains(status, line) {
					return fmt.Errorf("%s: its status has no line %q:\n%s", name, line, status)
				}
			}
		}
		return nil
	}
	if err := uids(func(string) string { return "Uid: 0 0 0 0" }); err != nil {
		t.Fatal(err)
	}
	c.mustKubectl(t, "", "create", "configmap", "before")
	for name, id := range users {
		c.in(t, vm, fmt.Sprintf("echo '%s:x:%s:%s::/:/usr/sbin/nologin' >>/etc/passwd", name, id, id))
	}
	c.kill(t, vm, c.processes(vm)["agent"][0])
	await(t, "all run as their users", func() error {
		return uids(func(name string) string {
			id, capabilities := users[name], "0000000000000000"
			if name == "kube-apiserver" {
				capabilities = "0000000000000400" // CAP_NET_BIND_SERVICE
			}
			return fmt.Sprintf("Uid: %s %s %s %s\nGid: %s %s %s %s\nGroups: \nCapEff: %s", id, id, id, id, id, id, id, id,
				capabilities)
		})
	})
	await(t, "whole", c.whole)
	c.mustKubectl(t, "", "get", "configmap", "before")
	c.mustKubectl(t, "", "-n", "kube-public", "delete", "configmap", "applied", "--ignore-not-found")
	await(t, "the add-on manager applies, as its user", func() error {
		_, err := c.kubectl(t, "", "-n", "kube-public", "get", "configmap", "applied")
		return err
	})
	// The controller-manager makes the account, and the apiserver signs with a key that both of them read.
	await(t, "a token is signed", func() error { _, err := c.kubectl(t, "", "create", "token", "default"); return err })
	for path, want := range map[string]string{
		"/var/lib/quorate": "711 0", "/var/lib/quorate/pki": "711 0", "/run/quorate": "711 0", "/run/quorate/pki": "711 0",
		"/var/lib/quorate/etcd": "700 951", "/var/lib/quorate/etcd/member/wal": "700 951", "/run/quorate/member": "700 951",
		"/var/lib/quorate/pki/etcd-server.pem": "600 951", "/var/lib/quorate/pki/apiserver.pem": "600 952",
		"/var/lib/quorate/pki/service-account.key":        "640 952",
		"/var/lib/quorate/pki/scheduler.kubeconfig":       "600 953",
		"/var/lib/quorate/pki/controller-manager.pem":     "600 954",
		"/run/quorate/pki/kubernetes-ca-signer.key":       "600 954",
		"/var/lib/quorate/pki/addons.pem":                 "600 956",
		"/var/lib/quorate/pki/autoscaler.pem":             "600 0", // the system has no user of its name
		"/run/quorate/addons":                             "700 956",
		"/run/quorate/encryption-config.yaml":             "600 952",
		"/var/lib/quorate/pki/encryption-config.yaml":     "600 0",
		"/var/lib/quorate/pki/agent.pem":                  "600 0",
		"/var/lib/quorate/pki/kubelet.pem":                "600 0",
		"/var/lib/quorate/agent.json":                     "600 0",
		"/var/log/quorate/audit/kube-apiserver-audit.log": "600 952",
	} {
		if got := strings.TrimSpace(c.in(t, vm, "stat -c '%a %u' "+path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if out := c.in(t, vm, "setpriv --reuid 953 --regid 953 --clear-groups cat /var/lib/quorate/pki/apiserver.pem "+
		"/var/lib/quorate/pki/service-account.key /run/quorate/identity.json 2>&1; true"); strings.Count(out,
		"Permission denied") != 3 {
		t.Errorf("the scheduler's user reads what is another's: %s", out)
	}
	c.must(t, c.SetAttribute("", agent.ClusterAttribute, &c.document))
	c.must(t, c.KillVM(t.Context(), vm)) // the VM's users are gone with its boot disk, and root reads all
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, "whole as root again", c.whole)
	c.mustKubectl(t, "", "get", "configmap", "before")
}
