package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/agent"
)

// TestEncryptionIsSwitchedMasterByMaster: encryption at rest goes from on to off and on again, one master after the
// other, while Secrets are written and read through every apiserver. No read fails. After each step etcd holds what is
// written through a master as that master's status says. Once all say the same, the runbook's command rewrites the
// rest.
func TestEncryptionIsSwitchedMasterByMaster(t *testing.T) {
	onlyInChaos(t, "3 minutes: agents are restarted six times")
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}})
	c.awaitWhole(t)
	writesWith := map[string]string{"master-a": "g1", "master-b": "g1", "master-c": "g1"}
	c.wantWrites(t, "before", writesWith)
	l := c.startSecrets(t)
	for _, key := range []string{"", "g1"} {
		for _, vm := range c.vms {
			document := fmt.Sprintf("%sencryptionAtRest: %t\n", c.document, key != "")
			c.must(t, c.SetAttribute(vm, agent.ClusterAttribute, &document))
			c.wantWrites(t, "told-"+vm+key, writesWith) // the document alone changes nothing
			l.away(vm, func() { c.restartAgent(t, vm) })
			writesWith[vm] = key
			c.wantWrites(t, "switched-"+vm+key, writesWith)
			l.goesOn(t)
		}
		c.rewriteSecrets(t)
		for name, stored := range c.storedSecrets(t) {
			if !writtenWith(stored, key) {
				t.Errorf("after all were rewritten, with key %q: %s begins with %.40q", key, name, stored)
			}
		}
	}
	l.end(t)
}

// writtenWith reports whether bytes of etcd are encrypted with that key or, where it is empty, are in the clear.
func writtenWith(stored, key string) bool {
	if key == "" {
		return !strings.HasPrefix(stored, "k8s:enc:")
	}
	return strings.HasPrefix(stored, "k8s:enc:secretbox:v1:"+key+":")
}

// restartAgent is `systemctl restart` of the agent, which takes all else on the VM with it.
func (c *cluster) restartAgent(t *testing.T, vm string) {
	t.Helper()
	former := c.processes(vm)["agent"][0]
	c.in(t, vm, "kill -TERM "+former)
	await(t, "another agent on "+vm+", and the cluster whole", func() error {
		if now := c.processes(vm)["agent"]; len(now) != 1 || now[0] == former {
			return fmt.Errorf("agents on %s: %q, before %s", vm, now, former)
		}
		return c.whole()
	})
}

// wantWrites writes a Secret through each master, and wants every master to read it. Etcd must hold it encrypted with
// the writer's key, or in the clear where it has none, and the writer's status must say so.
func (c *cluster) wantWrites(t *testing.T, prefix string, writesWith map[string]string) {
	t.Helper()
	l := c.secretsOf(t)
	for vm, key := range writesWith {
		s, err := c.status(vm)
		c.must(t, err)
		if s.Encryption == nil || s.Encryption.WritesWith != key ||
			!slices.Equal(s.Encryption.ReadsWith, []string{"g1"}) {
			t.Errorf("%s: the status of %s says %+v, want key %q", prefix, vm, s.Encryption, key)
		}
		name := prefix + "-" + vm
		status, _, err := l.call(t.Context(), http.MethodPost, vm, "", secretNamed(name))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("create %s through %s: %d, %v", name, vm, status, err)
		}
		for _, other := range c.vms {
			if err := l.read(t.Context(), other, name); err != nil {
				t.Errorf("written through %s: %v", vm, err)
			}
		}
		stored := c.storedSecrets(t)[name]
		if !writtenWith(stored, key) || strings.Contains(stored, plain(name)) != (key == "") {
			t.Errorf("written through %s, key %q: etcd holds %.40q", vm, key, stored)
		}
	}
}

// storedSecrets are the bytes that etcd holds of each Secret.
func (c *cluster) storedSecrets(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	c.withMember(t, c.vms[0], func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, "/registry/secrets/", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			out[filepath.Base(string(kv.Key))] = string(kv.Value)
		}
		return nil
	})
	return out
}

// rewriteSecrets is what the runbook says.
func (c *cluster) rewriteSecrets(t *testing.T) {
	t.Helper()
	begin := time.Now()
	file := filepath.Join(c.state, "secrets.json")
	c.must(t, os.WriteFile(file, []byte(c.mustKubectl(t, "", "get", "secrets", "-A", "-o", "json")), 0o600))
	out := c.mustKubectl(t, "", "replace", "-f", file)
	t.Logf("%d Secrets were rewritten in %s", strings.Count(out, " replaced"), time.Since(begin).Round(time.Second))
}

// endpoint stands for the load balancer among the masters' names.
const endpoint = ""

// secretLoad writes Secrets through every master, and reads them through every master and the endpoint.
type secretLoad struct {
	cluster *cluster
	client  *http.Client
	stop    context.CancelFunc
	wait    sync.WaitGroup

	mu      sync.Mutex
	written []string
	gone    string // the master whose apiserver may not answer
	reads   map[string]int
	missed  int // reads of a master that was gone
	failed  []error
}

func (c *cluster) secretsOf(t *testing.T) *secretLoad {
	t.Helper()
	l := &secretLoad{cluster: c, client: c.clientFor(t), reads: map[string]int{}}
	l.client.Timeout = 10 * time.Second // a stall is not what this is about
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

// startSecrets begins the load.
func (c *cluster) startSecrets(t *testing.T) *secretLoad {
	t.Helper()
	l := c.secretsOf(t)
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	t.Cleanup(func() { stop(); l.wait.Wait() }) // also where the test ends before end is called
	for _, vm := range c.vms {
		l.wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.write(ctx, vm, fmt.Sprintf("load-%s-%d", vm, n))
				time.Sleep(time.Second)
			}
		})
	}
	for _, vm := range append([]string{endpoint}, c.vms...) {
		l.wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.readOnce(ctx, vm, n%50 == 0)
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	return l
}

func plain(name string) string { return "plain words of " + name }

func secretNamed(name string) string {
	const document = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"stringData":{"k":%q}}`
	return fmt.Sprintf(document, name, plain(name))
}

// call asks a master, or the endpoint, about a Secret or, without a name, about all of them.
func (l *secretLoad) call(ctx context.Context, method, vm, name, body string) (status int, answer []byte, err error) {
	address := l.cluster.endpoint()
	if vm != endpoint {
		address = l.cluster.vm(vm).Address
	}
	url := "https://" + address + "/api/v1/namespaces/default/secrets"
	if name != "" {
		url += "/" + name
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// errNoAnswer says that nobody has looked at the request: there was no connection, or the apiserver starts or ends.
var errNoAnswer = errors.New("no answer")

// get is a call that must succeed.
func (l *secretLoad) get(ctx context.Context, vm, name string, into any) error {
	status, answer, err := l.call(ctx, http.MethodGet, vm, name, "")
	switch {
	case err != nil:
		return fmt.Errorf("read %q through %q: %w: %w", name, vm, errNoAnswer, err)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return fmt.Errorf("read %q through %q: %w: %d %.200s", name, vm, errNoAnswer, status, answer)
	case status != http.StatusOK:
		return fmt.Errorf("read %q through %q: %d %.200s", name, vm, status, answer)
	}
	return json.Unmarshal(answer, into)
}

func (l *secretLoad) read(ctx context.Context, vm, name string) error {
	var secret struct{ Data map[string][]byte }
	err := l.get(ctx, vm, name, &secret)
	if err == nil && string(secret.Data["k"]) != plain(name) {
		err = fmt.Errorf("read %s through %s: it holds %q", name, vm, secret.Data["k"])
	}
	return err
}

// list wants all of these Secrets, and no value that is wrong.
func (l *secretLoad) list(ctx context.Context, vm string, names []string) error {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	if err := l.get(ctx, vm, "", &list); err != nil {
		return err
	}
	values := map[string]string{}
	for _, item := range list.Items {
		values[item.Metadata.Name] = string(item.Data["k"])
	}
	for _, name := range names {
		if values[name] != plain(name) {
			return fmt.Errorf("list through %s: %s holds %q", vm, name, values[name])
		}
	}
	return nil
}

func (l *secretLoad) write(ctx context.Context, vm, name string) {
	l.mu.Lock()
	gone := l.gone
	l.mu.Unlock()
	status, answer, err := l.call(ctx, http.MethodPost, vm, "", secretNamed(name))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && status == http.StatusCreated:
		l.written = append(l.written, name)
	case vm != gone && vm != l.gone && ctx.Err() == nil:
		l.failed = append(l.failed, fmt.Errorf("write through %s: %d %.200s: %v", vm, status, answer, err))
	}
}

// readOnce reads a Secret, or all. Through the endpoint it tries again when a connection breaks, as every client does.
func (l *secretLoad) readOnce(ctx context.Context, vm string, all bool) {
	l.mu.Lock()
	names, gone := slices.Clone(l.written), l.gone
	l.mu.Unlock()
	if len(names) == 0 {
		return
	}
	read := func() error { return l.read(ctx, vm, names[rand.IntN(len(names))]) }
	if all {
		read = func() error { return l.list(ctx, vm, names) }
	}
	err := read()
	for tries := 1; vm == endpoint && errors.Is(err, errNoAnswer) && tries < 3; tries++ {
		err = read()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.reads[vm]++
	case ctx.Err() != nil:
	case errors.Is(err, errNoAnswer) && vm != endpoint && (vm == gone || vm == l.gone):
		l.missed++
	default:
		l.failed = append(l.failed, err)
	}
}

// away is the time in which a master's apiserver need not answer.
func (l *secretLoad) away(vm string, do func()) {
	set := func(vm string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gone = vm
	}
	set(vm)
	do()
	set(endpoint)
}

// goesOn wants further reads through every master and the endpoint, and none that failed.
func (l *secretLoad) goesOn(t *testing.T) {
	t.Helper()
	count := func() (reads []int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, vm := range append([]string{endpoint}, l.cluster.vms...) {
			reads = append(reads, l.reads[vm])
		}
		return reads
	}
	before := count()
	await(t, "reads through all masters", func() error {
		for i, now := range count() {
			if now < before[i]+10 {
				return fmt.Errorf("%d reads, before %d", now, before[i])
			}
		}
		return nil
	})
	l.wantNoneFailed(t)
}

func (l *secretLoad) wantNoneFailed(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.failed); n > 0 {
		t.Fatalf("%d calls failed, the first ones: %v", n, errors.Join(l.failed[:min(5, n)]...))
	}
}

// end stops the load, and reads everything once more through each master.
func (l *secretLoad) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.wait.Wait()
	l.wantNoneFailed(t)
	for _, vm := range l.cluster.vms {
		if err := l.list(t.Context(), vm, l.written); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d Secrets; reads %v; %d without an answer, of masters being restarted", len(l.written), l.reads, l.missed)
}
