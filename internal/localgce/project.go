package localgce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce/tree"
)

// Project is a GCE project that is up. Its methods may be called concurrently; operations on one VM wait for each
// other.
type Project struct {
	conf     Config
	names    names
	fabric   fabric
	cgroup   string
	lock     *lock
	depot    depot
	tree     *tree.Tree // nil but of SystemdVMs
	balancer *balancer
	compute  *ComputeServer
	buckets  *Buckets
	faults   faults

	tasks  sync.WaitGroup // every goroutine of the project's own
	cancel context.CancelFunc
	server *http.Server // the Compute API and the bucket

	cuts sync.Mutex // orders changes of the filter; taken before mu

	mu         sync.Mutex
	vms        []*vm             // replaced as a whole where VMs come and go
	index      int               // the last that a VM got
	attributes map[string]string // of the VMs to come
	disks      []volume          // that no VM has
	snapshots  []snapshot
	partitions []direction
}

// Start makes the project and starts its VMs. What an earlier project of the same state folder left on the machine is
// removed first; its VMs of the same names come back with their ids and data disks. ctx bounds Start only. If it fails,
// nothing is left.
func Start(ctx context.Context, conf Config) (*Project, error) {
	conf, err := conf.withDefaults()
	if err == nil {
		err = conf.validate()
	}
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	p := &Project{conf: conf, names: namesFor(conf.State)}
	p.fabric = fabric{names: p.names, conf: conf}
	if p.lock, err = takeLock(p.names); err != nil {
		return nil, err
	}
	if err := p.bringUp(ctx); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *Project) bringUp(ctx context.Context) (err error) {
	if err := os.MkdirAll(p.names.state, 0o755); err != nil {
		return fmt.Errorf("make state folder: %w", err)
	}
	p.conf.Progress("checking the machine")
	if err := p.names.preflight(ctx, p.conf); err != nil {
		return err
	}
	if err := p.names.sweep(ctx); err != nil {
		return fmt.Errorf("clean up after an earlier project: %w", err)
	}
	if !p.conf.NoHostRoute {
		if err := freeHostRange(ctx, p.conf); err != nil {
			return err
		}
	}
	if err := p.openTree(ctx); err != nil {
		return err
	}
	if p.depot, err = p.names.openDepot(ctx, p.conf.Reflink); err != nil {
		return err
	}
	if p.buckets, err = OpenBuckets(filepath.Dir(p.conf.BucketFolder())); err != nil {
		return err
	}
	if err := p.loadVMs(); err != nil {
		return err
	}
	root, err := cgroupRoot()
	if err != nil {
		return err
	}
	p.cgroup = filepath.Join(root, p.names.fabric())
	if err := makeCgroup(p.cgroup); err != nil {
		return err
	}
	handDown(p.cgroup)
	p.conf.Progress(fmt.Sprintf("making the network %s", p.conf.Subnet))
	if err := p.fabric.create(ctx); err != nil {
		return err
	}
	if err := p.runServices(); err != nil {
		return err
	}
	var group errgroup.Group
	for _, v := range p.vms {
		group.Go(func() error {
			err := p.StartVM(ctx, v.Name)
			if err == nil {
				p.conf.Progress(fmt.Sprintf("started %s in %s at %s", v.Name, v.Zone, v.Address))
			}
			return err
		})
	}
	return group.Wait()
}

// openTree makes sure that the image's tree is there, and stays.
func (p *Project) openTree(ctx context.Context) (err error) {
	if p.conf.Kind != SystemdVMs {
		return nil
	}
	p.tree, err = tree.Open(ctx, p.conf.Cache, p.conf.Image, func() {
		p.conf.Progress("unpacking the image's tree into " + p.conf.Cache)
	})
	return err
}

// runServices starts the Compute API, the bucket and the load balancer.
func (p *Project) runServices() error {
	var listener net.Listener
	err := inNamespace(p.names.fabric(), func() (err error) {
		listener, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", p.conf.gateway(), servicesPort))
		return err
	})
	if err != nil {
		return fmt.Errorf("open Google's services: %w", err)
	}
	p.compute = NewComputeServer(p.Instances)
	p.compute.unattached, p.compute.caller, p.compute.stop = p.unattached, p.caller, p.stopForAPI
	settings := localSettings(p.conf.Cluster)
	p.compute.settings, p.buckets.settings = settings, settings
	compute, storage := p.faults.before(Compute, p.caller, p.compute), p.faults.before(Storage, p.caller, p.buckets)
	p.server = &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: newAPIs(compute, storage, settings)}
	p.tasks.Go(func() { _ = p.server.Serve(listener) }) // ends with Close

	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.balancer = newBalancer(p.fabric)
	p.tasks.Go(func() {
		p.balancer.run(ctx, p.targets, func(err error) { p.conf.Log.Error("load balancer", "error", err) })
	})
	return nil
}

func (p *Project) targets() (list []target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		if v.Left > 0 {
			continue
		}
		list = append(list, target{index: v.Index, name: v.Name, address: v.Address,
			running: v.status == statusRunning})
	}
	return list
}

// Instances are the project's VMs as Google's APIs show them. VMs that were left running are not among them.
func (p *Project) Instances() (list []Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		if v.Left == 0 {
			list = append(list, p.instance(v))
		}
	}
	return list
}

// instance is a VM as Google's APIs show it. p.mu is held.
func (p *Project) instance(v *vm) Instance {
	return Instance{
		ID: v.ID, Name: v.Name, Zone: v.Zone, Address: v.Address, Endpoint: p.conf.Endpoint, Status: v.status,
		Attributes: maps.Clone(v.Attributes),
		Labels:     map[string]string{"quorate-cluster": p.conf.Cluster}, Created: v.Created, DataDisk: v.Disk.Disk,
		Maintenance: v.event,
		LastStop:    v.LastStop,
	}
}

// unattached are the disks that no VM has, each as the only disk of an instance without a name.
func (p *Project) unattached() (list []Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.disks {
		list = append(list, Instance{Zone: d.Zone, Labels: map[string]string{"quorate-cluster": p.conf.Cluster},
			DataDisk: d.Disk})
	}
	return list
}

// publish brings a running VM's metadata server up to date. p.mu is held.
func (p *Project) publish(v *vm) {
	if v.machine != nil && v.machine.metadata != nil {
		v.machine.metadata.Set(p.instance(v))
	}
}

// Close powers all VMs off and removes every trace of the project from the machine. The files in the state folder stay.
func (p *Project) Close(ctx context.Context) error {
	p.mu.Lock()
	vms := p.vms
	p.mu.Unlock()
	var group errgroup.Group
	for _, v := range vms {
		group.Go(func() error {
			v.ops.Lock()
			defer v.ops.Unlock()
			if v.machine == nil {
				return nil
			}
			return p.powerOff(ctx, v)
		})
	}
	errs := []error{group.Wait()}
	if p.cancel != nil {
		p.cancel()
	}
	if p.server != nil {
		_ = p.server.Close()
	}
	p.tasks.Wait()
	p.depot.close()
	errs = append(errs, p.names.sweep(ctx))
	if p.tree != nil {
		p.tree.Close()
	}
	p.lock.release()
	return errors.Join(errs...)
}
