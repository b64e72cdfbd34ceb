package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/rebuild"
	"github.com/quorate/quorate/internal/durable"
)

// collect is the first half of `quorate record rebuild`: what this master's disk and member say. It changes nothing on
// them.
func collect(cmd *cobra.Command, f rebuildFlags) error {
	if err := fault.RequireRoot("record rebuild --collect"); err != nil {
		return err
	}
	if f.collect != "-" {
		if err := fault.CheckTarget(f.collect); err != nil {
			return err
		}
	}
	t, err := testify(cmd, f)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f.collect == "-" {
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	if err := durable.CreateFile(f.collect, text, 0o600); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.File("write what this master says: %s exists and is not overwritten", f.collect)
		}
		return fault.File("write what this master says: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: phase %s, epoch %d, member %s; in %s.\n", t,
		terminal.OrNone(string(t.Agent.Phase)), t.Agent.Epoch, t.Agent.MemberID, f.collect)
	return nil
}

// testify asks the disk. On a master the agent knows which one that is; a disk that is mounted elsewhere is named by
// --data-dir, and then nothing is known of the VM that it belongs to.
func testify(cmd *cobra.Command, f rebuildFlags) (t rebuild.Testimony, err error) {
	if f.dataDir != "" {
		c, err := f.cluster.Load()
		if err != nil {
			return t, err
		}
		t, err = rebuild.Testify(cmd.Context(), f.dataDir, c.Etcd.DataDisk,
			filepath.Join(f.dataDir, "no-member-runs-here.sock"))
		t.Cluster = c.Name
		if errors.Is(err, rebuild.ErrNoDisk) {
			return t, fault.File("--data-dir %s: %w: name the folder at which the data disk is mounted; nothing was "+
				"written", f.dataDir, err)
		}
		return t, fault.AtFile(whatDiskSays(f.dataDir, err))
	}
	self, c, disk, ok, err := agent.Remembered(f.run, master.BakedFile)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no agent has begun in %s in this boot, so it is not known which disk is meant: name it "+
			"with --data-dir, and the document with --config",
			agent.ErrNoAgent, f.run)
	}
	if err != nil {
		return t, err
	}
	t, err = rebuild.Testify(cmd.Context(), c.Etcd.DataDir, c.Etcd.DataDisk,
		member.SocketIn(f.run))
	t.Cluster, t.Identity, t.DiskID = c.Name, &self, disk
	if errors.Is(err, rebuild.ErrNoDisk) {
		err = fmt.Errorf("%w: mount it, or name with --data-dir where it is mounted, and the document with --config; "+
			"nothing was written", err)
	}
	return t, whatDiskSays(c.Etcd.DataDir, err)
}

func whatDiskSays(dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read the data disk at %s: %w", dir, err)
}
