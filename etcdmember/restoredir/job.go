// Package restoredir builds the directory of a new epoch, from a snapshot or from a member's directory, which it only
// reads. It runs etcd on a copy, so it works in a process of its own, which etcd's code may end. When the directory
// takes its place is the membership's to say.
package restoredir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
)

// revisionBump is what a restore adds to the newest revision, for each epoch between the source's and the new one.
// Kubernetes' clients keep what they have seen by its revision: one that came back would make them keep stale objects
// for ever (etcd#16028). It is more than any cluster writes between a snapshot and its loss, and together with the
// compaction mark it makes every watch begin anew. A second restore of one source begins above what the first one has
// handed out, because it makes a later epoch.
const revisionBump = 1_000_000_000

// Job is all that the process needs that makes the directory of a new epoch. etcd's code may end its process at any
// time, and what decides must outlive that, so this is a child of the agent.
type Job struct {
	// Snapshot is a database file as etcd's own snapshot call sends it, or Directory a member's directory, which is
	// only read: one of the two.
	Snapshot  string `json:"snapshot,omitempty"`
	Directory string `json:"directory,omitempty"`
	// Scratch is a folder for copies, on the file system of Out. Out is the directory to make; it must not exist.
	Scratch string `json:"scratch"`
	Out     string `json:"out"`
	// Name and DNSName are the new member's, Token is its epoch's: member and cluster get new ids by them.
	Name    string `json:"name"`
	DNSName string `json:"dnsName"`
	Token   string `json:"token"`
	// Epochs is how many epochs the new one is after that of the source: 1 where the source is of the epoch before.
	Epochs uint64 `json:"epochs"`
}

// Save writes the work where the child will read it.
func (k Job) Save(path string) error {
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the job of a restore directory: %w", err)
	}
	return durable.WriteFile(path, b, 0o600)
}

// LoadJob is the inverse of Save.
func LoadJob(path string) (Job, error) {
	var k Job
	b, err := os.ReadFile(path)
	if err != nil {
		return k, fmt.Errorf("read the job of a restore directory: %w", err)
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return k, fmt.Errorf("decode the job of a restore directory %s: %w", path, err)
	}
	if (k.Snapshot == "") == (k.Directory == "") || k.Scratch == "" || k.Out == "" || k.Name == "" || k.DNSName == "" ||
		k.Token == "" || k.Epochs == 0 {
		return k, fmt.Errorf("job of a restore directory %s: one of snapshot and directory, and scratch, out, name, "+
			"dnsName, token and epochs must be given", path)
	}
	return k, nil
}

// Make makes the directory Out of the source, on the disk when it returns: a cluster of one with a new id, every key of
// the source, its revision bumped and all before that compacted. What it leaves in Scratch is of no use. A part of Out
// may be there after an error.
func (k Job) Make(ctx context.Context, log *slog.Logger) error {
	source, hashed := k.Snapshot, true
	if k.Directory != "" {
		var err error
		if source, err = k.extract(ctx, log); err != nil {
			return fmt.Errorf("read the directory %s: %w", k.Directory, err)
		}
		hashed = false
	}
	peerURL := table.PeerURL(k.DNSName)
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: source, SkipHashCheck: !hashed, OutputDataDir: k.Out,
		Name: k.Name, PeerURLs: []string{peerURL}, InitialCluster: k.Name + "=" + peerURL, InitialClusterToken: k.Token,
		RevisionBump: revisionBump * k.Epochs, MarkCompacted: true, // the one without the other does nothing at all
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", source, err)
	}
	if err := dropAlarms(datadir.DatabaseFile(k.Out)); err != nil {
		return fmt.Errorf("take the old members' alarms out of %s: %w", k.Out, err)
	}
	log.Info("made the directory of a new epoch", "source", source)
	return syncTree(k.Out)
}

// dropAlarms takes the alarms out of a database. They are about members of the old epoch, and etcd keeps them: CORRUPT
// of id 0 would hold up the new one, which has a single member and nothing to differ from, for good. A database that is
// full raises NOSPACE again by itself.
func dropAlarms(file string) (err error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(func(tx *bbolt.Tx) error {
		name := schema.Alarm.Name()
		if tx.Bucket(name) == nil {
			return nil
		}
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		_, err := tx.CreateBucket(name)
		return err
	})
}

// syncTree writes everything below a folder, and the folder, to the disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
