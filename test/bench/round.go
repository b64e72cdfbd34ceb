package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/localgce"
)

const (
	// roundLimit is far above what a round takes; beyond it something is broken.
	roundLimit = 2 * time.Minute
	// readyPeriod is the time between two questions for /readyz. It is the error of the measurement, and each question
	// costs the machine something, so it is not much smaller.
	readyPeriod = 20 * time.Millisecond
)

// round is one measured boot.
type round struct {
	// Took is from the first agent's start until everything that was waited for.
	Took seconds `json:"took"`
	// First and Last are how long the first and the last apiserver took.
	First seconds `json:"first"`
	Last  seconds `json:"last"`
	// Phases are the durations that the replica which was ready last has logged, in order.
	Phases []phase `json:"phases"`
	// Busy is the share of the machine that others used when the round began.
	Busy float64 `json:"busy"`
}

// boot starts a world, waits for it and says how long that took. The project stays up: the caller closes it.
func boot(ctx context.Context, w *world, voters bool) (*localgce.Project, round, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundLimit, fmt.Errorf("not ready within %s", roundLimit))
	defer cancel()
	project, err := w.start(ctx)
	if err != nil {
		return nil, round{}, err
	}
	r, err := w.await(ctx, started(project), voters)
	if err != nil {
		project.Close(context.WithoutCancel(ctx))
		return nil, r, fmt.Errorf("%w; the logs are in %s", err, w.dir)
	}
	return project, r, nil
}

// started are the VMs once each init has said that its agent starts.
func started(project *localgce.Project) []localgce.VMStatus {
	for {
		vms := project.Status().VMs
		if !slices.ContainsFunc(vms, func(vm localgce.VMStatus) bool { return vm.Agent.State == "" }) {
			return vms
		}
		time.Sleep(time.Millisecond)
	}
}

// await waits until every apiserver is ready and, if asked to, until all members are voters.
func (w *world) await(ctx context.Context, vms []localgce.VMStatus, voters bool) (round, error) {
	var r round
	begin := time.Now()
	for _, vm := range vms {
		if vm.Agent.State != "starting" {
			return r, fmt.Errorf("the agent of %s is %s already: its start was missed", vm.Name, vm.Agent.State)
		}
		if vm.Agent.Since.Before(begin) {
			begin = vm.Agent.Since
		}
	}
	at := make([]time.Time, len(vms))
	g, gctx := errgroup.WithContext(ctx)
	for i, vm := range vms {
		g.Go(func() (err error) {
			at[i], err = awaitReady(gctx, vm.Address)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return r, err
	}
	first, last := 0, 0
	for i := range at {
		if at[i].Before(at[first]) {
			first = i
		}
		if at[i].After(at[last]) {
			last = i
		}
	}
	r.First, r.Last = seconds(at[first].Sub(begin).Seconds()), seconds(at[last].Sub(begin).Seconds())
	r.Took = r.Last
	if voters {
		end, err := awaitVoters(ctx, vms[0].InitPID, len(vms), at[last])
		if err != nil {
			return r, err
		}
		r.Took = seconds(end.Sub(begin).Seconds())
	}
	log, err := os.ReadFile(vms[last].Log)
	r.Phases = r.withRest(phasesIn(string(log)))
	return r, err
}

// awaitReady asks an apiserver's /readyz until it says ok.
func awaitReady(ctx context.Context, address string) (time.Time, error) {
	client := &http.Client{Timeout: 2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	for {
		if get(ctx, client, "https://"+address+"/readyz") == "ok" {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for the apiserver of %s: %w", address, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// get is the body of a 200, and empty for anything else.
func get(ctx context.Context, client *http.Client, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	resp, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// awaitVoters asks the agent of a VM, over its status socket, until its member's list holds n started voters. It
// returns since, if they were there at the first poll.
func awaitVoters(ctx context.Context, initPID, n int, since time.Time) (time.Time, error) {
	for end := since; ; end = time.Now() {
		var status struct {
			Etcd struct {
				Members []struct {
					Role    string
					Started bool
				}
			}
		}
		voters := 0
		err := askStatus(ctx, initPID, &status)
		for _, m := range status.Etcd.Members {
			if m.Role == "voter" && m.Started {
				voters++
			}
		}
		if voters == n {
			return end, nil
		}
		select {
		case <-ctx.Done():
			return end, fmt.Errorf("wait for %d voters, found %d: %w", n, voters, errors.Join(err, context.Cause(ctx)))
		case <-time.After(readyPeriod):
		}
	}
}

// askStatus asks the agent of a VM for its status, over its socket.
func askStatus(ctx context.Context, initPID int, into any) error {
	socket := fmt.Sprintf("/proc/%d/root%s/agent.sock", initPID, runDir)
	return local.Call(ctx, socket, http.MethodGet, "/status", into)
}
