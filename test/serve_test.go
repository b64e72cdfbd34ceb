package test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember"
)

type (
	agentMember = etcdmember.MemberReport
	act         = func(context.Context, string) error
)

// firstBoots checks a cluster whose VMs were started at the same moment.
func firstBoots(t *testing.T, c *cluster) {
	c.awaitWhole(t)
	c.wantOneCluster(t)
	for _, vm := range c.vms {
		list := strings.Split(strings.TrimSpace(c.etcdctl(t, vm, "member list")), "\n")
		for _, line := range list {
			// the last field is "is learner"
			if !strings.Contains(line, ", started, ") || !strings.HasSuffix(line, ", false") {
				t.Errorf("%s lists %q, want a started voter", vm, line)
			}
		}
		if len(list) != len(c.vms) {
			t.Errorf("%s lists %d members: %q", vm, len(list), list)
		}
		c.must(t, c.one(vm))
	}
}

// wantOneCluster wants one epoch, formed, one bundle in the record, and one etcd cluster on all replicas.
func (c *cluster) wantOneCluster(t *testing.T) {
	t.Helper()
	objects := func(pattern string) []string {
		list, err := filepath.Glob(filepath.Join(c.record(), pattern))
		c.must(t, err)
		return list
	}
	if list := objects("epochs/*"); len(list) != 1 {
		t.Errorf("%d epochs in the record, want 1: %q", len(list), list)
	}
	if list := objects("bundle/*.sealed"); len(list) != 1 {
		t.Errorf("%d bundles in the record, want 1: %q", len(list), list)
	}
	var outcome struct{ Formed *struct{ ClusterID string } }
	b, err := os.ReadFile(filepath.Join(c.record(), "epochs", "1", "outcome.json"))
	c.must(t, err)
	c.must(t, json.Unmarshal(b, &outcome))
	if outcome.Formed == nil || outcome.Formed.ClusterID == "" {
		t.Fatalf("the epoch was not formed: %s", b)
	}
	for _, vm := range c.vms {
		s, err := c.status(vm)
		c.must(t, err)
		if s.Cluster.ID != outcome.Formed.ClusterID || s.Cluster.Epoch != 1 {
			t.Errorf("%s is in cluster %s, epoch %d; the record says %s, epoch 1", vm, s.Cluster.ID, s.Cluster.Epoch,
				outcome.Formed.ClusterID)
		}
	}
}

// seeder is the VM that holds the claim of the first epoch.
func (c *cluster) seeder(t *testing.T) string {
	t.Helper()
	var claim struct{ Seeder struct{ Name string } }
	b, err := os.ReadFile(filepath.Join(c.record(), "epochs", "1", "claim.json"))
	c.must(t, err)
	c.must(t, json.Unmarshal(b, &claim))
	return claim.Seeder.Name
}

// etcdctl asks a replica's own member with the agent's certificate, as an operator on the VM would.
func (c *cluster) etcdctl(t *testing.T, vm, args string) string {
	t.Helper()
	const pki = "/var/lib/quorate/pki/"
	return c.in(t, vm,
		"etcdctl --endpoints https://127.0.0.1:2379 --cacert "+pki+"etcd-client-ca.crt --cert "+pki+"agent-etcd.pem --key "+pki+"agent-etcd.pem "+args)
}

// serves writes through one replica and reads through the others and the endpoint.
func serves(t *testing.T, c *cluster) {
	addresses := []string{""} // the endpoint
	for _, vm := range c.vms {
		addresses = append(addresses, c.vm(vm).Address)
	}
	for _, a := range addresses {
		if out := c.mustKubectl(t, a, "get", "--raw", "/readyz"); out != "ok" {
			t.Errorf("/readyz of %q: %s", a, out)
		}
	}
	await(t, "both leases are held", func() error { return c.leasesHeldBy(t, c.vms) })
	leases := c.mustKubectl(t, "", "get", "leases", "--namespace", "kube-system", "-o", "name")
	for _, want := range []string{"lease.coordination.k8s.io/kube-scheduler",
		"lease.coordination.k8s.io/kube-controller-manager"} {
		if !strings.Contains(leases, want+"\n") {
			t.Errorf("no %s among the leases:\n%s", want, leases)
		}
	}
	c.mustKubectl(t, addresses[1], "create", "deployment", "web", "--image", "registry.example/web:1", "--replicas",
		"2")
	for _, a := range addresses {
		await(t, "the controllers see the deployment, read through "+a, func() error {
			out, err := c.kubectl(t, a, "get", "deployment", "web", "-o",
				"jsonpath={.spec.replicas} {.status.unavailableReplicas}")
			if err == nil && out != "2 2" {
				err = fmt.Errorf("wanted and unavailable replicas: %q", out)
			}
			return err
		})
	}
}

// encrypted reads a secret as etcd holds it.
func encrypted(t *testing.T, c *cluster) {
	c.mustKubectl(t, "", "create", "secret", "generic", "password", "--from-literal", "word=correct-horse")
	raw := c.etcdctl(t, "master-b", "get --print-value-only /registry/secrets/default/password")
	if !strings.HasPrefix(raw, "k8s:enc:") || strings.Contains(raw, "correct-horse") {
		t.Errorf("etcd holds the secret as %.200q", raw)
	}
	if got := c.mustKubectl(t, c.vm("master-c").Address, "get", "secret", "password", "-o",
		"jsonpath={.data.word}"); got != "Y29ycmVjdC1ob3JzZQ==" {
		t.Errorf("the secret is read as %q", got)
	}
}

// anonymous asks without a certificate.
func anonymous(t *testing.T, c *cluster) {
	client := http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{
		"/healthz": 200, "/livez": 200, "/readyz": 200,
		"/api": 401, "/version": 401, "/metrics": 401, "/api/v1/namespaces/default/secrets": 401,
	} {
		resp, err := client.Get("https://" + c.endpoint() + path)
		c.must(t, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d: %.200s", path, resp.Status, want, body)
		}
	}
}

// statusKeys checks the keys of `quorate status -o json`, which scripts rely on.
func statusKeys(t *testing.T, c *cluster) {
	for _, vm := range c.vms {
		await(t, vm+" is well", func() error {
			cmd, err := c.Command(t.Context(), vm, "quorate", "status")
			if err == nil {
				_, err = run(cmd)
			}
			return err
		})
		var s map[string]any
		var text string
		// An agent lists the leases when it has begun, when there may be none, and again each few seconds.
		await(t, vm+" has seen the leases", func() error {
			s, text = nil, c.in(t, vm, "quorate status -o json")
			c.must(t, json.Unmarshal([]byte(text), &s))
			if list, ok := s["leases"].([]any); !ok || len(list) == 0 {
				return errors.New("there is none")
			}
			return nil
		})
		for path, want := range map[string][]string{
			"": {"verdict", "notWell"}, "replica": {"zone", "name", "instanceID"}, "cluster": {"name", "epoch", "id"},
			"etcd.members[]": {"name", "id", "role", "leader", "started"}, "components[]": {"name", "state", "since",
				"restarts", "reason"},
			"leases[]": {"name", "holder"}, "certificates[]": {"name", "notAfter"},
		} {
			wantKeys(t, s, path, want)
		}
		if list, ok := s["blocked"].([]any); !ok || len(list) > 0 {
			t.Errorf("blocked is %v, want an empty list", s["blocked"])
		}
		if leaders := strings.Count(text, `"leader": true`); leaders != 1 {
			t.Errorf("%s sees %d leaders:\n%s", vm, leaders, text)
		}
	}
	// What the leader knows of every member.
	text := c.in(t, c.leader(t), "quorate status -o json")
	if n := strings.Count(text, `"lag": `); n != len(c.vms) {
		t.Errorf("the leader knows the lag of %d members, want %d:\n%s", n, len(c.vms), text)
	}
	people := c.in(t, "master-a", "quorate status")
	if !strings.HasPrefix(people, "master-a in us-central1-a is ready") {
		t.Errorf("for people:\n%s", people)
	}
}

// wantKeys wants an object, or every object of a list that is not empty, to have keys.
func wantKeys(t *testing.T, value any, path string, keys []string) {
	t.Helper()
	list := strings.HasSuffix(path, "[]")
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "[]"), ".") {
		if part == "" {
			continue // the whole
		}
		object, _ := value.(map[string]any)
		value = object[part]
	}
	objects := []any{value}
	if list {
		objects, _ = value.([]any)
	}
	if len(objects) == 0 {
		t.Errorf("%s is empty", path)
	}
	for _, o := range objects {
		object, _ := o.(map[string]any)
		missing := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, ok := object[k]; return ok })
		if len(missing) > 0 {
			t.Errorf("%s lacks %q: %v", path, missing, o)
		}
	}
}

// sameCluster wants the cluster that the first boots made.
func sameCluster(t *testing.T, c *cluster) {
	c.wantOneCluster(t)
	if out := c.mustKubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"); out != "2" {
		t.Errorf("the deployment has %q replicas", out)
	}
}
