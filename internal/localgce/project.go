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

	"github.com/quorate/quorate/internal/localgce/balancer"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/compute"
	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/firewall"
	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/host"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/names"
	"github.com/quorate/quorate/internal/localgce/network"
	"github.com/quorate/quorate/internal/localgce/settings"
	"github.com/quorate/quorate/internal/localgce/tree"
)

// ErrUp is returned by Start for a state folder whose project is up.
var ErrUp = names.ErrUp

// PreflightError names everything that the machine lacks.
type PreflightError = host.PreflightError

// RunInitIfAsked must be the first call of main, and of TestMain in tests, of every program that calls Start: the
// project starts that program again as pid 1 of its VMs. There, it does not return.
func RunInitIfAsked() { guest.RunInitIfAsked() }

// Project is a GCE project that is up. Its methods may be called concurrently; operations on one VM wait for each
// other.
type Project struct {
	conf     Config
	names    names.Names
	fabric   network.Fabric
	cgroup   string
	lock     *names.Lock
	depot    disk.Depot
	tree     *tree.Tree // nil but of SystemdVMs
	balancer *balancer.Balancer
	compute  *compute.Server
	buckets  *buckets.Server
	settings *settings.Settings
	faults   fault.Set

	tasks  sync.WaitGroup // every goroutine of the project's own
	cancel context.CancelFunc
	server *http.Server // the Compute API and the bucket

	cuts sync.Mutex // orders changes of the filter; taken before mu

	mu         sync.Mutex
	vms        []*vm             // replaced as a whole where VMs come and go
	index      int               // the last that a VM got
	attributes map[string]string // of the VMs to come
	ruled      bool              // a forwarding rule has had the endpoint's address
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
	p := &Project{conf: conf, names: names.For(conf.State), settings: settings.Local(conf.Cluster,
		conf.Endpoint.String())}
	p.fabric = network.New(p.networkConfig())
	if p.lock, err = p.names.Take(); err != nil {
		return nil, err
	}
	if err := p.bringUp(ctx); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *Project) bringUp(ctx context.Context) (err error) {
	if err := os.MkdirAll(p.names.State, 0o755); err != nil {
		return fmt.Errorf("make state folder: %w", err)
	}
	p.conf.Progress("checking the machine")
	if err := preflight(ctx, p.names, p.conf); err != nil {
		return err
	}
	if err := sweep(ctx, p.names); err != nil {
		return fmt.Errorf("clean up after an earlier project: %w", err)
	}
	if !p.conf.NoHostRoute {
		if err := freeHostRange(ctx, p.networkConfig()); err != nil {
			return err
		}
	}
	if err := p.openTree(ctx); err != nil {
		return err
	}
	if p.depot, err = disksOf(p.names).Open(ctx, p.conf.Reflink); err != nil {
		return err
	}
	p.settings.Subnetworks[0]["ipCidrRange"] = p.conf.Subnet.String()
	if p.buckets, err = buckets.Open(filepath.Dir(p.conf.BucketFolder()), p.settings); err != nil {
		return err
	}
	if err := p.loadVMs(); err != nil {
		return err
	}
	root, err := cgroup.Root()
	if err != nil {
		return err
	}
	p.cgroup = filepath.Join(root, p.names.Fabric())
	if err := cgroup.Make(p.cgroup); err != nil {
		return err
	}
	cgroup.HandDown(p.cgroup)
	p.conf.Progress(fmt.Sprintf("making the network %s", p.conf.Subnet))
	if err := p.fabric.Create(ctx); err != nil {
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
	err := network.In(p.names.Fabric(), func() (err error) {
		listener, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", p.conf.gateway(), servicesPort))
		return err
	})
	if err != nil {
		return fmt.Errorf("open Google's services: %w", err)
	}
	p.balancer = balancer.New(p.names.Fabric())
	times := p.conf.times()
	p.compute = compute.New(compute.Config{Instances: p.Instances, Unattached: p.unattached, Caller: p.caller,
		Changes: changes{p}, Zones: p.conf.Zones, Images: p.conf.Images, Settings: p.settings,
		ForwardingChanged: p.publishAll, Healthy: p.balancer.Healthy, OperationTime: times.Operation.Any})
	p.buckets.Enforce(func(r *http.Request, bucket, object, permission string) bool {
		return p.caller(r) == "" || p.settings.GrantsObject(instance.MastersAccount(), bucket, object, permission)
	})
	compute := times.Compute.Before(p.faults.Before(fault.Compute, p.caller,
		withinScopes(fault.Compute, p.scopesOf, p.compute)))
	storage := p.conf.BeforeBucket(times.Storage.Before(p.faults.Before(fault.Storage, p.caller,
		withinScopes(fault.Storage, p.scopesOf, p.buckets))))
	p.server = &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: settings.NewAPIs(compute, storage, p.settings)}
	p.tasks.Go(func() { _ = p.server.Serve(listener) }) // ends with Close

	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.tasks.Go(func() {
		p.balancer.Run(ctx, p.services, p.external, func(err error) { p.conf.Log.Error("load balancer", "error", err) })
	})
	p.tasks.Go(func() {
		firewall.Run(ctx, p.names.Fabric(), p.walls, func(err error) { p.conf.Log.Error("firewall", "error", err) })
	})
	return nil
}

// walls are the firewall's rules, and the VMs that they are about.
func (p *Project) walls() firewall.State {
	rules, ruled := p.compute.FirewallRules()
	return firewall.State{Ruled: ruled, Rules: rules, VMs: p.Instances()}
}

// Instances are the project's VMs as Google's APIs show them. VMs that were left running are not among them.
func (p *Project) Instances() (list []instance.VM) {
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
func (p *Project) instance(v *vm) instance.VM {
	return instance.VM{
		ID: v.ID, Name: v.Name, Zone: v.Zone, Address: v.Address, ExternalIP: v.ExternalIP,
		Forwarded: p.forwarded(v), Status: v.status,
		Attributes: maps.Clone(v.Attributes),
		Labels:     p.labels(v), Made: v.Made, Created: v.Created, DataDisk: v.Disk.Disk,
		Maintenance: v.event, LastStop: v.LastStop, Spot: v.Spot,
	}
}

// unattached are the disks that no VM has, each as the only disk of an instance without a name.
func (p *Project) unattached() (list []instance.VM) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.disks {
		list = append(list, instance.VM{Zone: d.Zone, Labels: map[string]string{clusterLabel: p.conf.Cluster},
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

// publishAll does so for all VMs.
func (p *Project) publishAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		p.publish(v)
	}
}

// Close powers all VMs off and removes every trace of the project from the machine. The files in the state folder stay.
func (p *Project) Close(ctx context.Context) error {
	if p.compute != nil {
		p.compute.Close()
	}
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
	p.depot.Close()
	errs = append(errs, sweep(ctx, p.names))
	if p.tree != nil {
		p.tree.Close()
	}
	p.lock.Release()
	return errors.Join(errs...)
}
