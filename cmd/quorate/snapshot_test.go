package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

// storeSnapshot is snapshot FOLDER EPOCH REVISION TIME: the record of the cluster demo in a folder has this snapshot,
// of a database with one key.
func storeSnapshot(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := bucket.Open("gs://"+args[0]+ts.Getenv("AT"), "demo", nil)
	ts.Check(err)
	epoch, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	revision, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	at, err := time.Parse(time.RFC3339, args[3])
	ts.Check(err)
	_, err = store.CreateSnapshot(ctx, record.Snapshot{Epoch: epoch, Revision: revision, Time: at},
		bytes.NewReader(smallDatabase(ts, uint64(revision))))
	ts.Check(err)
}

// smallDatabase is a database of etcd with one key, as a member sends it: with its hash at the end.
func smallDatabase(ts *testscript.TestScript, revision uint64) []byte {
	file := filepath.Join(ts.MkAbs("."), "small.db")
	db, err := bbolt.Open(file, 0o600, nil)
	ts.Check(err)
	ts.Check(db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		ts.Check(err)
		_, err = tx.CreateBucket([]byte("meta"))
		ts.Check(err)
		value := []byte("\n\x01k") // a mvccpb.KeyValue of the key k
		return keys.Put(append(binary.BigEndian.AppendUint64(nil, revision), "_00000000"...), value)
	}))
	ts.Check(db.Close())
	data, err := os.ReadFile(file)
	ts.Check(err)
	ts.Check(os.Remove(file))
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// damage FILE: one bit in the middle of the file flips.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	data, err := os.ReadFile(file)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(file, data, 0o600))
}

// TestTheAgentHearsHowASavingEnded runs programs that end as a saving may.
func TestTheAgentHearsHowASavingEnded(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"it saves":   {`echo '{"name":"1/5-x","size":7}'`, ""},
		"it refuses": {`echo "quorate: no room" >&2; exit 1`, "no room"},
		"it babbles": {`echo babble`, "decode what the saving said"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "quorate")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := saverChild(slog.New(slog.DiscardHandler), program, "/run/x")(t.Context(), "schedule")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v: want %q", err, c.want)
			}
		})
	}
}

func TestASavingGivesWayToTheAgent(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quorate")
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 less the niceness
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nuntil [ $(cat /proc/$$/oom_score_adj) = 1000 ] && [ $(nice) = %d ]; do "+
		"sleep 0.01; done\necho {}\n", min(19, 20-own+saveNice))
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := saverChild(slog.New(slog.DiscardHandler), program, "/run/x")(ctx, "schedule"); err != nil {
		t.Error(err)
	}
}
