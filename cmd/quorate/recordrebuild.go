package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/rebuild"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// rebuildFlags are those of `quorate record rebuild`.
type rebuildFlags struct {
	cluster cluster.Flags
	collect string
	dataDir string
	run     string
	project string
	without []string
	seeder  string
	yes     bool
}

func newRecordRebuild() *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{Use: "rebuild FILE...", Short: "Bring lost objects back, from what the replicas' disks and " +
		"members say",
		Long: `Bring lost objects of the record back, from what the replicas' disks and members say: the inception, the newest epoch's claim and
outcome, each replica's incarnation. First, on every master that has a data disk, as root:

  quorate record rebuild --collect /tmp/$(hostname).json

Then, from anywhere, with all of those files. The command shows each object that it would create, and why, and asks. It refuses
what contradicts itself, such as two tokens for one epoch. An object that is there is never replaced, so the command can be run again.
Masters that run go on meanwhile, and each leaves its wait by itself, within ten seconds.

The bundle, orders and snapshots are not on the disks: bring the bundle back with quorate bundle import.`,
		Example: `  quorate record rebuild --collect master-a.json                       # on each master
  quorate record rebuild --config cluster.yaml master-a.json master-b.json master-c.json`,
		RunE: func(cmd *cobra.Command, files []string) error {
			switch {
			case f.collect != "" && len(files) > 0:
				return fault.Usage("--collect writes %s, and %q is given too: collect on each master, "+
					"rebuild with all of the files", f.collect, files[0])
			case f.collect != "":
				return collect(cmd, f)
			case len(files) == 0:
				return fault.Usage("files are needed, one of each master that has a data disk: quorate " +
					"record rebuild --collect FILE, on the master, writes one")
			}
			return runRebuild(cmd, f, files)
		}}
	f.cluster.Add(cmd)
	master.AddRunDir(cmd, &f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.collect, "collect", "", "write what this master's disk and member say to this new file, mode "+
		"0600, or to standard output (-)")
	flags.StringVar(&f.dataDir, "data-dir", "", "with --collect: where the data disk is mounted, if that is another "+
		"master's disk or this is no master")
	flags.StringVar(&f.project, "project-number", "", "the number of the masters' GCE project, if no file says it")
	flags.StringSliceVar(&f.without, "without", nil,
		"a member whose disk is lost for good, by its id; may be given again")
	flags.StringVar(&f.seeder, "seeder", "", "the master that formed the epoch, ZONE.NAME, if it is gone; it is "+
		"checked")
	terminal.AddYes(cmd, &f.yes)
	return cmd
}

// rebuild is the second half: from the files to the record.
func runRebuild(cmd *cobra.Command, f rebuildFlags, files []string) error {
	c, err := f.cluster.Load()
	if err != nil {
		return err
	}
	wish, err := f.wish(c)
	if err != nil {
		return err
	}
	said, err := readTestimonies(cmd.InOrStdin(), files)
	if err != nil {
		return err
	}
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return err
	}
	remains, err := store.Remains(cmd.Context())
	if err != nil {
		return err
	}
	found, err := rebuild.Find(remains, said, wish)
	if err != nil {
		return fault.Record("%w\nnothing was changed", err)
	}
	out := cmd.OutOrStdout()
	recordtext.ShowRebuilding(out, store.String(), found)
	if len(found.Lost) == 0 {
		return nil
	}
	question := fmt.Sprintf("Create what is lost (%d objects)?", len(found.Lost))
	if err := terminal.Confirm(cmd, "", question, f.yes); err != nil {
		return err
	}
	return createLost(cmd.Context(), out, store, found.Lost)
}

// wish is what the flags say.
func (f rebuildFlags) wish(c *replica.Cluster) (w rebuild.Wish, err error) {
	w = rebuild.Wish{Cluster: c.Name, ProjectNumber: f.project, Replicas: c.Replicas, Now: time.Now().UTC()}
	if f.project != "" && !projectForm.MatchString(f.project) {
		return w, fault.Usage("--project-number %q: the number is needed, not the id", f.project)
	}
	for _, text := range f.without {
		id, err := record.ParseMemberID(text)
		if err != nil || id == 0 {
			return w, fault.Usage("--without %q: a member's id is needed, in hexadecimal, such as "+
				"8e9e05c52164694d", text)
		}
		w.Without = append(w.Without, id)
	}
	if f.seeder != "" {
		p, ok := replica.ParsePlace(f.seeder)
		if !ok {
			return w, fault.Usage("--seeder %q: ZONE.NAME is needed, such as us-central1-a.master-a",
				f.seeder)
		}
		w.Seeder = &p
	}
	return w, nil
}

// readTestimonies reads the files; each, and standard input (-), may hold several, one after the other.
func readTestimonies(in io.Reader, files []string) ([]rebuild.Testimony, error) {
	var out []rebuild.Testimony
	for _, name := range files {
		said, err := readTestimonyFile(in, name)
		if err != nil {
			return nil, err
		}
		out = append(out, said...)
	}
	return out, nil
}

func readTestimonyFile(in io.Reader, name string) ([]rebuild.Testimony, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fault.File("read what a master said: %w", err)
		}
		defer file.Close()
		in = file
	}
	var out []rebuild.Testimony
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	for {
		var t rebuild.Testimony
		switch err := dec.Decode(&t); {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		case errors.Is(err, io.EOF):
			return nil, fault.File("read what a master said: %s is empty", name)
		case err != nil:
			return nil, fault.File("read what a master said: %s is not whole, or not what --collect writes: %w", name,
				err)
		}
		out = append(out, t)
	}
}

// createLost creates the objects in their order. After an error the rest stays lost, which every agent can see.
func createLost(ctx context.Context, w io.Writer, store *bucket.Store, lost []rebuild.Lost) error {
	for n, l := range lost {
		if err := l.Create(ctx, store); err != nil {
			return fault.Record("%w\n%d of %d objects were created; the record stays damaged, and the command can be "+
				"run again", err, n, len(lost))
		}
		fmt.Fprintf(w, "created %s\n", l.Key)
	}
	v, err := store.View(ctx)
	if err != nil {
		return err
	}
	text := "The record is whole again: each agent finds that by itself, within ten seconds."
	if v.Bundle == 0 {
		text += " It still has no bundle: quorate bundle import."
	}
	fmt.Fprintln(w, strings.TrimSpace(text))
	return nil
}
