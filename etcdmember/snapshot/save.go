// Package snapshot saves the members' database in the record, and keeps what is saved: when a replica has its turn
// (Decide), the saving itself (Save), how long each stays (Expired), and how one is brought back verified (Fetch).
// Nothing counts that was not read whole and checked.
//
// It does not restore: the membership does.
package snapshot

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Store is what saving needs of the record. CreateSnapshot stores a verified database, or nothing that counts.
type Store interface {
	View(ctx context.Context) (record.View, error)
	CreateSnapshot(ctx context.Context, info record.Snapshot, db io.Reader) (record.Snapshot, error)
}

// Job is one saving of the own member's database.
type Job struct {
	// DNSName names the member, and must be in its certificate; Address is where it is asked, loopback where it is
	// zero.
	DNSName string
	Address netip.Addr
	TLS     *tls.Config
	// Dir is on the data disk: the database stands there while it is verified, and the newest one stays if there is
	// room.
	Dir string
	// By and Why are written down with the snapshot.
	By    replica.Place
	Why   string
	Store Store
}

// Saved is a snapshot that counts.
type Saved struct {
	record.Snapshot
	// Local is the copy on the data disk; empty where there was no room for one.
	Local string `json:"local,omitempty"`
	// Took is all of it, in seconds: Sent until the member had sent it, then Verified, then Uploaded.
	Took     float64 `json:"tookSeconds"`
	Sent     float64 `json:"sentSeconds"`
	Verified float64 `json:"verifiedSeconds"`
	Uploaded float64 `json:"uploadedSeconds"`
}

const (
	// syncEvery is how much is written before it is flushed: gigabytes flushed at once would stall the log of the
	// member on the same disk.
	syncEvery = 16 << 20
)

// Save asks the own member for its database, verifies it and stores it. What was acknowledged before it began
// is in it: the member proves by a linearizable read that it is up to date. It needs free space on the data disk for
// one database, and says so before it begins; a member without a quorum, or a learner, is refused. Nothing that counts
// is left of a saving that fails or is ended.
func Save(ctx context.Context, job Job) (Saved, error) {
	begin := time.Now()
	release, err := lockSnapshots(job.Dir)
	if err != nil {
		return Saved{}, err
	}
	defer release()
	c, err := member.Dial(job.DNSName, job.address(), job.TLS)
	if err != nil {
		return Saved{}, err
	}
	defer c.Close()
	info, size, err := job.ask(ctx, c)
	if err != nil {
		return Saved{}, err
	}
	info.Time = begin.UTC().Truncate(time.Millisecond)
	if err := job.makeRoom(size); err != nil {
		return Saved{}, err
	}
	temp := filepath.Join(job.Dir, tempSnapshot)
	defer os.Remove(temp)
	out := Saved{}
	if err := job.fetch(ctx, c, temp, &info); err != nil {
		return Saved{}, fmt.Errorf("fetch the member's database: %w", err)
	}
	out.Sent = time.Since(begin).Seconds()
	if err := verifyFetched(ctx, temp, &info); err != nil {
		return Saved{}, err
	}
	out.Verified = time.Since(begin).Seconds() - out.Sent
	if out.Snapshot, err = job.upload(ctx, temp, info); err != nil {
		return Saved{}, err
	}
	out.Uploaded = time.Since(begin).Seconds() - out.Sent - out.Verified
	out.Local, err = job.keepLocal(temp, out.Snapshot)
	out.Took = time.Since(begin).Seconds()
	return out, err
}

func (job Job) address() netip.Addr {
	if job.Address.IsValid() {
		return job.Address
	}
	return member.Loopback
}

// ask finds out what the snapshot will be of, and how large it is. Revision is how far it must reach at the least.
func (job Job) ask(ctx context.Context, c *clientv3.Client) (info record.Snapshot, size int64, err error) {
	view, err := job.Store.View(ctx)
	if err != nil {
		return info, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, snapshotAskTimeout, fmt.Errorf("no answer within %s",
		snapshotAskTimeout))
	defer cancel()
	st, err := c.Status(ctx, member.ClientURL(job.DNSName))
	if err != nil {
		return info, 0, fmt.Errorf("ask the member on this machine (`quorate status` says whether one runs): %w",
			cmp.Or(context.Cause(ctx), err))
	}
	if st.IsLearner {
		return info, 0,
			errors.New("the member on this machine is a learner, which may be behind: save the snapshot on a voter")
	}
	// A name that is never written: what counts is the answer's revision.
	read, err := c.Get(clientv3.WithRequireLeader(ctx), "quorate/snapshot", clientv3.WithCountOnly())
	if err != nil {
		return info, 0, fmt.Errorf("read through a quorum: the member on this machine cannot tell whether it is up "+
			"to date: %w", err)
	}
	info = record.Snapshot{Revision: read.Header.Revision, ClusterID: record.MemberID(st.Header.ClusterId),
		MemberID:    record.MemberID(st.Header.MemberId),
		EtcdVersion: st.Version, Bundle: view.Bundle, By: job.By.String(), Why: job.Why}
	epoch := view.OfCluster(info.ClusterID)
	if epoch == nil || epoch.Closed != nil {
		return info, 0, fmt.Errorf("the member on this machine is of etcd cluster %s, which is no open epoch of "+
			"the record", info.ClusterID)
	}
	info.Epoch = epoch.Number
	return info, st.DbSize, nil
}

// fetch writes what the member sends to a file, and checks the hash at its end.
func (job Job) fetch(ctx context.Context, c *clientv3.Client, path string, info *record.Snapshot) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(sendStall, func() { cancel(fmt.Errorf("nothing came for %s", sendStall)) })
	defer stall.Stop()
	resp, err := c.SnapshotWithVersion(ctx)
	if err != nil {
		return err
	}
	defer resp.Snapshot.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s := newSealing()
	buf := make([]byte, 1<<20)
	for unsynced := 0; err == nil; {
		var n int
		n, err = io.ReadAtLeast(resp.Snapshot, buf, len(buf))
		stall.Reset(sendStall)
		s.Write(buf[:n])
		if _, werr := f.Write(buf[:n]); werr != nil {
			return werr
		}
		if unsynced += n; unsynced >= syncEvery {
			unsynced = 0
			if serr := unix.Fdatasync(int(f.Fd())); serr != nil {
				return serr
			}
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	info.SHA256, err = s.finish()
	info.Size = s.size
	return err
}

// verifyFetched opens the file and reads all of it.
func verifyFetched(ctx context.Context, path string, info *record.Snapshot) error {
	d, err := datadir.CheckDatabase(ctx, path)
	if err != nil {
		return fmt.Errorf("the member's own database is damaged: %w", err)
	}
	if d.Revision < info.Revision {
		return fmt.Errorf("the member sent revision %d, and %d was acknowledged before: it does not count", d.Revision,
			info.Revision)
	}
	info.Revision, info.Keys, info.Term, info.Index = d.Revision, int(d.Entries), d.Term, d.Index
	return nil
}

func (job Job) upload(ctx context.Context, path string, info record.Snapshot) (record.Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return record.Snapshot{}, err
	}
	defer f.Close()
	return job.Store.CreateSnapshot(ctx, info, f)
}
