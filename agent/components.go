package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/supervisor"
)

// The waits of the control plane. None of them ends the agent, and the member votes on.
const (
	programUnusable   = "program-unusable"
	componentNotReady = "component-not-ready"
	notFitted         = "control-plane-not-fitted"
)

// components brings the processes of the control plane in line with what they have to be, again and again: at the
// start, when the own member is a voter, when the authority's key is there, when a program is put right. It compares
// what runs with what has to run and remembers nothing else, so a fit that failed is simply tried again. Its one
// goroutine has it to itself.
type components struct {
	log        *slog.Logger
	logDir     string
	supervisor *supervisor.Supervisor
	programs   *programs
	waits      *waits.Phased
	// input says what they have to be, but for encryption and the other members that the apiserver uses.
	input  func() controlplane.Input
	others []string
	// encryption is the apiserver's EncryptionConfiguration, which holds keys; nil until it is decided.
	encryption       []byte
	decideEncryption func() ([]byte, error)
	// giveDirs makes the folders in which components write. reader is whose the files are that the apiserver reads;
	// nil: the agent's.
	giveDirs func() error
	reader   *durable.Owner
	// elected allows those to run that elect: agent is said of; nil: they never run. clash says why a component may not
	// run next to the other replicas'; nil: all may.
	elected elected
	clash   func(ctx context.Context, component string) error
	// aside takes this VM out of the load balancer until back is called; nil: there is none. Clients that are connected
	// may stay so; no new one comes once it returns.
	aside func(ctx context.Context) (back func())
	// wanted asks for a fit now. home is closed once the apiserver needs no other member any more.
	wanted, home <-chan struct{}
	// retires is closed once nothing may be started any more; nil: never.
	retires <-chan struct{}

	started map[string]started
	down    map[string]down
	retry   backoff.Backoff
	pause   time.Duration // after the last fit; 0: that went well
	fitted  time.Time
}

// elected is the agent's election, for those that run on one replica at a time. Begin calls start only while this is
// the one, and election.ErrNotHeld says that it is not. Held says whether Begin would call it now.
type elected interface {
	Begin(start func() error) error
	Held() bool
}

// started is what a component was started with.
type started struct {
	spec supervisor.Spec
	file fileID
}

// down is a component that is not ready.
type down struct {
	since time.Time
	why   string
	ended bool // why is the reason for which it ended last
}

// keep fits the components until ctx is done.
func (c *components) keep(ctx context.Context) {
	for {
		changed := c.supervisor.Changed()
		if !time.Now().Before(c.next()) {
			c.fit(ctx)
		}
		c.observe(time.Now())
		wake := time.NewTimer(c.rest(time.Now()))
		select {
		case <-ctx.Done():
			wake.Stop()
			return
		case <-c.retires:
			wake.Stop()
			return
		case <-changed:
		case <-c.wanted:
			c.fitted = time.Time{}
		case <-c.home:
			c.log.Info("the own member is a voter: the apiserver uses it alone from now on")
			c.home, c.others, c.fitted = nil, nil, time.Time{}
		case <-wake.C:
		}
		wake.Stop()
	}
}

// next is when the next fit is due.
func (c *components) next() time.Time {
	switch {
	case c.pause > 0:
		return c.fitted.Add(c.pause)
	case len(c.down) > 0:
		return c.fitted.Add(fitHurry)
	}
	return c.fitted.Add(fitPeriod)
}

// rest is how long nothing has to be done unless something changes.
func (c *components) rest(now time.Time) time.Duration {
	rest := c.next().Sub(now)
	if len(c.down) > 0 {
		rest = min(rest, fitHurry) // the patience with one of them ends
	}
	return max(rest, 0)
}

// fit starts what does not run, and starts anew what runs otherwise than it should. What cannot be done is a wait, and
// is tried again; what runs meanwhile goes on.
func (c *components) fit(ctx context.Context) {
	unusable, failed := c.fitOnce(ctx)
	if ctx.Err() != nil {
		return
	}
	c.waits.HoldWhile(programUnusable, unusable, "It is checked again within ten seconds, and started. "+
		"One that only did not answer in time is on a busy machine; otherwise put a program of the right version there.")
	c.waits.HoldWhile(notFitted, failed, "It is tried again within ten seconds; what runs goes on as it is.")
	c.fitted, c.pause = time.Now(), 0
	if unusable == nil && failed == nil {
		c.retry.Reset()
		return
	}
	c.pause = c.retry.Next()
}

func (c *components) fitOnce(ctx context.Context) (unusable, failed error) {
	specs, err := c.specs()
	if err != nil {
		return nil, err
	}
	specs = slices.DeleteFunc(specs, c.runs)
	specs = slices.DeleteFunc(specs, c.isSpare)
	var errs []error
	specs = slices.DeleteFunc(specs, func(spec supervisor.Spec) bool {
		err := c.clashes(ctx, spec)
		errs = append(errs, err)
		return err != nil
	})
	faults := c.programs.check(ctx, specs)
	for i, spec := range specs {
		if faults[i] != nil {
			errs = append(errs, c.withdraw(ctx, spec, faults[i]))
		} else if c.hasBegun(spec.After) {
			errs = append(errs, c.start(ctx, spec))
		}
	}
	return waits.OneLine(faults), waits.OneLine(errs)
}

// specs are the components as they have to run, in the order of their start. The files that they read are written.
func (c *components) specs() ([]supervisor.Spec, error) {
	if c.encryption == nil {
		config, err := c.decideEncryption()
		if err != nil {
			return nil, err
		}
		c.encryption = config
	}
	in := c.input()
	in.OtherEtcd, in.Encryption = c.others, c.encryption
	specs, files, err := controlplane.Components(in)
	if err != nil {
		return nil, err
	}
	if err := c.giveDirs(); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := writeChanged(f, c.reader); err != nil {
			return nil, err
		}
	}
	specs[0].After = append(slices.Clone(specs[0].After), etcdName)
	return specs, nil
}

// writeChanged leaves a file alone that is as it has to be: a folder without room is no reason to wait then.
func writeChanged(f controlplane.File, owner *durable.Owner) error {
	there, err := os.ReadFile(f.Path)
	same := err == nil && bytes.Equal(there, f.Data)
	switch {
	case f.Public && same, same && owner == nil:
		return nil
	case f.Public:
		return writePublic(f)
	case same: // an agent before this one may have left it to root
		return os.Lchown(f.Path, owner.UID, owner.GID)
	case owner == nil:
		return durable.WriteFile(f.Path, f.Data, 0o600)
	}
	return durable.WriteFileFor(*owner, f.Path, f.Data, 0o600)
}

// writePublic writes a file that everybody may read, in a folder of its own, and that stays the agent's.
func writePublic(f controlplane.File) error {
	dir := filepath.Dir(f.Path)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { // whatever the umask
		return err
	}
	return durable.WriteFile(f.Path, f.Data, 0o644)
}

// runs says that a component was started as it has to be, and that its program is still the one that was found usable,
// or does not matter: a process that is up has its program in memory, however its file changes.
func (c *components) runs(spec supervisor.Spec) bool {
	before, ok := c.started[spec.Name]
	if s, _ := c.supervisor.StatusOf(spec.Name); ok && s.State == supervisor.Stopped {
		delete(c.started, spec.Name) // the end of a term has stopped it
		return false
	}
	return ok && sameProcess(before.spec, spec) && (c.isUp(spec.Name) || before.file == identifyFile(spec.Path))
}

// isSpare says that a component runs on one replica at a time, and not on this one. What ran here has been stopped at
// the end of the term.
func (c *components) isSpare(spec supervisor.Spec) bool {
	if !c.underLease(spec.Name) || c.elected != nil && c.elected.Held() {
		return false
	}
	delete(c.started, spec.Name)
	return true
}

func (c *components) underLease(name string) bool {
	return slices.Contains(controlplane.Elected(c.input().Cluster), name)
}

func (c *components) clashes(ctx context.Context, spec supervisor.Spec) error {
	if c.clash == nil {
		return nil
	}
	return c.clash(ctx, spec.Name)
}

// isUp says that a component's process has come up and not ended since.
func (c *components) isUp(name string) bool {
	s, _ := c.supervisor.StatusOf(name)
	return s.State == supervisor.Ready || s.State == supervisor.Degraded
}

// hasBegun says that the processes of those names were started, so that others may be started after them.
func (c *components) hasBegun(names []string) bool {
	for _, name := range names {
		if _, ok := c.supervisor.StatusOf(name); !ok {
			return false
		}
	}
	return true
}

// withdraw stops a component that is not up and whose program has become one that cannot be used: it would be launched.
func (c *components) withdraw(ctx context.Context, spec supervisor.Spec, fault error) error {
	if _, ok := c.started[spec.Name]; !ok || c.isUp(spec.Name) || !errors.Is(fault, controlplane.ErrBinary) {
		return nil
	}
	return c.stop(ctx, spec.Name)
}

// start starts a component, in place of the one that runs otherwise than it should.
func (c *components) start(ctx context.Context, spec supervisor.Spec) error {
	if _, ok := c.started[spec.Name]; ok {
		defer c.standAside(ctx, spec.Name)()
		if err := c.stop(ctx, spec.Name); err != nil {
			return err
		}
	}
	begin := func() error { return c.supervisor.Start(spec) }
	if c.underLease(spec.Name) {
		if err := c.elected.Begin(begin); err != nil {
			return ignoreNotHeld(err)
		}
	} else if err := begin(); err != nil {
		return err
	}
	c.started[spec.Name] = started{spec, c.programs.file(spec.Path)}
	return nil
}

// standAside is the rule of each planned stop: the VM leaves the load balancer before its apiserver stops. Where that
// is started anew, the VM is attached again once it is ready.
func (c *components) standAside(ctx context.Context, name string) (back func()) {
	if c.aside == nil || name != replica.APIServer {
		return func() {}
	}
	return c.aside(ctx)
}

// ignoreNotHeld: that the term has just ended is no fault.
func ignoreNotHeld(err error) error {
	if errors.Is(err, election.ErrNotHeld) {
		return nil
	}
	return err
}

// stop stops a component that was started here. One that does not end even when it is killed is waited for the next
// time.
func (c *components) stop(ctx context.Context, name string) error {
	limit := c.started[name].spec.StopTimeout
	if limit == 0 {
		limit = supervisor.DefaultStopTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit+supervisor.StopMargin, errors.New("it does not end"))
	defer cancel()
	if err := c.supervisor.Stop(ctx, name); err != nil {
		return err
	}
	delete(c.started, name)
	return nil
}

// sameProcess: the same program is run in the same way. Probes follow from the rest.
func sameProcess(a, b supervisor.Spec) bool {
	return a.Path == b.Path && sameAccount(a.RunAs, b.RunAs) && slices.Equal(a.Args, b.Args) &&
		slices.Equal(a.Env, b.Env) && slices.Equal(a.After, b.After) && a.Limits == b.Limits
}

func sameAccount(a, b *supervisor.Account) bool {
	return a == nil && b == nil || a != nil && b != nil && a.UID == b.UID && a.GID == b.GID
}

// observe notes which components are not ready, and says so of those that have not been for a while. What waits for
// another component is not named: that one is.
func (c *components) observe(now time.Time) {
	var late []error
	for _, s := range c.supervisor.Status() {
		if s.Name == etcdName || s.State == supervisor.Waiting {
			continue
		}
		if s.State == supervisor.Ready || s.State == supervisor.Stopped {
			delete(c.down, s.Name)
			continue
		}
		d := c.down[s.Name].with(s, now)
		c.down[s.Name] = d
		if now.Sub(d.since) >= componentPatience {
			late = append(late, fmt.Errorf("%s (%s): %s", s.Name, c.started[s.Name].spec.Path, d.why))
		}
	}
	logs := c.logDir
	if logs == "" {
		logs = "the journal"
	}
	c.waits.HoldWhile(componentNotReady, waits.OneLine(late),
		"It is started again by itself. What it says is in "+logs+", in the log of its name.")
}

// with adds what a component is now. Why it ended stays the reason while it is started again: that it does not answer
// yet says less.
func (d down) with(s supervisor.Status, now time.Time) down {
	if d.since.IsZero() {
		d.since = now
	}
	ended, _, pausing := strings.Cut(s.Reason, "; next start in ")
	switch {
	case pausing:
		d.why, d.ended = ended, true
	case !d.ended || s.State != supervisor.Starting:
		d.why = string(s.State) + ": " + s.Reason
	}
	return d
}
