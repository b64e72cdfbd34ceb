package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/report"
)

// seenWithin is how soon health names a fault: a replica that cannot report is silent after 75 s.
const seenWithin = 3 * time.Minute

// Whatever befalls a master, health names the cause first, from outside and also while no apiserver answers; the
// remedy that it prints runs as it is pasted; and the events tell what happened. injectedFaults is the list.
//
// It takes 40 minutes. QUORATE_FAULTS names those to inject, as a regular expression; make faults injects all.
func TestHealthNamesTheCauseOfEachInjectedFault(t *testing.T) {
	only, err := regexp.Compile(wantedFaults(t))
	if err != nil {
		t.Fatal(err)
	}
	c := bare(t, plan{vms: threeVMs, programs: t.TempDir(), etcd: "quotaBytes: 67108864"})
	c.serveOrders(t)
	await(t, "whole", c.membersWhole)
	for _, f := range injectedFaults {
		if !only.MatchString(f.name) {
			continue
		}
		vm := ""
		if !t.Run(f.name, func(t *testing.T) { vm = c.suffer(t, f) }) {
			c.tell(t)
			t.Run("what it left is undone", func(t *testing.T) { c.calm(t, f, vm) })
		}
	}
}

// wantedFaults skips where nobody wants any.
func wantedFaults(t *testing.T) string {
	t.Helper()
	wanted := os.Getenv("QUORATE_FAULTS")
	if wanted == "" {
		t.Skip("40 minutes; with QUORATE_FAULTS=.")
	}
	return wanted
}

// serveOrders lets localgce's commands reach the project, and puts the commands where a pasted remedy finds them.
func (c *cluster) serveOrders(t *testing.T) {
	t.Helper()
	tool, err := filepath.Abs("../bin/localgce")
	c.must(t, err)
	if _, err := os.Stat(tool); err != nil {
		t.Skip("needs bin/localgce: run `make build` first")
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --state %s \"$@\"\n", tool, c.conf.State)
	c.must(t, os.MkdirAll(filepath.Join(c.state, "bin"), 0o755))
	c.must(t, os.WriteFile(filepath.Join(c.state, "bin", "localgce"), []byte(script), 0o755))
	ctx, end := context.WithCancel(context.Background())
	up, down := make(chan struct{}), make(chan error, 1)
	project := c.Project
	go func() { down <- project.Run(ctx, func() { close(up) }) }()
	select {
	case <-up:
	case err := <-down:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !c.told {
			c.tell(t)
		}
		end()
		c.Project = nil
		if err := <-down; err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// suffer injects a fault into a cluster that is well, and sees it mended. It returns which VM has it.
func (c *cluster) suffer(t *testing.T, f injectedFault) (vm string) {
	await(t, "health says that all is well", func() error { return c.wantHealth(t, health.Well, f.compute) })
	vm = c.follower(t)
	if f.leader {
		vm = c.leader(t)
	}
	begin := time.Now()
	c.must(t, f.inject(t, c, vm))
	if len(f.causes) > 0 {
		v := c.findsFirst(t, f, vm)
		c.paste(t, f, v)
	}
	if f.heal != nil {
		c.must(t, f.heal(t, c, vm))
	}
	await(t, "all is well again", func() error {
		return errors.Join(c.wantHealth(t, health.Well, f.compute), c.membersWhole())
	})
	c.tellsStory(t, f, vm, begin)
	return vm
}

// verdict is what health says now.
func (c *cluster) verdict(t *testing.T, compute bool) (v health.Verdict, err error) {
	args := []string{"health", "-o", "json"}
	if compute {
		args = append(args, "--compute")
	}
	out, failed := c.quorate(t, args...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		return v, fmt.Errorf("%w: %w", failed, err)
	}
	return v, nil
}

func (c *cluster) wantHealth(t *testing.T, want health.State, compute bool) error {
	v, err := c.verdict(t, compute)
	if err == nil && v.State != want {
		err = fmt.Errorf("it is %s: %s", v.State, foundOf(v))
	}
	return err
}

// foundOf is a verdict's findings in a line.
func foundOf(v health.Verdict) string {
	var out []string
	for _, f := range v.Findings {
		out = append(out, fmt.Sprintf("%s%v: %s", f.Name, f.Replicas, f.What))
	}
	return strings.Join(out, "; ")
}

// findsFirst waits until the cause comes first, and wants it to stay there.
func (c *cluster) findsFirst(t *testing.T, f injectedFault, vm string) (v health.Verdict) {
	t.Helper()
	first := func() (err error) {
		v, err = c.verdict(t, f.compute)
		if err != nil {
			return err
		}
		if len(v.Findings) == 0 || !slices.Contains(f.causes, v.Findings[0].Name) {
			return fmt.Errorf("it finds %s", foundOf(v))
		}
		about := v.Findings[0].Replicas
		if !f.anywhere && !slices.ContainsFunc(about, func(p string) bool { return strings.HasSuffix(p, "."+vm) }) {
			return fmt.Errorf("%s is about %v, and it is %s that has the fault", v.Findings[0].Name, about, vm)
		}
		if v.State == health.Well && v.Findings[0].Level != health.Note {
			return errors.New("it says that all is well")
		}
		return nil
	}
	awaitWithin(t, seenWithin, "health names "+strings.Join(f.causes, " or "), first)
	if f.passes {
		return v
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if len(f.never) > 0 {
			c.findsNever(t, f)
		}
	}
	if err := first(); err != nil {
		t.Errorf("4 s later %v", err)
	}
	return v
}

// findsNever wants no consequence to stand beside its cause.
func (c *cluster) findsNever(t *testing.T, f injectedFault) {
	t.Helper()
	v, err := c.verdict(t, f.compute)
	if err != nil {
		t.Error(err)
	}
	for _, found := range v.Findings {
		if slices.Contains(f.never, found.Name) {
			t.Errorf("it finds %s beside what it follows from: %s", found.Name, foundOf(v))
		}
	}
}

// paste runs the remedy of the first finding, as a person would. One that shows more must print something.
func (c *cluster) paste(t *testing.T, f injectedFault, v health.Verdict) {
	t.Helper()
	if len(v.Findings) == 0 {
		return
	}
	if len(v.Findings[0].Remedy) == 0 && !f.noRemedy {
		t.Errorf("%s has no remedy", v.Findings[0].Name)
	}
	for _, command := range v.Findings[0].Remedy {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir, cmd.Env = c.state, append(os.Environ(), "PATH="+c.programs+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		cancel()
		t.Logf("pasted %q: %v", command, err)
		if f.mends && err != nil || len(out) == 0 && err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// tellsStory wants what happened in the story of the replica, and each event's text to be clean.
func (c *cluster) tellsStory(t *testing.T, f injectedFault, vm string, begin time.Time) {
	t.Helper()
	for _, story := range f.story {
		form := regexp.MustCompile(story)
		awaitWithin(t, 30*time.Second, "the story has "+story, func() error {
			args := []string{"why", vm}
			if f.anywhere {
				args = []string{"events"}
			}
			since := time.Since(begin).Round(time.Second) + time.Second
			out, err := c.quorate(t, append(args, "-o", "json", "--since", since.String())...)
			var lines []report.Line
			if err == nil {
				err = json.Unmarshal([]byte(out), &lines)
			}
			if err != nil {
				return err
			}
			var texts []string
			for _, l := range lines {
				texts = append(texts, l.Text)
			}
			if text := strings.Join(texts, "\n"); !form.MatchString(text) {
				return fmt.Errorf("it has\n%s", text)
			}
			return nil
		})
	}
}

// calm undoes what a fault that failed may have left. Only its own VM is touched: a remedy for one may lose three.
func (c *cluster) calm(t *testing.T, f injectedFault, vm string) {
	if f.heal != nil && vm != "" {
		_ = f.heal(t, c, vm)
	}
	for _, vm := range c.vms { // those that run refuse it
		_ = c.StartVM(t.Context(), vm)
	}
}
