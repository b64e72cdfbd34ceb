package rivals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

const (
	// settle is how long both units run before the next fault: monit asks no port of a process that is younger than
	// its start's timeout of 60 s, and no rival is at its best in the first moments.
	settle = 62 * time.Second
	// quiet is how long nothing happens at first: two rivals begin 120 s after their start. In its second part it is
	// measured what they cost.
	quietFirst, quietThen = 30 * time.Second, 100 * time.Second
	// bootLimit is far above what the boots of a lane's VMs take, beside other work.
	bootLimit = 10 * time.Minute
)

// Config is what a run needs.
type Config struct {
	// Dir takes the projects' folders. Image is a root.tar, Cache the folder of its trees, Bin that of the programs,
	// Monit the program.
	Dir, Image, Cache, Bin, Monit string
	// Budget is how long faults are begun for, after the first of each kind.
	Budget time.Duration
	// Begin begins the record of a project with one master, and adds to its configuration what the master needs; more
	// are lines for its document.
	Begin func(ctx context.Context, conf *localgce.Config, more string) error
	// Load is the machine's load.
	Load func() string
	// Say gets a line for a person now and then. It may be called concurrently.
	Say func(format string, args ...any)
}

// Result is what a run has measured.
type Result struct {
	Outcomes []Outcome `json:"outcomes"`
	Costs    []Cost    `json:"costs"`
	// Broken says of which VMs the rest was not measured, and why.
	Broken []string `json:"broken,omitempty"`
}

// run is one run.
type run struct {
	Config
	projects []*localgce.Project
	vms      []*vm // those that are observed

	mu     sync.Mutex
	result Result
}

// Measure measures everything, one lane after the other: fifteen VMs at once would keep two cores busy, and what is
// measured then is the machine.
func Measure(ctx context.Context, c Config) (*Result, error) {
	r := &run{Config: c}
	for i := range lanes {
		if err := r.measure(ctx, i); err != nil {
			return nil, err
		}
	}
	return &r.result, nil
}

// measure boots the VMs of a lane and lets its faults befall all of them at the same time. In the first lane it
// measures what the rivals cost, too.
func (r *run) measure(ctx context.Context, lane int) error {
	defer r.shut()
	vms, unwatched, err := r.boot(ctx, lane)
	if err != nil {
		return err
	}
	r.Say("lane %d of %d: %d VMs are up", lane+1, len(lanes), len(r.vms))
	if unwatched != nil {
		if err := pause(ctx, quietFirst); err != nil {
			return err
		}
		if r.result.Costs, err = costs(ctx, append(slices.Clone(vms), unwatched), quietThen); err != nil {
			return err
		}
	}
	end := time.Now().Add(r.Budget / time.Duration(len(lanes)))
	var all sync.WaitGroup
	for _, v := range vms {
		all.Go(func() {
			if err := r.sufferAll(ctx, v, lanes[lane], end); err != nil {
				r.broken(fmt.Sprintf("%s, lane %d: %v", v.rival.name, lane+1, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// broken notes a VM of which nothing more is measured. The others go on.
func (r *run) broken(why string) {
	r.Say("%s", why)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Broken = append(r.result.Broken, why)
}

// sufferAll lets the faults of a lane befall a VM, again and again, each once at least.
func (r *run) sufferAll(ctx context.Context, v *vm, faults []fault, end time.Time) error {
	for round := 0; ; round++ {
		for _, f := range faults {
			if round > 0 && time.Now().After(end) {
				return nil
			}
			if err := v.settled(ctx); err != nil {
				return err
			}
			out, err := v.suffer(ctx, f, r.Load())
			if err != nil {
				return fmt.Errorf("under %s: %w", v.rival.name, err)
			}
			r.mu.Lock()
			r.result.Outcomes = append(r.result.Outcomes, out)
			r.mu.Unlock()
			r.Say("%s under %s: seen after %.1f s, well after %.1f s, %d wrong actions, %d containers lost; load %s",
				f.Name, v.rival.name, out.Seen, out.Well, out.Wrong, out.Lost, out.Load)
			if err := v.repair(ctx, f); err != nil {
				return err
			}
		}
	}
}

// settled waits until the units have run for a while, and then for a moment of the rival's period.
func (v *vm) settled(ctx context.Context) error {
	for time.Since(v.calmSince()) < settle {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return pause(ctx, rand.N(v.period))
}

// boot boots the VMs of a lane, and with the first one a master whose watch is off.
func (r *run) boot(ctx context.Context, lane int) (vms []*vm, unwatched *vm, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("not up within %s", bootLimit))
	defer cancel()
	rivals := all()
	if lane == 0 {
		off := rivals[0]
		off.name = Unwatched
		if unwatched, err = r.master(ctx, len(lanes), off, "kubelet: {watch: false}\n"); err != nil {
			return nil, nil, err
		}
	}
	master, err := r.master(ctx, lane, rivals[0], "")
	if err != nil {
		return nil, nil, err
	}
	others, err := r.others(ctx, lane, rivals[1:], master)
	return append([]*vm{master}, others...), unwatched, err
}

// project is the configuration of the nth project.
func (r *run) project(n int, kind string) localgce.Config {
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 248, byte(n), 0}), 25)
	endpoint := netip.AddrFrom4([4]byte{10, 248, byte(n), 100})
	return localgce.Config{State: filepath.Join(r.Dir, fmt.Sprintf("%s-%d", kind, n)), Cluster: "bench",
		Prompt: true, Subnet: subnet,
		Endpoint: endpoint, NoHostRoute: true, Kind: localgce.SystemdVMs, Image: r.Image, Cache: r.Cache,
		Binds: []localgce.Bind{{Host: r.Bin, Guest: "/usr/local/bin", ReadOnly: true}}}
}

// master boots a lane's master and waits for its pod.
func (r *run) master(ctx context.Context, lane int, of rival, more string) (*vm, error) {
	conf := r.project(2*lane, "master")
	conf.VMs = []localgce.VMConfig{{Name: "master-a", Zone: "us-central1-a"}}
	if err := r.Begin(ctx, &conf, more); err != nil {
		return nil, err
	}
	project, err := r.start(ctx, conf)
	if err != nil {
		return nil, err
	}
	v := r.vmOf(project, "master-a", of)
	return v, r.await(ctx, v, "test -s /var/lib/quorate/pki/kubelet.kubeconfig")
}

// others boots the VMs of the other rivals, each with the kubelet's files of the lane's master.
func (r *run) others(ctx context.Context, lane int, rivals []rival, master *vm) (vms []*vm, err error) {
	conf := r.project(2*lane+1, "rivals")
	conf.Masked = []string{"quorate.service"}
	for i := range rivals {
		conf.VMs = append(conf.VMs, localgce.VMConfig{Name: fmt.Sprintf("rival-%d", i), Zone: "us-central1-a"})
	}
	project, err := r.start(ctx, conf)
	if err != nil {
		return nil, err
	}
	for i, of := range rivals {
		v := r.vmOf(project, conf.VMs[i].Name, of)
		if err := until(ctx, func() error { return v.run(ctx, "mkdir -p /var/lib/quorate") }); err != nil {
			return nil, err
		}
		const pki = "/var/lib/quorate/pki"
		if _, err := output(exec.CommandContext(ctx, "cp", "-a", master.path(pki), v.path(pki))); err != nil {
			return nil, err
		}
		if err := r.await(ctx, v, "true"); err != nil {
			return nil, err
		}
		if err := of.install(ctx, v); err != nil {
			return nil, fmt.Errorf("install %s: %w", of.name, err)
		}
		vms = append(vms, v)
	}
	return vms, nil
}

func (r *run) start(ctx context.Context, conf localgce.Config) (*localgce.Project, error) {
	project, err := localgce.Start(ctx, conf)
	if err == nil {
		r.projects = append(r.projects, project)
	}
	return project, err
}

// shut ends the observers and the projects.
func (r *run) shut() {
	for _, v := range r.vms {
		v.stop()
	}
	for _, p := range r.projects {
		if err := p.Close(context.Background()); err != nil {
			r.Say("close a project: %v", err)
		}
	}
	r.vms, r.projects = nil, nil
}

func (r *run) vmOf(project *localgce.Project, name string, of rival) *vm {
	v := &vm{rival: of, name: name, project: project, monit: r.Monit}
	for _, s := range project.Status().VMs {
		if s.Name == name {
			v.pid = s.InitPID
		}
	}
	return v
}

// await waits until a script succeeds in a VM, then for its units and for its pod.
func (r *run) await(ctx context.Context, v *vm, script string) error {
	if err := until(ctx, func() error { return v.run(ctx, script) }); err != nil {
		return err
	}
	observed, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o, wait := observe(observed, v.pid)
	v.observer, v.stop = o, func() { cancel(); wait() }
	r.vms = append(r.vms, v)
	// A kubelet gets none before a controller-manager has given its Node a range of addresses.
	if err := v.write("/etc/cni/net.d/99-bench.conflist", file("cni.conflist"), 0o644); err != nil {
		return err
	}
	if err := v.write("/etc/kubernetes/manifests/witness.yaml", file("pod.yaml"), 0o644); err != nil {
		return err
	}
	return until(ctx, func() error {
		found, err := v.containers(ctx)
		if err == nil && (len(found) < 2 || !v.wellWithin(ctx, time.Second)) {
			err = errors.New("the pod does not run yet")
		}
		return err
	})
}

// until tries again until it succeeds.
func until(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if pause(ctx, time.Second) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
