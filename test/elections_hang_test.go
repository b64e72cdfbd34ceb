package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// hangFile lets the next renewal of the controller-manager below hang for ever.
const hangFile = workFolder + "/hang"

// hangingLock is a lease whose renewals hang where there is a hangFile. No time limit ends them.
type hangingLock struct{ resourcelock.Interface }

// Update writes the lease, or does not return.
func (l hangingLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if _, err := os.Stat(hangFile); err == nil {
		select {}
	}
	return l.Interface.Update(ctx, r)
}

// manage is a kube-controller-manager that elects itself as the real one does, and does nothing else. What hangs in it
// leaves its health green: the real one reports a lease that is overdue there.
func manage(args []string) error {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	if _, asked := flags["version"]; asked {
		_, err := fmt.Println("Kubernetes v1.36.3")
		return err
	}
	client, host, err := elector(flags["kubeconfig"])
	if err != nil {
		return err
	}
	times := [3]time.Duration{}
	for i, name := range []string{"lease-duration", "renew-deadline", "retry-period"} {
		if times[i], err = time.ParseDuration(flags["leader-elect-"+name]); err != nil {
			return err
		}
	}
	lock := hangingLock{&resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: replica.ControllerManager},
		Client:    client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: fmt.Sprintf("%s_%d-%d", host, os.Getpid(), time.Now().UnixNano())}}}
	go leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{Lock: lock,
		LeaseDuration: times[0], RenewDeadline: times[1], RetryPeriod: times[2],
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() { fmt.Fprintln(os.Stderr, "leaderelection lost"); os.Exit(1) }}})
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServeTLS("127.0.0.1:"+flags["secure-port"], flags["tls-cert-file"],
		flags["tls-private-key-file"], health)
}

// refuseLeases is a webhook that refuses writes of two leases: nobody answers at its address.
const refuseLeases = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuses-leases}
webhooks:
- name: refuses-leases.quorate.dev
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules:
  - {apiGroups: [coordination.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [leases]}
  matchConditions:
  - name: two-leases
    expression: "object.metadata.name in ['kube-controller-manager', 'kube-scheduler']"
  sideEffects: None
  failurePolicy: Fail
  admissionReviewVersions: [v1]
`

// hanging is one master with a controller-manager that hangs when it is told to. All else is real.
type hanging struct {
	*cluster
	vm, works string
}

// A leader that hangs under a green health is started again, once its lease can be written at all. While a webhook
// refuses that, it is not, and neither is a real scheduler again and again. One that hangs anew at once is told of.
func TestALeaderThatHangsUnderAGreenHealth(t *testing.T) {
	onlyInChaos(t, "4 minutes")
	t.Parallel()
	onlyInCases(t)
	own, works := t.TempDir(), t.TempDir()
	common := programs(t)
	self, err := os.Executable()
	if err == nil {
		err = share(common, own, append([]string{"quorate", replica.APIServer, replica.Scheduler}, tools...)...)
	}
	if err == nil {
		err = copyFile(self, filepath.Join(own, replica.ControllerManager))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := begin(t, plan{vms: []string{"master-a"}, programs: own,
		binds: []localgce.Bind{{Host: works, Guest: workFolder}}})
	h := &hanging{c, "master-a", works}
	c.awaitWhole(t)
	await(t, "it leads", func() error { return h.leads("") })
	first := h.lease(t)

	webhook := filepath.Join(c.state, "webhook.yaml")
	c.must(t, os.WriteFile(webhook, []byte(refuseLeases), 0o600))
	c.mustKubectl(t, "", "apply", "-f", webhook)
	h.hang(t, true)
	await(t, "it is told that nobody can write the lease", func() error {
		s, err := c.status(h.vm)
		if err == nil && !names(s, "lease-not-renewed", replica.ControllerManager, "which nobody could",
			"refuses-leases") {
			err = fmt.Errorf("blocked: %+v", s.Blocked)
		}
		return err
	})
	before := c.processes(h.vm)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		for _, name := range []string{replica.ControllerManager, replica.Scheduler} {
			if now := c.processes(h.vm)[name]; len(now) != 1 || now[0] != before[name][0] {
				t.Fatalf("%s is %v, was %v: it was started again while nobody can write its lease", name, now,
					before[name])
			}
		}
	}

	// The next process finds no such file; this one hangs for good.
	h.hang(t, false)
	c.mustKubectl(t, "", "delete", "-f", webhook)
	begin := time.Now()
	await(t, "another leads", func() error { return h.leads(first.Holder) })
	t.Logf("another process led %s after the lease could be written", time.Since(begin).Round(100*time.Millisecond))
	await(t, "whole", c.whole)
	if n := h.lease(t).Restarts; n != 1 {
		t.Errorf("it was started again %d times, want once", n)
	}
	second := h.lease(t)
	h.hang(t, true)
	await(t, "one that hangs anew is told of", func() error {
		s, err := c.status(h.vm)
		if err == nil && !names(s, "lease-not-renewed", replica.ControllerManager) {
			err = fmt.Errorf("blocked: %+v", s.Blocked)
		}
		return err
	})
	time.Sleep(30 * time.Second)
	if now := h.lease(t); now.Restarts != 1 || now.Holder != second.Holder {
		t.Errorf("it was started again within minutes: %+v, was %+v", now, second)
	}
}

// hang tells the controller-manager what to do.
func (h *hanging) hang(t *testing.T, yes bool) {
	t.Helper()
	path := filepath.Join(h.works, filepath.Base(hangFile))
	if yes {
		h.must(t, os.WriteFile(path, nil, 0o644))
		return
	}
	h.must(t, os.Remove(path))
}

// lease is what the agent says of the controller-manager's.
func (h *hanging) lease(t *testing.T) status.Lease {
	t.Helper()
	s, err := h.status(h.vm)
	h.must(t, err)
	for _, l := range s.Leases {
		if l.Name == replica.ControllerManager {
			return l
		}
	}
	t.Fatalf("no such lease in %+v", s.Leases)
	return status.Lease{}
}

// leads says that somebody but a former holder has the lease.
func (h *hanging) leads(but string) error {
	s, err := h.status(h.vm)
	if err != nil {
		return err
	}
	for _, l := range s.Leases {
		if l.Name == replica.ControllerManager && l.Holder != "" && l.Holder != but {
			return nil
		}
	}
	return fmt.Errorf("the leases are %+v", s.Leases)
}
