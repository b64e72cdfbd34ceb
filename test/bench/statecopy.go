package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/localgce"
)

const (
	// valueSize is what the database is filled with: large enough to be quick, below etcd's limit of a request.
	valueSize = 256 << 10
	// fillers write at the same time.
	fillers = 8
	// missedWrites are made while a member is away that comes back with its disk.
	missedWrites = 60000
)

// stateCopy is one copy of the state to a replica with an empty disk, and a plain copy of the same file beside it.
type stateCopy struct {
	// Bytes is the size of the leader's database file.
	Bytes int64 `json:"bytes"`
	// Voter is from the agent's start to the promotion; Plain is what the file alone takes.
	Voter seconds `json:"voter"`
	Plain seconds `json:"plain"`
	// LeaderCPU is the leader's etcd in percent of a core meanwhile, LeaderRSS what its memory grew by.
	LeaderCPU float64   `json:"leaderCPU"`
	LeaderRSS mebibytes `json:"leaderRSS"`
	// Before and During are the latencies of a writer's puts.
	Before latency `json:"before"`
	During latency `json:"during"`
}

// catchUp is the return of a member that has missed writes, with its disk.
type catchUp struct {
	Missed int     `json:"missed"`
	Took   seconds `json:"took"`
	// Snapshots is how many the leader sent for it: none.
	Snapshots int `json:"snapshots"`
}

// copies are the results of the part.
type copies struct {
	Copies []stateCopy `json:"copies"`
	Log    []catchUp   `json:"log"`
}

// copies fills a cluster to each size and replaces a follower with an empty disk, rounds times.
func (b *bench) copies(ctx context.Context) (*copies, error) {
	out := &copies{}
	for _, size := range b.sizes {
		if err := b.copySize(ctx, size, out); err != nil {
			return nil, fmt.Errorf("copy of %d MB: %w", size>>20, err)
		}
	}
	return out, nil
}

func (b *bench) copySize(ctx context.Context, size int64, out *copies) (err error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return err
	}
	w.diskSize = 4*size + 4<<30
	w.binds = append(w.binds, localgce.Bind{Host: filepath.Join(b.dir, "plaincopy"), Guest: plainCopy})
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := project.Close(context.WithoutCancel(ctx)); err == nil {
			err = closeErr
		}
		if !b.keep {
			os.RemoveAll(w.dir)
		}
	}()
	t := copyTrial{trial{project: project, hands: byItself{}}, b}
	if err := t.fill(ctx, size); err != nil {
		return err
	}
	if err := t.settle(ctx, repairSettle); err != nil {
		return err
	}
	for i := range b.rounds {
		c, err := t.copy(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w; the logs are in %s", i+1, err, w.dir)
		}
		out.Copies = append(out.Copies, c)
		b.say("copy of %.2f GB, round %d of %d: voter after %.1f s, a plain copy %.1f s; writes %s, before %s", float64(c.Bytes)/1e9, i+1, b.rounds, c.Voter, c.Plain, c.During, c.Before)
		if err := t.settle(ctx, repairSettle); err != nil {
			return err
		}
	}
	if size != b.sizes[0] {
		return nil
	}
	l, err := t.catchUp(ctx)
	out.Log = append(out.Log, l)
	return err
}

// copyTrial is a cluster with a large database.
type copyTrial struct {
	trial
	b *bench
}

// fill puts random values until there are so many bytes.
func (t copyTrial) fill(ctx context.Context, size int64) error {
	m, err := t.connect()
	if err != nil {
		return err
	}
	defer m.close()
	begin := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(fillers)
	for n := range size / valueSize {
		g.Go(func() error {
			value := make([]byte, valueSize)
			rand.Read(value) // never fails
			return putAnyway(gctx, m.clients[n%3], fmt.Sprintf("fill/%08d", n), string(value))
		})
	}
	err = g.Wait()
	t.b.say("filled %d MB in %s", size>>20, time.Since(begin).Round(time.Second))
	return err
}

// putAnyway tries a put again: a member under this load may be too slow once.
func putAnyway(ctx context.Context, c *clientv3.Client, key, value string) (err error) {
	for range 20 {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err = c.Put(call, key, value)
		cancel()
		if err == nil {
			return nil
		}
		if e := sleep(ctx, 100*time.Millisecond); e != nil {
			return e
		}
	}
	return err
}

// copy replaces a follower with an empty disk under a light load, and then copies the leader's file plainly.
func (t copyTrial) copy(ctx context.Context) (c stateCopy, err error) {
	m, err := t.connect()
	if err != nil {
		return c, err
	}
	defer m.close()
	leader, followers, err := t.roles(ctx, m)
	if err != nil {
		return c, err
	}
	etcd, err := descendant(m.vms[leader].InitPID, "quorate", "run-etcd")
	if err != nil {
		return c, err
	}
	file := fmt.Sprintf("/proc/%d/root%s", m.vms[leader].InitPID, database)
	info, err := os.Stat(file)
	if err != nil {
		return c, err
	}
	c.Bytes = info.Size()
	load := startWriter(ctx, m.clients[leader])
	defer load.end()
	if err := sleep(ctx, 5*time.Second); err != nil {
		return c, err
	}
	c.Before = load.cut()
	use, err := usageOf(etcd)
	if err != nil {
		return c, err
	}
	if c.Voter, _, err = t.replaceFollower(ctx, m, leader, followers[0]); err != nil {
		return c, err
	}
	c.During = load.cut()
	if c.LeaderCPU, c.LeaderRSS, err = use.since(); err != nil {
		return c, err
	}
	load.end()
	c.Plain, err = t.plain(ctx, m.vms[leader], m.vms[followers[0]].Name)
	return c, err
}

// Where things are in a VM.
const (
	plainCopy = "/srv/plaincopy"
	database  = dataDir + "/etcd/member/snap/db"
	plainPort = ":2390"
)

// plain copies the leader's database file to the other VM's data disk over TLS.
func (t copyTrial) plain(ctx context.Context, from localgce.VMStatus, to string) (seconds, error) {
	address := from.Address + plainPort
	serve, err := t.project.Command(ctx, from.Name, plainCopy, "serve", dataDir+"/pki", address, database)
	if err != nil {
		return 0, err
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := serve.Start(); err != nil {
		return 0, err
	}
	if _, err := out.Read(make([]byte, 64)); err != nil { // it listens
		return 0, fmt.Errorf("serve the plain copy: %w", err)
	}
	fetch, err := t.project.Command(ctx, to, plainCopy, "fetch", dataDir+"/pki", address, dataDir+"/plain.copy")
	if err != nil {
		return 0, err
	}
	text, err := fetch.Output()
	if err != nil {
		return 0, fmt.Errorf("fetch the plain copy: %w", err)
	}
	if err := serve.Wait(); err != nil {
		return 0, fmt.Errorf("serve the plain copy: %w", err)
	}
	remove, err := t.project.Command(ctx, to, "rm", dataDir+"/plain.copy")
	if err != nil {
		return 0, err
	}
	if err := remove.Run(); err != nil {
		return 0, err
	}
	var bytes int64
	var took float64
	if _, err := fmt.Sscan(strings.TrimSpace(string(text)), &bytes, &took); err != nil {
		return 0, fmt.Errorf("read %q: %w", text, err)
	}
	return seconds(took), nil
}

// catchUp lets a follower miss many writes and come back with its disk.
func (t copyTrial) catchUp(ctx context.Context) (c catchUp, err error) {
	m, err := t.connect()
	if err != nil {
		return c, err
	}
	defer m.close()
	leader, followers, err := t.roles(ctx, m)
	if err != nil {
		return c, err
	}
	name := m.vms[followers[0]].Name
	before := t.snapshotsSent()
	if err := t.project.KillVM(ctx, name); err != nil {
		return c, err
	}
	alive := []*clientv3.Client{m.clients[leader], m.clients[followers[1]]}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8 * fillers)
	for n := range missedWrites {
		g.Go(func() error { return putAnyway(gctx, alive[n%2], fmt.Sprintf("missed/%05d", n), "x") })
	}
	if err := g.Wait(); err != nil {
		return c, err
	}
	c.Missed = missedWrites
	if err := t.project.StartVM(ctx, name); err != nil {
		return c, err
	}
	begin, err := t.began(ctx, name)
	if err != nil {
		return c, err
	}
	at, err := t.awaitServing(ctx, m.vms[followers[0]], m.vms[leader])
	c.Took, c.Snapshots = seconds(at.Sub(begin).Seconds()), t.snapshotsSent()-before
	t.b.say("a member that missed %d writes serves after %.2f s, %d snapshots sent", c.Missed, c.Took, c.Snapshots)
	if err == nil && c.Snapshots > 0 {
		err = fmt.Errorf("%d snapshots were sent to a member that missed %d writes: it has to catch up from the log alone", c.Snapshots, c.Missed)
	}
	return c, err
}

// snapshotsSent counts, in the logs of all members, the snapshots that leaders have sent.
func (t copyTrial) snapshotsSent() (n int) {
	for _, vm := range t.project.Status().VMs {
		logs, _ := filepath.Glob(filepath.Join(vm.LogFolder, "etcd*.log"))
		for _, log := range logs {
			text, _ := os.ReadFile(log)
			n += strings.Count(string(text), "sending merged snapshot")
		}
	}
	return n
}
