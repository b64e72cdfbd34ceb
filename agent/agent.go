// Package agent is the life of one replica, from the power switch to the power switch.
//
//	identity ── who am I, which cluster                     metadata server
//	   │
//	data disk ─ mounted, readable, writable                 the kernel
//	   │
//	record ──── what was ever formed, who may seed          the record, Compute API, peers
//	   │
//	certificates ── the bundle, then this replica's leaves  the record, KMS
//	   │
//	etcd ────── seed, join, or go on from the disk          etcdmember decides and acts
//	   │
//	control plane ── apiserver, then the other components   controlplane says how, supervisor runs them
//	   │
//	keep ────── READY=1; renew, promote, repair, report     until SIGTERM, then back up the same way
//
// Guarantees: once the member runs, only its own state, an order or a signal ends the agent, and with it the member. A
// control plane that cannot run is a wait. Every phase can be run again at any time, so a crash anywhere is repaired by
// starting again. A restart of the agent on a running VM needs no cloud service. No child outlives the
// agent: systemd (KillMode=mixed) or the VM's init sees to that, and of the agent's own runs the kernel (SelfRun).
//
// It does not know GCE, systemd or buckets: what it needs of them it states as interfaces, and cmd/quorate hands it the
// adapters.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent/accounts"
	"github.com/quorate/quorate/agent/certificates"
	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/endpoint"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/agent/telling"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/lastwords"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/supervisor"
)

// Metadata says who this VM is. Its calls try again until ctx is done; an error is final.
type Metadata interface {
	endpoint.Interfaces
	Identity(ctx context.Context) (replica.Identity, error)
	// Attribute returns an attribute of the instance, and whether there is one.
	Attribute(ctx context.Context, key string) (value string, found bool, err error)
	// Watch calls changed with an attribute's value at once, and again when it changes, until ctx is done. It calls it
	// for one change at a time.
	Watch(ctx context.Context, key string, changed func(value string, present bool)) error
	// Time is by the server's clock.
	Time(ctx context.Context) (time.Time, error)
	// WatchMaintenanceEvent calls changed with what the host plans for this VM (NONE: nothing) at once, and again when
	// it changes, until ctx is done.
	WatchMaintenanceEvent(ctx context.Context, changed func(event string)) error
	// Spot says whether the VM may be stopped at any time, with 30 s for it.
	Spot(ctx context.Context) (bool, error)
}

// Cloud is what lies outside the VM, opened once the configuration is known. Opening asks nobody.
type Cloud struct {
	Record  etcdmember.Record
	Bundles certificates.Bundles
	Compute etcdmember.ComputeAPI
	// Reports may be nil: then people outside learn nothing.
	Reports telling.Store
	// Balancer may be nil: then nobody is attached to the load balancer.
	Balancer endpoint.Balancer
	// DataDisk asks how the cloud shows the data disk; an error may pass. Nil: this VM has no data disk of its own.
	DataDisk datadisk.Ask
}

// Notifier reports to the service manager how far the replica is. Its calls return at once, with or without a manager.
type Notifier interface {
	Ready()
	Status(text string)
	Stopping()
}

// Config is what the agent needs of its VM.
type Config struct {
	// Log must not block: the boot, the stop and the supervision of children write to it.
	Log *slog.Logger
	// LogLoss says what of Log was lost; nil where nothing can be.
	LogLoss func() status.LogLoss
	// LastWords keeps the ends of the logs on the data disk; nil: nothing does.
	LastWords *lastwords.Keeper
	Metadata  Metadata
	Open      func(ctx context.Context, self replica.Identity, c *replica.Cluster) (Cloud, error)
	Notify    Notifier
	// LocalRoutes are the kernel's, of this VM.
	LocalRoutes endpoint.LocalRoutes
	// Baked is the configuration that the image brings, which the instance's attribute overrides; it may not exist.
	Baked string
	// ImageDisk is the data disk that the image mounts. It has to be mounted also where the configuration names none.
	ImageDisk datadisk.Image
	// RunDir is on a tmpfs: sockets, and what is true of this boot alone. LogDir takes the components' logs; empty: the
	// journal does. AuditDir takes the audit log, which is a file in any case.
	RunDir, LogDir, AuditDir string
	// HostsFile is /etc/hosts.
	HostsFile string
	// MetricsAddress is where Prometheus' text is served, without authentication: an address on loopback. Empty: on the
	// socket alone.
	MetricsAddress string
	// Account is the user of a name, if the system has one. Nil: it has none that the agent could use.
	Account accounts.Lookup
	// Self is this program, which the etcd child runs too; Version is how it calls itself.
	Self, Version string
	// Env is the environment that the children get; Cgroup the delegated cgroup for them, or empty.
	Env    []string
	Cgroup string
	// SaveSnapshot saves a snapshot of the own member's database to the record and returns once it counts; why is
	// written down with it.
	SaveSnapshot func(ctx context.Context, why string) error
	// OpenNode opens what the watch of the kubelet needs. Nil: no systemd runs this machine, and nothing is watched.
	OpenNode func(k replica.Kubelet) kubelet.Node
	// AddonRules says what the add-on manager must be allowed to do for a folder.
	AddonRules func(ctx context.Context, folder string) ([]plan.Rule, error)
	// AtStep is etcdmember.Config.AtStep, and called at StepBundle as well: nil in production.
	AtStep func(s acts.Step, m acts.Moment)
}

// Agent is one running replica: what its first phases find out, and the parts that run side by side. Each part has a
// state and a lock of its own.
type Agent struct {
	cfg        Config
	supervisor *supervisor.Supervisor
	// accounts are whom processes run as, by their names.
	accounts *accounts.Accounts

	tracker  *waits.Tracker
	waits    *waits.Phased
	progress *progress
	pacer    *pacer

	document     *document
	host         *host
	disk         *datadisk.Disk
	backend      *endpoint.Backend
	certificates *certificates.Certificates
	programs     *programs
	encryption   *encryption
	leaders      *leaders.Leaders
	candidate    *leaders.Candidate
	addons       *addonManager
	snapshots    *snapshots
	archives     *archives
	kubelet      *kubelet.Keeper
	reporter     *telling.Reporter
	nodeEvents   *telling.NodeEvents
	// fitWanted asks for a comparison of what runs with what has to run.
	fitWanted   nudge
	leaving     *leaving
	startAnyway *startAnyway

	found
}

func newAgent(cfg Config, children *supervisor.Supervisor) *Agent {
	tracker := waits.New(cfg.Log, filepath.Join(cfg.RunDir, "waits.json"))
	own := &waits.Phased{Source: tracker.Source("agent", "phase", 0)}
	a := &Agent{cfg: cfg, supervisor: children, tracker: tracker, waits: own,
		accounts:   accounts.Find(cfg.Log, cfg.Account),
		backend:    endpoint.NewBackend(cfg.Log, own),
		disk:       datadisk.New(cfg.Log, own, cfg.ImageDisk),
		programs:   &programs{},
		encryption: &encryption{log: cfg.Log},
		leaders:    leaders.New(cfg.Log, own, children),
		candidate:  leaders.NewCandidate(cfg.Log, children),
		addons:     &addonManager{log: cfg.Log, waits: own, rules: cfg.AddonRules},
		archives:   &archives{log: cfg.Log},
		nodeEvents: telling.NewNodeEvents(),
		fitWanted:  newNudge(),
	}
	a.leaving = &leaving{log: cfg.Log, supervisor: children, leaders: a.leaders, found: &a.found}
	a.startAnyway = &startAnyway{cfg.Log, filepath.Join(cfg.RunDir, "start-anyway"), &a.found}
	a.progress = newProgress(cfg.Log, own, cfg.Notify)
	a.pacer = newPacer(cfg.Log, a.progress, cfg.RunDir)
	a.document = newDocument(cfg, own)
	a.host = &host{log: cfg.Log, waits: own, metadata: cfg.Metadata, handOver: a.leaving.handOver}
	a.certificates = certificates.New(certificates.Config{Log: cfg.Log, Waits: own, Clock: cfg.Metadata,
		Owners: a.accounts.Owners, Renewed: a.fitWanted.give, AtStep: cfg.AtStep})
	a.snapshots = &snapshots{waits: own, interval: a.document.snapshotInterval, save: cfg.SaveSnapshot}
	a.kubelet = a.newKubeletKeeper()
	a.reporter = telling.NewReporter(cfg.Log, cfg.Version, a.report, a.nodeEvents.TellReported)
	return a
}

// Run boots the replica and keeps it running until ctx is done. The caller makes sure that no other agent runs on this
// machine. At the end it stops, in this order: what the agent does itself (within stopPatience), the children, the
// last report, metrics, status. An error of the boot is a PhaseError; systemd starts the program again. A stop that was
// asked for is no error, whatever the phase.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := os.MkdirAll(cfg.RunDir, 0o700); err != nil {
		return fmt.Errorf("make the agent's folder: %w", err)
	}
	a := newAgent(cfg, supervisor.New(supervisor.Config{Log: cfg.Log, LogDir: cfg.LogDir, Cgroup: cfg.Cgroup,
		Env: cfg.Env, Words: cfg.LastWords.Add}))
	if err := a.accounts.OpenFolders(cfg.RunDir); err != nil {
		return err
	}
	// Status and watchdog answer until the very end, because a stop takes longer than the watchdog waits.
	stopServing, err := a.serve(SocketPath(cfg.RunDir))
	if err != nil {
		return err
	}
	defer stopServing()
	defer status.ServeMetrics(cfg.Log, cfg.MetricsAddress, status.Metrics(a.report))()
	defer a.reporter.Keep()()
	stopChildren := a.superviseChildren(ctx)
	defer func() {
		unstopped := stopChildren(err)
		a.reporter.NoteStopped(unstopped)
		err = errors.Join(err, unstopped)
	}()
	err = a.liveUntilEnded(ctx)
	if ctx.Err() != nil && !errors.Is(err, ErrStartAgain) {
		a.pacer.forget() // an orderly end is not counted as a crash
		cfg.Log.Info("asked to stop", "phase", string(a.progress.now()))
		return nil
	}
	return err
}

// liveUntilEnded runs live. At the end it does not wait for a goroutine that hangs, for example on a frozen disk:
// kube-apiserver and etcd have to be stopped in time.
func (a *Agent) liveUntilEnded(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	lived := make(chan error, 1)
	go func() { lived <- a.live(ctx, end) }()
	select {
	case err := <-lived:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-lived:
		return err
	case <-time.After(stopPatience):
		a.cfg.Log.Warn("the end does not wait for what hangs", "after", stopPatience.String())
		return context.Cause(ctx)
	}
}

// live is the boot, phase after phase, and what follows it. What goes on side by side with the rest begins where a line
// defers its end, and ends with live, the last one first. end ends ctx where the replica has to be started again.
func (a *Agent) live(ctx context.Context, end context.CancelCauseFunc) error {
	routes := endpoint.NewRoutes(a.cfg.Log, a.waits, a.cfg.LocalRoutes)
	defer background(ctx, func(ctx context.Context) { routes.Run(ctx, a.cfg.Metadata) })()
	defer a.host.keep(ctx)()
	a.pacer.pace(ctx)
	self, err := enter(ctx, a.progress, PhaseIdentity, nothing{}, a.identify)
	if err != nil {
		return err
	}
	defer background(ctx, func(ctx context.Context) { a.document.keep(ctx, a.cfg.Metadata) })()
	defer background(ctx, a.nodeEvents.Run)()
	defer a.kubelet.Keep(ctx, a.document.kubelet, a.document.changed)()
	if self, err = enter(ctx, a.progress, PhaseDataDisk, self, a.awaitDisk); err != nil {
		return err
	}
	defer a.learnDisk(ctx, self)() // not before: a disk that is attached late has no id yet
	a.keepLastWords(self)
	defer background(ctx, func(ctx context.Context) { a.disk.WatchRoom(ctx, self.cluster.Etcd.DataDir) })()
	a.readPrograms(self)
	recorded, err := enter(ctx, a.progress, PhaseRecord, self, a.readRecord)
	if err != nil {
		return err
	}
	certified, err := enter(ctx, a.progress, PhaseCertificates, recorded, a.certify)
	if err != nil {
		return err
	}
	defer background(ctx, func(ctx context.Context) { a.certificates.Renew(ctx, certified.issued) })()
	joined, err := enter(ctx, a.progress, PhaseEtcd, certified, a.settle)
	if err != nil {
		return err
	}
	// From here on only the member's own state, or an order, ends the agent.
	defer a.keepMember(ctx, joined, end)()
	defer a.keepControlPlane(ctx, joined, end)()
	if _, err = enter(ctx, a.progress, PhaseControlPlane, joined, a.awaitAPIServer); err != nil {
		return err
	}
	return a.keep(ctx, joined)
}

// nothing is what the first phase needs.
type nothing struct{}

// superviseChildren runs the supervisor until the returned function stops it, for a reason: leadership is handed over
// first, then everything stops in reverse order.
func (a *Agent) superviseChildren(ctx context.Context) (stop func(why error) error) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.supervisor.Run(run) }()
	return func(why error) error {
		a.cfg.Notify.Stopping()
		a.progress.end(why)
		gone, settle := a.backend.Leave(run, a.document.group(), detachTimeout), time.Duration(0)
		switch {
		case errors.Is(why, member.ErrRemoved), a.leaving.unable(run):
			a.leaving.giveUp(run)
		case a.host.isSpot():
			a.leaving.handOver(run)
			a.leaving.giveUp(run)
		default:
			a.leaving.leave(run)
			settle = detachSettles
		}
		gone(settle) // before the apiserver stops, unless that could not wait
		cancel()
		return <-done
	}
}
