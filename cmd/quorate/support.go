package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/gathering"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/support"
)

// supportFlags are the flags of support.
type supportFlags struct {
	cluster.Flags
	output, run, logs, to string
	since                 command.Moment
}

func newSupport() *cobra.Command {
	var f supportFlags
	cmd := &cobra.Command{Use: "support [FILE]", Short: "Gather in one file what a report needs, without secrets",
		Args: atMostOneFile,
		Long: `Gather in one file what a report needs, without secrets: the Cluster document, the verdict of "quorate health",
the replicas' reports, their events, the record's objects, the snapshots and the versions. On a master, as root, also its
status, its metrics, what the machine has, and the ends of the logs. It changes nothing.

What goes in is listed, field by field, and all else is left out: keys, tokens, values of extra arguments and of
environment variables. Of logs only words, numbers, addresses and the cluster's own names are kept. A … stands where
something was left out. It is text: read it before you send it.

FILE is a new one, mode 0600; quorate-support-CLUSTER-TIME.tar.gz where it is not given. With --to only the owner of
that age key can open it: age --decrypt -i KEYFILE FILE | tar xz`,
		Example: `  quorate support --config cluster.yaml
  quorate support /tmp/report.tar.gz.age --to age1… --since 8h      # on a master, as root`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.support(cmd.Context(), cmd.OutOrStdout(), args, time.Now())
		}}
	f.Add(cmd)
	command.AddOutput(cmd, &f.output)
	master.AddRunDir(cmd, &f.run)
	cmd.Flags().StringVar(&f.logs, "log-dir", "", "on a master, the folder of the logs, where they are not in the "+
		"journal (default "+master.LogDir+")")
	command.AddMoment(cmd, &f.since, "since", "72h", "how far back the events go, such as 8h or 7d, or since when, "+
		`such as "2026-11-27 20:30" in UTC`)
	cmd.Flags().StringVar(&f.to, "to", "", "the age public key of whoever may open the file")
	return cmd
}

func atMostOneFile(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fault.Usage("%s takes one file at most, and got %s (usage: %s)", cmd.CommandPath(),
			command.Counted(len(args)), cmd.UseLine())
	case len(args) == 1 && args[0] == cluster.StandardInput:
		return fault.Usage("support writes a new file, and - is none: name one, or leave it out")
	}
	return nil
}

func (f *supportFlags) check() error {
	if f.to != "" {
		if err := certs.ParseRecipient(f.to); err != nil {
			return fault.Usage("--to: %w", err)
		}
	}
	return nil
}

// support gathers in memory, so that an end by Ctrl-C leaves nothing.
func (f *supportFlags) support(ctx context.Context, out io.Writer, args []string, now time.Time) error {
	if master.IsClosed(f.run) {
		return fault.NotRoot("support, on a master,")
	}
	if err := f.since.CheckPast(now); err != nil {
		return err
	}
	g := gathering.New(gathering.Options{Flags: &f.Flags, RunDir: f.run, LogDir: f.logs, Since: f.since.At(now)}, now)
	path, err := f.target(args, g, now)
	if err != nil {
		return err
	}
	file, err := g.Gather(ctx)
	if ctx.Err() != nil {
		return errors.New("support was interrupted; nothing was written")
	}
	if err != nil {
		return err
	}
	packed, err := file.Pack("quorate-support")
	if err == nil && f.to != "" {
		packed, err = certs.EncryptTo(f.to, packed)
	}
	if err != nil {
		return err
	}
	if err := durable.CreateFile(path, packed, 0o600); err != nil {
		return writeFault(path, len(packed), err)
	}
	return terminal.PrintAs(out, f.output, struct {
		File  string `json:"file"`
		Bytes int    `json:"bytes"`
		support.Manifest
	}{path, len(packed), file.Manifest()}, func(w io.Writer) { showSupport(w, path, len(packed), file.Manifest()) })
}

// target is where the file goes; it is asked for before anything is gathered.
func (f *supportFlags) target(args []string, g *gathering.Gathering, now time.Time) (string, error) {
	if err := g.Know(); err != nil {
		return "", err
	}
	path := fmt.Sprintf("quorate-support-%s-%s.tar.gz", g.ClusterName(), now.UTC().Format("20060102T150405Z"))
	if f.to != "" {
		path += ".age"
	}
	if len(args) == 1 {
		path = args[0]
	}
	if err := fault.CheckTarget(path); err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", writeFault(path, 0, fs.ErrExist)
	}
	return path, nil
}

// writeFault says why the file is not there, and what helps.
func writeFault(path string, size int, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return fault.File("write %s: it exists and is not overwritten; name another file", path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.File("write %s: you may not write there; name a file in a folder of yours", path)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("write %s: the disk has no room for %d KiB; nothing is left of it; name a file on another "+
			"disk, such as one in /run: %w", path, size>>10+1, syscall.ENOSPC)
	}
	return fault.AtFile(err)
}

func showSupport(w io.Writer, path string, size int, m support.Manifest) {
	fmt.Fprintf(w, "Written to %s: %d parts, %d KiB.\n", path, len(m.Parts), size>>10+1)
	for _, missing := range m.Missing {
		terminal.PrintText(w, "", fmt.Sprintf("Not in it: %s (%s)", missing.Part, missing.Why))
	}
	terminal.PrintText(w, "",
		"Secrets are left out. Read it before you send it: names and addresses of the cluster are in it.")
}
