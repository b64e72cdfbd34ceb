// bench measures what quorate itself costs, on the programs of the demo:
//
//	one      one replica, from the agent's start to an apiserver that says "ok" on /readyz
//	three    three first boots at the same moment, to three voters and three such apiservers
//	memory   the agent's resident memory and its CPU while nothing happens, and those of what it runs
//	repair   a recreated VM, with its disk and with an empty one, to a voter and to /readyz; and how long writes stall
//	         when a follower is lost, when the leader is lost, and when the leader is stopped as planned
//	reports  what reports and events cost each agent in a day: CPU, requests to the bucket and their bytes; against
//	         agents that open no store for them
//	load     300 nodes that come within 10 s for 1,500 pods, and 1,000 that come within 200 s (./nodes imitates them):
//	         until all is up, and what they see while nothing happens and while a master is stopped, killed and wiped
//	watch    a kubelet and a runtime that break in ten ways: how soon that is seen and made good, and what is done
//	         wrongly, by quorate and by what else watches a kubelet (./rivals); and what each costs
//
// One, three, memory and repair are held against a floor: etcd, its health, then kube-apiserver, started by a small
// program (./floor) with certificates and flags that are ready-made, in VMs of the same local GCE project. Rounds of
// quorate and of the floor take turns, because machines are never quiet for long; the table shows medians and the
// extremes next to them. Below it stands where quorate's time went, phase by phase.
//
//	go run ./test/bench [-rounds 10] [-bin bin] [-only one,three,memory,repair,reports,load,watch]
//	    [-vms systemd] [-o json] [-strict]
//
// With -vms systemd quorate's masters boot the baked image, by its units, users and sandboxes, without kubelet; the
// floor stays what it is.
//
// It needs root. Its files are in a folder of their own and are gone afterwards, unless -keep says otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// The goals.
const (
	goalOne    = 1.15 // times the floor
	goalThree  = 1.3  // times the floor
	goalMemory = 60.0 // MiB
	goalCPU    = 1.0  // percent of a core
	goalOthers = 1.05 // times the same programs by hand

	goalEmptyVoter    = 1.0 // seconds, as all below
	goalEmptyReady    = 3.5
	goalKeptVoter     = 0.6
	goalKeptReady     = 3.2
	goalFollowerLost  = 0.1
	goalLeaderLost    = 2.0
	goalLeaderStopped = 0.1

	goalWatching = 30.0 // after the last node has come
	goalRenewal  = 45.0 // client-go's ping after 30 s of silence, and the 15 s that it waits for the answer

	goalExitSeen  = 1.0 // an end of a process
	goalHang      = 45.0
	goalStartHang = 315.0 // five minutes, and what a restart takes
)

// The exit codes.
const (
	exitFailure = 1 // a round did not end well, or with -strict: a goal was missed
	exitUsage   = 2
)

// flags are the command line's.
type flags struct {
	rounds         int
	bin, output    string
	only           string
	vms            localgce.Kind
	settle, watch  time.Duration
	strict, keep   bool
	one, three, mb bool // parts that run
	repair, rivals bool
	reports, load  bool
	image, monit   string
	budget         time.Duration
}

func main() {
	localgce.RunInitIfAsked() // this program is also pid 1 of its VMs
	f, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx, f)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(exitFailure)
	}
	if missed && f.strict {
		os.Exit(exitFailure)
	}
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.IntVar(&f.rounds, "rounds", 10, "rounds of quorate, and as many of the floor: the goals are medians of ten; "+
		"raft's random election time-out alone makes a boot of the floor vary by 0.9 s")
	set.StringVar(&f.bin, "bin", "bin", "the folder with quorate and the Kubernetes programs")
	set.StringVar(&f.only, "only", "one,three,memory,repair,reports,load", "the parts to run; watch is there besides")
	set.StringVar((*string)(&f.vms), "vms", string(localgce.ProcessVMs), "what quorate's VMs are: process, or systemd, "+
		"which boot the baked image")
	set.StringVar(&f.image, "image", "bin/image/root.tar", "the baked image's tree, for systemd VMs and watch")
	set.StringVar(&f.monit, "monit", "bin/monit", "Debian's monit (test/bench/monit.sh), for watch")
	set.DurationVar(&f.budget, "faults", 15*time.Minute, "how long watch begins faults for")
	set.StringVar(&f.output, "o", "", "json: print the results as JSON")
	set.DurationVar(&f.settle, "settle", 30*time.Second,
		"how long three ready replicas are left alone before their CPU is counted")
	set.DurationVar(&f.watch, "watch", 60*time.Second, "how long their CPU is counted")
	set.BoolVar(&f.strict, "strict", false, "exit with 1 if a goal is missed")
	set.BoolVar(&f.keep, "keep", false, "keep the folder with logs and disks, and say where it is")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	for _, part := range strings.Split(f.only, ",") {
		switch part {
		case "one":
			f.one = true
		case "three":
			f.three = true
		case "memory":
			f.mb = true
		case "repair":
			f.repair = true
		case "reports":
			f.reports = true
		case "load":
			f.load = true
		case "watch":
			f.rivals = true
		default:
			return f, fmt.Errorf("-only %q: one, three, memory, repair, reports, load and watch are known", part)
		}
	}
	switch {
	case f.rounds < 1:
		return f, fmt.Errorf("-rounds %d: at least one is needed", f.rounds)
	case f.watch < time.Second:
		return f, fmt.Errorf("-watch %s: at least 1s is needed", f.watch)
	case f.vms != localgce.ProcessVMs && f.vms != localgce.SystemdVMs:
		return f, fmt.Errorf("-vms %q: %s and %s are known", f.vms, localgce.ProcessVMs, localgce.SystemdVMs)
	case !slices.Contains([]string{"", "json"}, f.output):
		return f, fmt.Errorf("-o %q: json is known", f.output)
	case set.NArg() > 0:
		return f, fmt.Errorf("%q: only flags are known", set.Arg(0))
	}
	return f, nil
}

// run measures all parts and prints them. It reports whether a goal was missed.
func run(ctx context.Context, f flags) (missed bool, err error) {
	if os.Geteuid() != 0 {
		return false, localgce.ErrNotRoot
	}
	dir, err := os.MkdirTemp("", "quorate-bench-")
	if err != nil {
		return false, err
	}
	if f.keep {
		fmt.Fprintln(os.Stderr, "bench: logs and disks stay in "+dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if f.bin, err = filepath.Abs(f.bin); err != nil {
		return false, err
	}
	b := &bench{flags: f, dir: dir}
	r := results{Started: time.Now().UTC(), Machine: machine()}
	if err := b.measure(ctx, &r); err != nil {
		return false, err
	}
	r.Ended, r.Load = time.Now().UTC(), load()
	return r.missed(), r.print(os.Stdout, f.output)
}

// measure runs the parts that were asked for.
func (b *bench) measure(ctx context.Context, r *results) (err error) {
	if b.one || b.three || b.repair || b.mb {
		if err := b.buildFloor(ctx); err != nil {
			return err
		}
	}
	if b.one {
		if err := b.compare(ctx, 1, &r.One); err != nil {
			return err
		}
	}
	if b.three {
		if err := b.compare(ctx, 3, &r.Three); err != nil {
			return err
		}
	}
	if b.mb {
		if r.Usage, err = b.usage(ctx); err != nil {
			return err
		}
	}
	if b.repair {
		if r.Repair, err = b.repairs(ctx); err != nil {
			return err
		}
	}
	if b.reports {
		if r.Reports, err = b.reportCosts(ctx); err != nil {
			return err
		}
	}
	if b.flags.load {
		if r.Loads, err = b.loads(ctx); err != nil {
			return err
		}
	}
	if b.rivals {
		r.Watch, err = b.watches(ctx)
	}
	return err
}
