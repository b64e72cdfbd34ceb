// mutate asks whether the tests of the membership's table would notice a fault in it. It makes mutants of its Classify
// and Decide, of the leader's Decide, and of what these call in the two packages. Each mutant has one small fault
// (operators.go). A test has to fail with it: one of the packages' own, or else a random walk of etcdmember/acts.
//
//	go run ./test/mutate [-n 200] [-seed 1] [-only REGEXP] [-walks 300] [-within 20m] [-v]
//
// A mutant that no test can kill because it decides the same is listed in equivalent.txt, with the reason. What
// survives and is not listed fails the run. So does what is listed and killed, or is listed and no longer there.
//
// All mutants are compiled into each test binary, and QUORATE_MUTANT names the one that is active. To build one binary
// for each would take ten times as long. The tools at hand do that, and none of them drops operands or swaps rows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// What is mutated, and what walks through it.
const (
	tablePackage  = "./etcdmember/table"
	leaderPackage = "./etcdmember/leader"
	walkPackage   = "./etcdmember/acts"
)

// flags are the command line's.
type flags struct {
	n, walks, jobs int
	seed           uint64
	only           *regexp.Regexp
	within         time.Duration
	verbose        bool
}

func main() {
	f, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	if err := mutate(ctx, f); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		os.Exit(1)
	}
}

func parse(args []string) (flags, error) {
	f := flags{}
	set := flag.NewFlagSet("mutate", flag.ContinueOnError)
	set.IntVar(&f.n, "n", 200, "how many mutants to try, chosen by the seed; 0: all")
	set.Uint64Var(&f.seed, "seed", 1, "another seed chooses others")
	set.IntVar(&f.walks, "walks", 300, "how many random walks a mutant has to survive; 0: none")
	set.IntVar(&f.jobs, "jobs", runtime.NumCPU(), "how many mutants run at once")
	set.DurationVar(&f.within, "within", 20*time.Minute, "what is not tried by then fails the run")
	set.BoolVar(&f.verbose, "v", false, "say of each mutant what killed it")
	only := set.String("only", "", "a regular expression: only mutants whose name matches it")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var err error
	if f.only, err = regexp.Compile(*only); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: -only: %v\n", err)
	}
	return f, err
}

// say prints a detail.
func (f flags) say(format string, args ...any) {
	if f.verbose {
		fmt.Printf(format, args...)
	}
}

// mutate makes the mutants, lets the tests loose on them, and says what came of it.
func mutate(ctx context.Context, f flags) error {
	began := time.Now()
	table, leader, err := deciders(ctx)
	if err != nil {
		return err
	}
	all := slices.Concat(table.mutants, leader.mutants)
	listed, err := parseListed(equivalent)
	if err != nil {
		return err
	}
	faults := listed.unknown(all)
	chosen := choose(all, f)
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return fmt.Errorf("make a folder for the test binaries: %w", err)
	}
	defer os.RemoveAll(folder)
	overlay, err := write(folder, table, leader)
	if err != nil {
		return err
	}
	survivors, r := chosen, report{}
	for _, k := range killersOf(folder, overlay, f) {
		if survivors, err = k.hunt(ctx, survivors, f, &r); err != nil {
			return err
		}
	}
	faults = append(faults, r.judge(survivors, listed)...)
	fmt.Printf("%d mutants, %d tried: %s, %d equivalent, %d at fault (%s)\n", len(all), len(chosen), r.killed(),
		r.equivalent, len(faults), time.Since(began).Round(time.Second))
	return errors.Join(faults...)
}

// deciders are the table's and the leader's functions with their mutants. What the leader calls of the table decides
// there, too.
func deciders(ctx context.Context) (table, leader *schemata, err error) {
	ofTable, err := load(ctx, tablePackage)
	if err != nil {
		return nil, nil, err
	}
	ofLeader, err := load(ctx, leaderPackage)
	if err != nil {
		return nil, nil, err
	}
	roots := append([]string{"Classify", "Decide"}, ofLeader.calls(tablePackage)...)
	table = schemataOf(ofTable, ofTable.reachable(roots), "", 0)
	leader = schemataOf(ofLeader, ofLeader.reachable([]string{"Decide"}), "leader.", len(table.mutants))
	return table, leader, nil
}
