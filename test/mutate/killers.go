package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// killer is a test binary that may notice a mutant.
type killer struct {
	name, pkg, binary, overlay string
	args                       []string
}

// patience is how many times as long as without a mutant a run may take, beside a few seconds for a machine that is
// busy. A mutant that takes longer loops, or as good as that.
const (
	patience = 20
	leastRun = 30 * time.Second
)

// killersOf are the own tests of the two packages and, for what survives these, the random walks. The walks see more at
// once, and take longer to compile and to run. The leader's tests take a moment, and of its mutants few get past them.
func killersOf(folder, overlay string, f flags) []killer {
	out := []killer{{name: "the leader's tests", pkg: leaderPackage, binary: filepath.Join(folder, "leader.test"),
		overlay: overlay}, {name: "the table's tests", pkg: tablePackage,
		binary: filepath.Join(folder, "table.test"), overlay: overlay}}
	if f.walks > 0 {
		out = append(out, killer{name: "the walks", pkg: walkPackage, binary: filepath.Join(folder, "walk.test"),
			overlay: overlay, args: []string{"-test.run", "^(TestRandomWalks|TestOrdersOfEvents.*)$",
				"-walk.n", fmt.Sprint(f.walks)}})
	}
	return out
}

// hunt compiles the killer, sees that it passes without a mutant, and lets it loose on each.
func (k killer) hunt(ctx context.Context, prey []mutant, f flags, r *report) (survivors []mutant, err error) {
	if len(prey) == 0 {
		return nil, nil
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", k.overlay, "-o", k.binary, k.pkg)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("compile %s with all mutants in it: %w", k.pkg, err)
	}
	began := time.Now()
	if how, err := k.run(ctx, 0, 10*time.Minute); err != nil || how != "" {
		return nil, errors.Join(fmt.Errorf("without a mutant %s do not pass: %s", k.name, how), err)
	}
	limit := max(leastRun, patience*time.Since(began))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.jobs)
	for _, m := range prey {
		group.Go(func() error {
			how, err := k.run(ctx, m.number, limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return err
			}
			if how == "" {
				survivors = append(survivors, m)
				f.say("%s\n\tsurvives %s\n", m, k.name)
				return nil
			}
			r.kills = append(r.kills, kill{m, k.name, how})
			f.say("%s\n\tkilled by %s\n", m, how)
			return nil
		})
	}
	return survivors, group.Wait()
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run says what fails with a mutant; empty: nothing does. An error is of the run itself.
func (k killer) run(ctx context.Context, number int, limit time.Duration) (how string, err error) {
	cmd := exec.CommandContext(ctx, k.binary, append([]string{"-test.failfast", "-test.timeout", limit.String()},
		k.args...)...)
	cmd.Dir = k.pkg
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", activeMutant, number))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("the time is up, and not all mutants were tried: %w", context.Cause(ctx))
	case !errors.As(err, &exit):
		return "", fmt.Errorf("run %s: %w", k.name, err)
	}
	if m := failed.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	return string(first), nil
}
