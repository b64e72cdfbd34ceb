// Package gathering finds out what goes into a report of "quorate support": from the bucket and, on a master, from the
// machine. What of it is left out, so that no secret is in the file, is package support's.
package gathering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/observer"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/version"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/support"
	"github.com/quorate/quorate/supervisor"
)

// Options are what a person says of what is gathered.
type Options struct {
	*cluster.Flags
	// RunDir is the agent's folder. LogDir has the logs, where they are not in the journal; empty: the usual one.
	RunDir, LogDir string
	// Since is from when on the events go in.
	Since time.Time
}

// Gathering is what support finds out. What one source does not give is said in the file, and holds up no other.
type Gathering struct {
	Options
	now     time.Time
	cluster *replica.Cluster // nil: a master whose document cannot be read
	fault   error            // why
	// self is who this master is; nil: this is no master, or its agent has not come so far.
	self   *replica.Identity
	status *status.Status // nil: no agent answers, and silence says why
	silent error
	file   *support.File
}

// New asks nobody yet.
func New(o Options, now time.Time) *Gathering { return &Gathering{Options: o, now: now} }

// Know finds out which cluster it is about. A master gives what it has also without a document, unless one was named.
func (g *Gathering) Know() error {
	if self, _, _, known, _ := agent.Remembered(g.RunDir, master.BakedFile); known {
		g.self = &self
	}
	g.cluster, g.fault = g.Load()
	if g.fault != nil && (g.IsNamed() || !g.onMaster()) {
		return g.fault
	}
	return nil
}

// onMaster reports whether an agent runs here, or has.
func (g *Gathering) onMaster() bool {
	_, err := os.Stat(g.RunDir)
	return err == nil
}

// ClusterName is in the name of the file.
func (g *Gathering) ClusterName() string {
	if g.cluster == nil {
		return "unknown"
	}
	return g.cluster.Name
}

// askTimeout bounds each source but the bucket, which has its own limit.
const askTimeout = 5 * time.Second

// Gather asks the bucket, and on a master the machine.
func (g *Gathering) Gather(ctx context.Context) (*support.File, error) {
	if g.onMaster() {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		s, err := agent.ReadStatus(asking, agent.SocketPath(g.RunDir))
		cancel()
		if g.silent = err; err == nil {
			g.status = &s
		}
	}
	asking, cancel := context.WithTimeout(ctx, observer.ReadTimeout)
	defer cancel()
	var facts *bucketReading
	if g.cluster != nil {
		facts = g.readBucket(asking)
	}
	filter := support.NewFilter(g.names(facts), support.Configured(g.cluster))
	g.file = support.NewFile(filter, g.on(), version.Text(), g.now)
	g.file.Document("versions.json", g.versions())
	if g.cluster != nil {
		g.file.Document("document.json", g.cluster)
		g.addBucket(facts)
	} else {
		g.file.Lacks("document.json", g.fault)
	}
	if g.onMaster() {
		g.addMaster(ctx)
	} else {
		g.file.Lacks("status, metrics and logs", errElsewhere)
	}
	return g.file, ctx.Err()
}

// errElsewhere is why only a master's file has what is the master's own.
var errElsewhere = errors.New(`each master has its own: run "quorate support" there, too, as root`)

// on says where the file was made.
func (g *Gathering) on() string {
	switch {
	case g.self != nil:
		return g.self.Place.String()
	case g.onMaster():
		return "a master"
	}
	return "elsewhere"
}

func (g *Gathering) versions() version.Versions {
	v := version.Current()
	if i, err := version.ReadImage(version.ImageFile); err == nil {
		v.Image = &i
	}
	return v
}

// bucketReading is what the bucket gives.
type bucketReading struct {
	observer.Reading
	batches    []report.Batch
	lines      []report.Line
	linesErr   error
	record     record.View
	recordErr  error
	snapshots  []record.Snapshot
	snapsErr   error
	observeErr error
}

func (g *Gathering) readBucket(ctx context.Context) *bucketReading {
	out := &bucketReading{}
	o, err := observer.New(g.cluster, g.Flags)
	if err != nil {
		out.observeErr = err
		return out
	}
	out.Reading = o.Read(ctx)
	if !g.onMaster() {
		out.Endpoint = o.Endpoint.Ask(ctx)
	}
	batches, err := o.Reports.Events(ctx, g.Since.Add(-observer.LongestBatch))
	out.batches, out.lines, out.linesErr = batches, report.Lines(batches, g.Since), err
	out.record, out.recordErr = o.Record.View(ctx)
	out.snapshots, out.snapsErr = o.Record.Snapshots(ctx)
	return out
}

func (g *Gathering) addBucket(r *bucketReading) {
	if r.observeErr != nil {
		g.file.Lacks("record.json", r.observeErr)
		return
	}
	g.file.Document("health.json", r.Judge())
	g.orLacks("reports.json", errorOf(r.Unread), map[string]any{"replicas": r.Reports})
	g.orLacks("events.json", r.linesErr, map[string]any{"events": r.lines})
	g.orLacks("record.json", r.recordErr, recordtext.Of(r.record))
	g.orLacks("snapshots.json", r.snapsErr, map[string]any{"records": r.snapshots})
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (g *Gathering) orLacks(part string, err error, v any) {
	if err != nil {
		g.file.Lacks(part, err)
		return
	}
	g.file.Document(part, v)
}

// names are those of the cluster: texts keep them as they are.
func (g *Gathering) names(r *bucketReading) (out []string) {
	add := func(p replica.Place) { out = append(out, p.String(), p.Name, p.Zone) }
	if g.cluster != nil {
		out = append(out, g.cluster.Name)
		for name := range g.cluster.Components {
			out = append(out, name)
		}
	}
	if g.self != nil {
		add(g.self.Place)
		out = append(out, g.self.Project)
	}
	if g.status != nil {
		out = append(out, g.status.Cluster.ID, g.status.Etcd.Member)
		for _, m := range g.status.Etcd.Members {
			out = append(out, m.Name, m.ID)
		}
		for _, c := range g.status.Components {
			out = append(out, c.Name)
		}
	}
	if r == nil {
		return out
	}
	for _, p := range r.record.Places() {
		add(p)
		for _, i := range r.record.Replicas[p] {
			out = append(out, i.MemberID.String(), i.InstanceID, i.Disk(), i.BootID)
		}
	}
	for _, b := range r.batches { // their texts have the begin of a boot's id
		out = append(out, b.InstanceID, b.BootID, b.BootID[:min(len(b.BootID), 8)])
	}
	for _, s := range r.Reports {
		add(s.Place)
		out = append(out, s.ClusterID, s.InstanceID, s.DiskID)
		for _, m := range s.Members {
			out = append(out, m.Name, m.ID)
		}
	}
	return out
}

// addMaster adds what this machine has.
func (g *Gathering) addMaster(ctx context.Context) {
	if g.status != nil {
		g.file.Document("status.json", g.status)
	} else {
		g.file.Lacks("status.json", g.silent)
	}
	if end := master.ReadLastEnd(g.RunDir); end != nil {
		g.file.Document("last-end.json", end)
	}
	g.file.Document("machine.json", machineFacts())
	for part, address := range map[string]string{"metrics.txt": master.MetricsAddress,
		"etcd-metrics.txt": "127.0.0.1:2381"} {
		g.addMetrics(ctx, part, address)
	}
	g.addLastWords()
	if g.LogDir == "" && supervisor.HasJournal() {
		g.addJournal(ctx)
		return
	}
	g.addLogFiles()
	g.addAgentLog()
}

// addLogFiles adds the components' logs.
func (g *Gathering) addLogFiles() {
	dir := cmp.Or(g.LogDir, master.LogDir)
	files, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is right
	if len(files) == 0 {
		g.file.Lacks("logs", fmt.Errorf("no log is in %s", dir))
	}
	for _, path := range files {
		g.addLog(path)
	}
}

func (g *Gathering) addLog(path string) {
	part := "logs/" + filepath.Base(path)
	f, err := os.Open(path)
	if err != nil {
		g.file.Lacks(part, err)
		return
	}
	defer f.Close()
	g.file.Log(part, f)
}

// journalLines is how many lines of each program's journal are read at most.
const journalLines = "5000"

func (g *Gathering) addJournal(ctx context.Context) {
	sources := map[string][]string{"agent": {"-u", master.AgentUnit}, "kubelet": {"-u", "kubelet"},
		"containerd": {"-u", "containerd"}, "kernel": {"-k"}}
	if g.status != nil {
		for _, c := range g.status.Components {
			sources[c.Name] = []string{"-t", c.Name}
		}
	}
	for name, which := range sources {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		args := append([]string{"--no-pager", "-b", "-o", "short-iso-precise", "-n", journalLines}, which...)
		out, err := exec.CommandContext(asking, "journalctl", args...).Output()
		cancel()
		if err != nil {
			g.file.Lacks("logs/"+name+".log", fmt.Errorf("ask journalctl: %w", err))
			continue
		}
		g.file.Log("logs/"+name+".log", strings.NewReader(string(out)))
	}
}

// taken are the metrics' names that go in.
var taken = []string{"quorate_", "process_", "go_goroutines", "go_memstats_", "etcd_", "grpc_server_handled"}

func (g *Gathering) addMetrics(ctx context.Context, part, address string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		g.file.Lacks(part, err)
		return
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req) // and no proxy
	if err != nil {
		g.file.Lacks(part, err)
		return
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		g.file.Lacks(part, err)
		return
	}
	var kept strings.Builder
	for line := range strings.Lines(string(b)) {
		if slices.ContainsFunc(taken, func(name string) bool { return strings.HasPrefix(line, name) }) {
			kept.WriteString(line)
		}
	}
	g.file.Log(part, strings.NewReader(kept.String()))
}

// machine is what a master's machine has.
type machine struct {
	Kernel        string    `json:"kernel"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	Load          string    `json:"text"`
	Memory        memory    `json:"memory"`
	Disks         []mounted `json:"disks"`
}

type memory struct {
	TotalBytes     uint64 `json:"totalBytes"`
	AvailableBytes uint64 `json:"freeBytes"`
}

type mounted struct {
	Path       string `json:"path"`
	FreeBytes  int64  `json:"freeBytes"`
	TotalBytes int64  `json:"totalBytes"`
}

func machineFacts() (m machine) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		unit := uint64(info.Unit)
		m.UptimeSeconds, m.Memory = info.Uptime, memory{info.Totalram * unit, info.Freeram * unit}
		m.Load = fmt.Sprintf("load %.2f %.2f %.2f", float64(info.Loads[0])/65536, float64(info.Loads[1])/65536,
			float64(info.Loads[2])/65536)
	}
	for _, dir := range []string{"/", "/var/lib/quorate", "/var/log", "/run"} {
		if free, total, err := local.Room(dir); err == nil {
			m.Disks = append(m.Disks, mounted{dir, free, total})
		}
	}
	return m
}
