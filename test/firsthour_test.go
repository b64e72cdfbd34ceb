package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// firstHour is the page that a new user reads after `make demo`.
const firstHour = "../docs/first-hour.md"

// TestTheFirstHour runs the page: each command as it is pasted, in its order, and what is seen after it has to say what
// the page shows. It is no part of check-demo, because the restore waits minutes for silence.
func TestTheFirstHour(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "five minutes")
	c := bare(t, plan{vms: threeVMs, more: fleetSection})
	await(t, "whole", c.membersWhole)
	c.serveOrders(t)
	c.must(t, os.Symlink(c.state, filepath.Join(c.state, "_demo")))
	quorate, err := filepath.Abs(filepath.Join(c.programs, "quorate"))
	c.must(t, err)
	c.must(t, os.Symlink(quorate, filepath.Join(c.state, "bin", "quorate")))
	page, err := os.ReadFile(firstHour)
	c.must(t, err)
	steps := stepsOf(strings.ReplaceAll(string(page), "Cluster demo ", "Cluster "+c.conf.Cluster+" "))
	if len(steps) < 10 {
		t.Fatalf("found only %d steps: this test no longer knows how the page shows them", len(steps))
	}
	for _, s := range steps {
		c.take(t, s)
	}
	await(t, "whole after the hour", c.membersWhole)
}

// step is one command of the page, and the lines that it shows of what is seen.
type step struct {
	command string
	seen    []string
}

var fenced = regexp.MustCompile("(?ms)^```(sh demo)?\n(.*?)^```$")

// stepsOf are the commands of the blocks for the demo, each with what the block behind it shows.
func stepsOf(page string) (out []step) {
	for _, m := range fenced.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[2]) {
			line = strings.TrimSpace(line)
			switch last := len(out) - 1; {
			case line == "" || line == "…":
			case m[1] != "":
				line, _, _ = strings.Cut(line, "  #")
				out = append(out, step{command: line})
			case last >= 0:
				out[last].seen = append(out[last].seen, line)
			}
		}
	}
	return out
}

// take runs a step. What only asks is asked again until it shows what the page does.
func (c *cluster) take(t *testing.T, s step) {
	t.Helper()
	asks := strings.HasPrefix(s.command, "bin/quorate health ") || strings.HasPrefix(s.command, "bin/quorate why ")
	run := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", s.command)
		cmd.Dir = c.state
		out, err := cmd.CombinedOutput()
		if asks {
			err = nil // how the cluster is, is its exit code
		}
		if err == nil {
			err = shows(string(out), s.seen)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", s.command, err, out)
		}
		return string(out), err
	}
	if asks {
		await(t, s.command, func() error { _, err := run(); return err })
		return
	}
	begin := time.Now()
	out, err := run()
	c.must(t, err)
	t.Logf("%s: %s\n%s", s.command, time.Since(begin).Round(time.Second), out)
}

// changing is what differs from one run to the next: numbers, ids and the blanks of a table.
var changing = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*|\s+`)

// alike is a text without what changes.
func alike(text string) string {
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		if strings.TrimSpace(s) == "" {
			return " "
		}
		return "#"
	})
}

// shows says which of some lines an output lacks. Where it breaks its lines depends on the width of the names.
func shows(out string, lines []string) error {
	all := alike(out)
	for _, line := range lines {
		if !strings.Contains(all, strings.TrimSpace(alike(line))) {
			return fmt.Errorf("it does not show %q", line)
		}
	}
	return nil
}
