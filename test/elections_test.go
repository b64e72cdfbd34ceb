package test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// worker is a component that may work on one master at a time, and writes down when it does. workFolder is where.
const (
	worker     = "one-at-a-time"
	workFolder = "/works"
	workPeriod = 20 * time.Millisecond
)

// workIfAsked is this program under the name of the worker, of the autoscaler, or of a controller-manager that hangs.
func workIfAsked() {
	switch filepath.Base(os.Args[0]) {
	case worker:
		go work(worker)
		fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:10998", http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) {})))
		os.Exit(1)
	case replica.Autoscaler:
		fmt.Fprintln(os.Stderr, autoscale(os.Args[1:]))
		os.Exit(1)
	case replica.ControllerManager:
		if err := manage(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// work writes the time since the machine's boot into a file of this VM's, again and again. All VMs share that clock.
func work(name string) {
	host, err := os.Hostname()
	if err == nil {
		var f *os.File
		f, err = os.OpenFile(filepath.Join(workFolder, name+"."+host), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		for err == nil {
			_, err = fmt.Fprintln(f, int64(election.SinceBoot()))
			time.Sleep(workPeriod)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// autoscale is what quorate relies on of cluster-autoscaler: its flags, its health check, a lease by the bare host
// name, and that it gives none back: SIGTERM ends it at once.
func autoscale(args []string) error {
	flags := flag.NewFlagSet(replica.Autoscaler, flag.ContinueOnError)
	kubeconfig, address := flags.String("kubeconfig", "", ""), flags.String("address", "", "")
	lease := flags.Duration("leader-elect-lease-duration", 0, "")
	deadline := flags.Duration("leader-elect-renew-deadline", 0, "")
	retry := flags.Duration("leader-elect-retry-period", 0, "")
	elect := flags.Bool("leader-elect", false, "")
	for _, name := range []string{"cloud-provider", "cluster-name", "v", "expendable-pods-priority-cutoff"} {
		flags.String(name, "", "")
	}
	for _, name := range []string{"write-status-configmap", "balance-similar-node-groups"} {
		flags.Bool(name, false, "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, host, err := elector(*kubeconfig)
	if err != nil || !*elect {
		return fmt.Errorf("elects: %t, %w", *elect, err)
	}
	go func() {
		leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler"},
				Client:    client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: host}},
			LeaseDuration: *lease, RenewDeadline: *deadline, RetryPeriod: *retry, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { work(replica.Autoscaler) },
				OnStoppedLeading: func() { fmt.Fprintln(os.Stderr, "lost master"); os.Exit(255) },
			},
		})
	}()
	health := http.NewServeMux()
	health.HandleFunc("/health-check", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(*address, health)
}

// elector is what a component that elects itself goes by: kube-apiserver's client, and its host's name.
func elector(kubeconfig string) (client *clientset.Clientset, host string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, "", err
	}
	if client, err = clientset.NewForConfig(config); err != nil {
		return nil, "", err
	}
	host, err = os.Hostname()
	return client, host, err
}

// electing is a cluster whose masters run all that is elected.
type electing struct {
	*cluster
	works   string
	clients map[string]*clientset.Clientset
}

// elected are the leases, and whom a person calls them by.
var elected = []string{"quorate", "kube-scheduler", "kube-controller-manager", replica.Autoscaler}

func beginElecting(t *testing.T, profile string) *electing {
	own := t.TempDir()
	common := programs(t)
	if err := share(common, own, append(append([]string{"quorate"}, kubernetes...), tools...)...); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	for _, name := range []string{worker, replica.Autoscaler} {
		if err == nil {
			err = copyFile(self, filepath.Join(own, name))
		}
	}
	works := t.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	c := begin(t, plan{vms: threeVMs, programs: own, more: "election: " + profile, components: `components:
  cluster-autoscaler: {enabled: true}
  one-at-a-time:
    binary: /usr/local/bin/one-at-a-time
    probe: {url: "http://127.0.0.1:10998/"}
    elect: agent
`, binds: []localgce.Bind{{Host: works, Guest: workFolder}}})
	e := &electing{c, works, map[string]*clientset.Clientset{}}
	c.awaitWhole(t)
	c.mustKubectl(t, "", "create", "clusterrolebinding", "autoscaler", "--clusterrole=cluster-admin",
		"--user=cluster-autoscaler")
	for _, vm := range c.vms {
		config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
		c.must(t, err)
		config.Host, config.Timeout = "https://"+c.vm(vm).Address, 2*time.Second
		e.clients[vm] = newClient(t, config)
	}
	await(t, "each lease is held", func() error { return e.held(c.vms[0], "") })
	return e
}

func newClient(t *testing.T, config *rest.Config) *clientset.Clientset {
	t.Helper()
	config.QPS, config.Burst = 100, 100
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// holders are the VMs that hold the leases, as a master says.
func (e *electing) holders(by string) (map[string]string, error) {
	all, err := e.clients[by].CoordinationV1().Leases("kube-system").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, l := range all.Items {
		if l.Spec.HolderIdentity != nil && slices.Contains(elected, l.Name) {
			out[l.Name], _, _ = strings.Cut(*l.Spec.HolderIdentity, "_")
		}
	}
	return out, nil
}

// held says which lease is held by nobody, or still by one VM.
func (e *electing) held(by, but string) error {
	holders, err := e.holders(by)
	if err != nil {
		return err
	}
	for _, name := range elected {
		if h := holders[name]; h == "" || h == but {
			return fmt.Errorf("%q holds %s", h, name)
		}
	}
	return nil
}

// failOver does something to the VM that leads, and returns after how long another held each of its leases, as a
// master that stays says.
func (e *electing) failOver(t *testing.T, vm string, do func() error) map[string]time.Duration {
	t.Helper()
	by := e.others(vm)[0]
	before, err := e.holders(by)
	e.must(t, err)
	took := map[string]time.Duration{}
	done := make(chan error, 1)
	begin := time.Now()
	go func() { done <- do() }()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now, err := e.holders(by)
		missing := false
		for name, h := range before {
			if _, ok := took[name]; ok || h != vm {
				continue
			}
			if err == nil && now[name] != "" && now[name] != vm {
				took[name] = time.Since(begin)
				continue
			}
			missing = true
		}
		if !missing {
			break
		}
	}
	e.must(t, <-done)
	for name, h := range before {
		if _, ok := took[name]; !ok && h == vm {
			t.Errorf("nobody else took %s from %s within %s", name, vm, patience)
		}
	}
	return took
}

// wantNeverTwo reads what the children wrote down: no two VMs worked at the same time, but for what a VM did within
// tolerated of when it stood still no more.
func (e *electing) wantNeverTwo(t *testing.T, name string, thawed worked, tolerated time.Duration) {
	t.Helper()
	var all []worked
	late := time.Duration(0)
	for _, vm := range e.vms {
		b, err := os.ReadFile(filepath.Join(e.works, name+"."+vm))
		if os.IsNotExist(err) {
			continue
		}
		e.must(t, err)
		for _, line := range strings.Fields(string(b)) {
			at, err := strconv.ParseInt(line, 10, 64)
			e.must(t, err)
			if after := time.Duration(at) - thawed.at; vm == thawed.vm && after >= 0 && after < tolerated {
				late = max(late, after)
				continue
			}
			all = append(all, worked{time.Duration(at), vm})
		}
	}
	turns := turnsOf(all)
	overlap, a, b := longestOverlap(turns)
	t.Logf("%s: %d moments of work, %d changes of the VM, two for %s; the thawed VM worked for %s", name, len(all),
		changes(turns), overlap, late)
	if overlap > 0 {
		t.Errorf("%s: %s and %s worked at the same time for %s, %s after %s stood still no more", name, a.vm, b.vm,
			overlap, b.from-thawed.at, thawed.vm)
	}
	if changes(turns) == 0 {
		t.Errorf("%s never changed the VM", name)
	}
}

// The kinds of fail-over.
const (
	plannedStop   = "planned stop"
	crash         = "crash"
	crashWithEtcd = "crash, led etcd too"
)

// failOverGoals are what each kind may take with a profile: the median of planned stops, the 95th percentile of
// crashes. On a machine with other work, twice that is the limit.
var failOverGoals = map[string]map[string]time.Duration{
	replica.ElectionFast: {plannedStop: time.Second, crash: 11 * time.Second, crashWithEtcd: 13 * time.Second},
	replica.ElectionSlow: {plannedStop: time.Second, crash: 18 * time.Second, crashWithEtcd: 20 * time.Second},
}

// failovers is how often each kind is measured.
var failovers = flag.Int("chaos.failovers", 5, "how often each kind of fail-over is measured, for each profile")

// lead makes a VM's member the leader of etcd.
func (e *electing) lead(t *testing.T, vm string) {
	t.Helper()
	leader := e.leader(t)
	if leader == vm {
		return
	}
	id, err := strconv.ParseUint(e.member(t, vm), 16, 64)
	e.must(t, err)
	e.withMember(t, leader, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MoveLeader(ctx, id)
		return err
	})
	await(t, vm+" leads etcd", func() error {
		if now := e.leader(t); now != vm {
			return fmt.Errorf("%s does", now)
		}
		return nil
	})
}

// What is elected fails over: within a second of a planned stop, and within the profile's time of a crash. Never do two
// work, through stops, crashes, a cut network and a VM that stands still.
func TestWhatIsElectedFailsOver(t *testing.T) {
	onlyInChaos(t, "10 minutes")
	t.Parallel()
	for profile, goals := range failOverGoals {
		t.Run(profile, func(t *testing.T) { failsOver(t, profile, goals) })
	}
}

func failsOver(t *testing.T, profile string, goals map[string]time.Duration) {
	e := beginElecting(t, profile)
	times := map[string]map[string]spread{}
	measure := func(kind, vm string, do func() error) {
		t.Helper()
		for name, d := range e.failOver(t, vm, do) {
			if times[kind] == nil {
				times[kind] = map[string]spread{}
			}
			times[kind][name] = append(times[kind][name], d)
		}
	}
	leader := func() (vm string) {
		t.Helper()
		await(t, "somebody holds the lease", func() error { // a connection may be of before a cut
			h, err := e.holders(e.vms[0])
			vm = h["quorate"]
			return err
		})
		return vm
	}
	for n := range 2 * *failovers {
		vm := leader()
		measure(plannedStop, vm, func() error { return e.StopVM(t.Context(), vm) })
		e.must(t, e.StartVM(t.Context(), vm))
		await(t, "whole", e.whole)
		vm = leader()
		kind := crash
		if n%2 == 1 {
			kind = crashWithEtcd
			e.lead(t, vm)
		} else if e.leader(t) == vm {
			e.lead(t, e.others(vm)[0])
		}
		measure(kind, vm, func() error { return e.KillVM(t.Context(), vm) })
		e.must(t, e.StartVM(t.Context(), vm))
		await(t, "whole", e.whole)
	}
	vm := leader()
	e.must(t, e.Cut(t.Context(), vm))
	await(t, "another leads while its network is cut", func() error { return e.held(e.others(vm)[0], vm) })
	e.must(t, e.Heal(t.Context(), vm))
	await(t, "whole", e.whole)
	vm = leader()
	e.must(t, e.FreezeVM(t.Context(), vm))
	await(t, "another leads while it stands still", func() error { return e.held(e.others(vm)[0], vm) })
	thawed := worked{election.SinceBoot(), vm}
	e.must(t, e.ThawVM(t.Context(), vm))
	await(t, "whole", e.whole)
	e.wantNeverTwo(t, worker, thawed, time.Second)
	// Nobody guards an autoscaler that stood still: it goes on until it gives up by itself.
	e.wantNeverTwo(t, replica.Autoscaler, thawed, 10*time.Second)
	for kind, goal := range goals {
		at := 0.95
		if kind == plannedStop {
			at = 0.5
		}
		for name, s := range times[kind] {
			took := s.at(at).Round(10 * time.Millisecond)
			t.Logf("%s, %s, %s: %s; p%.0f is %s, the goal is %s", profile, kind, name, s, 100*at, took, goal)
			if took > 2*goal {
				t.Errorf("%s, %s, %s: another held it after %s, want %s", profile, kind, name, took, goal)
			}
		}
	}
}
