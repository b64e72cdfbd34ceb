package test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// askers is how many clients ask the endpoint, half of them on one connection each, half on a new one each time;
	// askedEvery is the time between two requests of one of them: 200 a second in all.
	askers, askedEvery = 20, 100 * time.Millisecond
	// askedFor is how long a client waits, as client-go does for a request with a usual time-out.
	askedFor = 30 * time.Second
)

// asking is the load of many clients at the endpoint. They do as client-go does: a request that is refused with a time
// at which to come again is made again then. Everything else that is no answer is a failed request.
type asking struct {
	url  string
	stop context.CancelFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	begun   time.Time
	all     pulse
	again   int            // requests that were told to come again
	slowest time.Duration  // of those that were answered
	failed  map[string]int // by what was said
}

// startAsking begins to ask for a path of the endpoint.
func (c *cluster) startAsking(t *testing.T, path string, conf *tls.Config) *asking {
	ctx, stop := context.WithCancel(context.Background())
	now := time.Now()
	a := &asking{url: "https://" + c.endpoint() + path, stop: stop, begun: now, all: pulse{last: now},
		failed: map[string]int{}}
	t.Cleanup(a.end)
	for n := range askers {
		transport := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true, DisableKeepAlives: n%2 == 0,
			DialContext: (&net.Dialer{Timeout: askedFor}).DialContext}
		a.wait.Go(func() {
			defer transport.CloseIdleConnections()
			a.run(ctx, &http.Client{Transport: transport, Timeout: askedFor})
		})
	}
	return a
}

func (a *asking) run(ctx context.Context, client *http.Client) {
	tick := time.NewTicker(askedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := time.Now()
		again, err := a.ask(client)
		now := time.Now()
		a.mu.Lock()
		a.again += again
		if err != nil {
			a.failed[err.Error()]++
		} else {
			a.all.beat(now)
			a.slowest = max(a.slowest, now.Sub(begun))
		}
		a.mu.Unlock()
	}
}

// ask makes one request until it is answered, and says how often it was told to come again.
func (a *asking) ask(client *http.Client) (again int, err error) {
	for {
		resp, err := client.Get(a.url)
		if err != nil {
			return again, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		pause, wait := strconv.Atoi(resp.Header.Get("Retry-After"))
		switch {
		case err != nil:
			return again, err
		case resp.StatusCode == http.StatusOK:
			return again, nil
		case wait != nil || again == 10:
			return again, fmt.Errorf("GET %s: %s", a.url, resp.Status)
		}
		again++
		time.Sleep(time.Duration(pause) * time.Second)
	}
}

// end stops the clients and waits for them.
func (a *asking) end() {
	a.stop()
	a.wait.Wait()
}

// wantNoneFailed ends the clients, says what they have met, and wants each request to have been answered.
func (a *asking) wantNoneFailed(t *testing.T, what string) {
	t.Helper()
	a.told(t, what)
	for _, text := range slices.Sorted(maps.Keys(a.failed)) {
		t.Errorf("%d requests failed: %s", a.failed[text], text)
	}
}

// wantServedWithin ends the clients, says what they have met, and wants somebody to have been answered in each time of
// that length.
func (a *asking) wantServedWithin(t *testing.T, what string, limit time.Duration) {
	t.Helper()
	if stall := a.told(t, what); stall > limit {
		t.Errorf("nobody was served for %s; at most %s are right", stall, limit)
	}
	for _, text := range slices.Sorted(maps.Keys(a.failed)) {
		t.Logf("%d requests failed: %s", a.failed[text], text)
	}
}

// answeredSince says what is missing to an answer after a moment.
func (a *asking) answeredSince(moment time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all.last.After(moment) {
		return nil
	}
	return fmt.Errorf("the last answer was %s ago", time.Since(a.all.last).Round(time.Millisecond))
}

// told ends the clients, says what they have met, and returns the longest time without an answer.
func (a *asking) told(t *testing.T, what string) (stall time.Duration) {
	t.Helper()
	a.end()
	took := time.Since(a.begun)
	stall = max(a.all.longest, time.Since(a.all.last))
	t.Logf("%s: %d requests in %s (%.0f a second), %d told to come again; longest time without an answer %s, slowest "+
		"answer %s", what, a.all.count, took.Round(time.Second), float64(a.all.count)/took.Seconds(), a.again,
		stall.Round(time.Millisecond), a.slowest.Round(time.Millisecond))
	return stall
}
