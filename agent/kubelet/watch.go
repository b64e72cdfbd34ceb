package kubelet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// Watch is the watch of one master. Run has its units to itself; Status may be called at any time.
type Watch struct {
	cfg              Config
	cri, port        *prober
	runtime, kubelet *watched

	mu      sync.Mutex
	network string // why the runtime has none for pods, as it said last
	records []Record
	status  Status
}

// watched is one of the two units.
type watched struct {
	name    string
	memory  kubeletwatch.Memory
	counts  Counts
	verdict kubeletwatch.Verdict
	since   time.Time
	unit    kubeletwatch.Unit
	err     string
	open    *open
}

// open is a record whose outcome is not known yet. was is the process that it is about.
type open struct {
	Record
	began time.Duration
	was   process
}

// New makes a watch that goes on from what an earlier agent of this boot has left.
func New(cfg Config) (*Watch, error) {
	s, err := load(cfg.StatePath)
	if err != nil {
		return nil, err
	}
	w := &Watch{cfg: cfg, records: s.Records,
		runtime: &watched{name: cfg.RuntimeUnit, memory: s.Runtime.Memory, counts: s.Runtime.Counts},
		kubelet: &watched{name: cfg.KubeletUnit, memory: s.Kubelet.Memory, counts: s.Kubelet.Counts}}
	w.cri = newProber(cfg.Limits.AnswerWithin, period, cfg.Clock, func(ctx context.Context) (bool, error) {
		network, connected, err := cfg.Runtime.Ask(ctx)
		w.mu.Lock()
		w.network = network
		w.mu.Unlock()
		return connected, err
	})
	w.port = newProber(cfg.Limits.AnswerWithin, 2*period, cfg.Clock, cfg.Port.Ask)
	return w, nil
}

// Run watches until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	var asking sync.WaitGroup
	asking.Go(func() { w.cri.run(ctx) })
	asking.Go(func() { w.port.run(ctx) })
	defer asking.Wait()
	for {
		w.step(ctx)
		timer := time.NewTimer(w.rest())
		select {
		case <-w.cfg.Units.Changed():
		case <-w.cri.news:
		case <-w.port.news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (w *Watch) rest() time.Duration {
	if w.runtime.open != nil || w.kubelet.open != nil {
		return hurry
	}
	return period
}

// Status is as the last observation found it.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// step observes, decides and acts once.
func (w *Watch) step(ctx context.Context) {
	f := w.observe(ctx)
	if ctx.Err() != nil {
		return // what was not read says nothing
	}
	for _, u := range []*watched{w.runtime, w.kubelet} {
		w.note(u, f.Now)
	}
	d := kubeletwatch.Decide(w.cfg.Limits, f, w.runtime.memory, w.kubelet.memory)
	w.judge(w.runtime, d.Runtime, f.Now)
	w.judge(w.kubelet, d.Kubelet, f.Now)
	w.hold()
	w.publish()
	for _, u := range []*watched{w.runtime, w.kubelet} {
		if u.verdict.Act != kubeletwatch.Nothing {
			w.act(ctx, u)
			w.hold()
			w.publish()
		}
	}
}

// observe reads what there is to know. It only reads.
func (w *Watch) observe(ctx context.Context) kubeletwatch.Facts {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for _, u := range []*watched{w.runtime, w.kubelet} {
		unit, err := w.cfg.Units.Unit(ctx, u.name)
		u.unit, u.err = unit, ""
		if err != nil {
			u.err = err.Error()
		}
	}
	f := kubeletwatch.Facts{Runtime: w.runtime.unit, Kubelet: w.kubelet.unit, RuntimeErr: w.runtime.err,
		KubeletErr: w.kubelet.err, APIServer: w.cfg.APIServer()}
	if f.RuntimeErr == "" {
		f.CRI = w.cri.answersOf(f.Runtime)
	}
	if f.KubeletErr == "" {
		f.Port = w.port.answersOf(f.Kubelet)
		f.Listening = f.Kubelet.PID != 0 && (f.Port.Connected() || w.cfg.Port.Listening())
	}
	w.mu.Lock()
	f.Network = w.network
	w.mu.Unlock()
	f.Now = w.cfg.Clock()
	return f
}

// note keeps a unit's memory, and records that its process has ended without the watch.
func (w *Watch) note(u *watched, now time.Duration) {
	if u.err != "" {
		return
	}
	before := u.memory
	var ended bool
	u.memory, ended = before.Note(u.unit, now)
	if ended && u.open == nil {
		w.ended(u, process{before.PID, before.Started}, now)
	}
	if ended || len(u.memory.Exits) != len(before.Exits) {
		w.save()
	}
}

// ended records the end of a process. A crash loop has one record: that it is one.
func (w *Watch) ended(u *watched, was process, now time.Duration) {
	if u.verdict.State == kubeletwatch.CrashLoop {
		u.counts.count(Ended)
		return
	}
	reason := u.unit.Exit
	if reason == "" {
		reason = "how it ended was not seen"
	}
	w.begin(u, Record{What: Ended, Cause: kubeletwatch.Exited, Reason: reason}, was, now)
	w.logBegun(u.open.Record)
}

// judge takes a verdict, and closes a record whose outcome it shows.
func (w *Watch) judge(u *watched, v kubeletwatch.Verdict, now time.Duration) {
	if v.State != u.verdict.State {
		u.since = time.Now()
		if u.verdict.State != "" {
			w.cfg.Log.Info("watched unit", "unit", u.name, "state", string(v.State), "was", string(u.verdict.State),
				"reason", v.Reason)
		}
	}
	u.verdict = v
	acts := len(u.memory.Acts)
	u.memory = u.memory.Settle(v, now)
	if acts != len(u.memory.Acts) {
		w.save()
	}
	if u.open == nil {
		return
	}
	lasted := now - u.open.began
	switch {
	case v.State.Well() && u.open.was != process{u.unit.PID, u.unit.Started}:
		w.end(u, "well again after "+lasted.Round(10*time.Millisecond).String())
	case left(v.State):
		w.end(u, "it is "+string(v.State)+" now")
	case lasted > w.cfg.Limits.StartWithin+outcomeMargin:
		w.end(u, "not well after "+lasted.Round(time.Second).String())
	}
}

// left says that nobody wants the unit to run, or nobody can make it.
func left(s kubeletwatch.State) bool {
	switch s {
	case kubeletwatch.Masked, kubeletwatch.Absent, kubeletwatch.Stopped, kubeletwatch.Unkillable,
		kubeletwatch.CrashLoop:
		return true
	}
	return false
}

// begin opens a record. The one before it is closed.
func (w *Watch) begin(u *watched, r Record, was process, now time.Duration) {
	r.At, r.Unit = time.Now().UTC(), u.name
	u.counts.count(r.What)
	u.open = &open{Record: r, began: now, was: was}
}

func (w *Watch) logBegun(r Record) {
	w.cfg.Log.Warn("watched unit", "unit", r.Unit, "what", r.What, "cause", string(r.Cause), "reason", r.Reason)
}

// end closes the open record with its outcome.
func (w *Watch) end(u *watched, outcome string) {
	r := u.open.Record
	u.open = nil
	r.Outcome = outcome
	w.records = append(slices.Clone(w.records), r)
	w.records = w.records[max(0, len(w.records)-recordsKept):]
	w.cfg.Log.Info("watched unit", "unit", u.name, "what", r.What, "stacks", r.Stacks, "outcome", outcome)
	w.save()
	w.cfg.Tell(r)
}

// act carries out a unit's act. That it will is written down before: an agent that dies in between has used its budget.
func (w *Watch) act(ctx context.Context, u *watched) {
	if u.open != nil {
		w.end(u, "it did not help")
	}
	v, now, before := u.verdict, w.cfg.Clock(), *u
	u.memory = u.memory.Did(v.Act, u.unit, now)
	w.begin(u, Record{What: string(v.Act), Cause: v.State, Reason: v.Reason}, process{u.unit.PID, u.unit.Started}, now)
	if err := w.trySave(); err != nil {
		*u = before
		u.verdict.Held = err.Error()
		return
	}
	w.logBegun(u.open.Record)
	if v.Act == kubeletwatch.Restart {
		u.open.Stacks = w.writeStacks(ctx, u)
	}
	bounded, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	switch err := w.cfg.Units.Do(bounded, v.Act, u.name); {
	case err != nil:
		w.end(u, "it failed: "+err.Error())
	case v.Act == kubeletwatch.Park:
		w.end(u, "systemd starts it no more until the process has gone")
	}
}

// writeStacks has the process write its stacks, and says where they are.
func (w *Watch) writeStacks(ctx context.Context, u *watched) string {
	ctx, cancel := context.WithTimeout(ctx, stacksLimit)
	defer cancel()
	if err := w.cfg.Units.WriteStacks(ctx, u.name); err != nil {
		return "no stacks: " + err.Error()
	}
	gone := await(ctx, stacksLimit, func() bool {
		now, err := w.cfg.Units.Unit(ctx, u.name)
		return err == nil && (now.PID != u.unit.PID || now.Started != u.unit.Started)
	})
	if !gone {
		return fmt.Sprintf("process %d wrote no stacks within %s", u.unit.PID, stacksLimit)
	}
	return fmt.Sprintf("the stacks of process %d are in its journal: journalctl -u %s", u.unit.PID, u.name)
}

// await waits until ok, or until limit has passed.
func await(ctx context.Context, limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ok() {
		if backoff.Sleep(ctx, 50*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

func (w *Watch) trySave() error {
	s := saved{Runtime: savedUnit{w.runtime.memory, w.runtime.counts},
		Kubelet: savedUnit{w.kubelet.memory, w.kubelet.counts}, Records: w.allRecords()}
	return s.write(w.cfg.StatePath)
}

// save writes down what counts for the next agent. Where it cannot be written, nothing is done to a unit either (act).
func (w *Watch) save() {
	if err := w.trySave(); err != nil {
		w.cfg.Log.Warn("the next agent will not know", "err", err.Error())
	}
}

// allRecords are the records, those that are open last.
func (w *Watch) allRecords() []Record {
	all := slices.Clone(w.records)
	for _, u := range []*watched{w.runtime, w.kubelet} {
		if u.open != nil {
			all = append(all, u.open.Record)
		}
	}
	return all
}

func (w *Watch) publish() {
	s := Status{Records: w.allRecords()}
	for _, u := range []*watched{w.runtime, w.kubelet} {
		s.Units = append(s.Units, UnitStatus{Unit: u.name, State: u.verdict.State, Reason: u.verdict.Reason,
			Held: u.verdict.Held, Since: u.since, Counts: u.counts})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = s
}
