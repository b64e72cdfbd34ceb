package test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// requestTimeout is a client's patience; what it does not get in this time it asks for again, on a new connection.
	requestTimeout = time.Second
	// stallLimit is what a single failure may cost a client at most, on the slowest machine that runs the tests.
	stallLimit = 20 * time.Second
)

// load is a writer and a reader at the cluster's endpoint. Each speaks HTTP/1.1 with short time-outs, so that a
// connection to a dead VM is given up and not waited for.
type load struct {
	base   string
	client *http.Client
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string // names of ConfigMaps whose creation was answered 201
	lastError    error
	writes       pulse
	reads        pulse
}

// pulse is when something succeeded last, and the longest time in which nothing did.
type pulse struct {
	last    time.Time
	longest time.Duration
	count   int
}

func (p *pulse) beat(now time.Time) {
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
	p.count++
}

// clientFor speaks to an address as the administrator.
func (c *cluster) clientFor(t *testing.T) *http.Client {
	t.Helper()
	conf, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	c.must(t, err)
	tlsConf, err := rest.TLSConfigFor(conf)
	c.must(t, err)
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		TLSClientConfig: tlsConf, TLSHandshakeTimeout: requestTimeout,
		DialContext:  (&net.Dialer{Timeout: requestTimeout}).DialContext,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}}
}

// startLoad begins to write and read through the endpoint.
func (c *cluster) startLoad(t *testing.T) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	now := time.Now()
	l := &load{base: "https://" + c.endpoint() + "/api/v1/namespaces/default/configmaps", client: c.clientFor(t),
		stop:   stop,
		writes: pulse{last: now}, reads: pulse{last: now}}
	t.Cleanup(func() { stop(); l.wait.Wait() }) // also where the test ends before end is called
	prefix := fmt.Sprintf("load-%d", now.UnixNano())
	l.wait.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			l.write(ctx, fmt.Sprintf("%s-%d", prefix, n))
			time.Sleep(20 * time.Millisecond)
		}
	})
	l.wait.Go(func() {
		for ctx.Err() == nil {
			l.read(ctx)
			time.Sleep(20 * time.Millisecond)
		}
	})
	return l
}

// write creates an object under a new name: one that got no answer may or may not exist, and does not count.
func (l *load) write(ctx context.Context, name string) {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"of":%q}}`, name, name)
	_, err := l.call(ctx, http.MethodPost, l.base, body, http.StatusCreated)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.lastError = err
		return
	}
	l.acknowledged = append(l.acknowledged, name)
	l.writes.beat(time.Now())
}

// read gets the newest object that was acknowledged, as a quorum read.
func (l *load) read(ctx context.Context) {
	l.mu.Lock()
	n := len(l.acknowledged)
	name := ""
	if n > 0 {
		name = l.acknowledged[n-1]
	}
	l.mu.Unlock()
	if n == 0 {
		return
	}
	_, err := l.call(ctx, http.MethodGet, l.base+"/"+name, "", http.StatusOK)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.lastError = err
		return
	}
	l.reads.beat(time.Now())
}

func (l *load) call(ctx context.Context, method, url, body string, want int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %.300s", method, url, resp.Status, answer)
	}
	return answer, err
}

// goesOn waits until both succeed again and have done so for a while after now.
func (l *load) goesOn(t *testing.T, what string) {
	t.Helper()
	begin := time.Now()
	await(t, what, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for kind, p := range map[string]pulse{"write": l.writes, "read": l.reads} {
			if time.Since(p.last) > requestTimeout || p.last.Sub(begin) < 6*time.Second {
				return fmt.Errorf("the last %s succeeded %s ago: %w", kind, time.Since(p.last), l.lastError)
			}
		}
		return nil
	})
}

// goOn says what is missing to a write and a read that succeeded after a moment.
func (l *load) goOn(since time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, p := range map[string]pulse{"write": l.writes, "read": l.reads} {
		if p.last.Before(since) {
			return fmt.Errorf("the last %s succeeded %s ago: %w", kind, time.Since(p.last), l.lastError)
		}
	}
	return nil
}

// stalls returns the longest times without a write and without a read since it was asked last.
func (l *load) stalls() (writes, reads time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	writes, reads = max(l.writes.longest, now.Sub(l.writes.last)), max(l.reads.longest, now.Sub(l.reads.last))
	l.writes.longest, l.reads.longest = 0, 0
	return writes.Round(time.Millisecond), reads.Round(time.Millisecond)
}

// wantStalls reports the stalls since it was last called, and fails above the limit.
func (l *load) wantStalls(t *testing.T, what string) {
	t.Helper()
	writes, reads := l.stalls()
	t.Logf("%s: writes stalled %s, reads %s", what, writes, reads)
	if max(writes, reads) > stallLimit {
		t.Errorf("%s: no write for %s, no read for %s; the limit is %s", what, writes, reads, stallLimit)
	}
}

// end stops writer and reader, and wants every acknowledged object to be there, whichever replica is asked.
func (l *load) end(t *testing.T, c *cluster) {
	t.Helper()
	l.stop()
	l.wait.Wait()
	l.client.CloseIdleConnections()
	c.wantAll(t, l.acknowledged)
	t.Logf("%d writes were acknowledged and are there; %d reads", l.writes.count, l.reads.count)
}

// wantAll lists the ConfigMaps through each replica.
func (c *cluster) wantAll(t *testing.T, names []string) {
	t.Helper()
	client := c.clientFor(t)
	client.Timeout = 30 * time.Second
	defer client.CloseIdleConnections()
	for _, vm := range c.vms {
		l := &load{client: client}
		answer, err := l.call(t.Context(), http.MethodGet,
			"https://"+c.vm(vm).Address+"/api/v1/namespaces/default/configmaps", "", http.StatusOK)
		c.must(t, err)
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		c.must(t, json.Unmarshal(answer, &list))
		there := map[string]bool{}
		for _, item := range list.Items {
			there[item.Metadata.Name] = true
		}
		lost := 0
		for _, name := range names {
			if !there[name] {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d acknowledged writes are not there through %s", lost, len(names), vm)
		}
	}
}
