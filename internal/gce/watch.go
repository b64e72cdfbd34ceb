package gce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/backoff"
)

const (
	attributesPath  = "instance/attributes/"
	maintenancePath = "instance/maintenance-event"

	// holdFor is how long the server is asked to hold a question that has no news.
	holdFor = 60 * time.Second
	// holdGrace is how much later than that an answer may come before the connection is taken for dead.
	holdGrace = 10 * time.Second
	// maxWatchPause is how long a watch rests between tries when the server is away.
	maxWatchPause = 10 * time.Second
)

// Watch calls changed with an instance attribute's value at once, and again on each change, until ctx ends; it returns
// ctx's error. present is false while there is no such attribute. A server that is away is waited for, and what changed
// in the meantime is seen when it is back; of several quick changes only the last may be seen. changed is never called
// concurrently.
//
// All attributes are watched and one is picked out, because a question about an attribute that does not exist is
// answered at once and cannot wait for it to appear.
func (m *Metadata) Watch(ctx context.Context, key string, changed func(value string, present bool)) error {
	if !attributeKey().MatchString(key) {
		return fmt.Errorf("watch instance attribute %q: allowed: 1 to 128 of a-z, A-Z, 0-9, - and _", key)
	}
	first, last, was := true, "", false
	return m.watch(ctx, attributesPath, url.Values{"recursive": {"true"}, "alt": {"json"}}, func(body string) error {
		var attributes map[string]string
		if err := json.Unmarshal([]byte(body), &attributes); err != nil {
			return fmt.Errorf("found attributes that are not a mapping of texts: %w", err)
		}
		value, present := attributes[key]
		if first || value != last || present != was {
			changed(value, present)
		}
		first, last, was = false, value, present
		return nil
	})
}

// WatchMaintenanceEvent calls changed with what MaintenanceEvent says, as Watch does for an attribute.
func (m *Metadata) WatchMaintenanceEvent(ctx context.Context, changed func(event string)) error {
	last := ""
	return m.watch(ctx, maintenancePath, url.Values{}, func(event string) error {
		if event != last {
			changed(event)
		}
		last = event
		return nil
	})
}

// watch hands every answer to seen, which may refuse it. The official client's Subscribe is not used: it ends where the
// value is absent, waits without a limit for a server that died, and sleeps five seconds deaf to ctx.
func (m *Metadata) watch(ctx context.Context, path string, query url.Values, seen func(body string) error) error {
	const lost, refused = "metadata server lost, watching on",
		"the metadata server's answer is of no use, watching on as before it"
	etag, trouble := "", ""
	pause := backoff.Backoff{First: firstPause, Most: maxWatchPause}
	for ctx.Err() == nil {
		asked := time.Now()
		body, next, err := m.hold(ctx, path, query, etag)
		if err == nil && next == etag && time.Since(asked) < holdFor/2 {
			err = errors.New("found the same answer at once, though the server was asked to wait for another")
		}
		found := lost
		if err == nil {
			found, err = refused, seen(body)
		}
		if err == nil {
			switch trouble {
			case lost:
				m.log.Info("metadata server is back", "path", path)
			case refused:
				m.log.Info("the metadata server's answer can be used again", "path", path)
			}
			etag, trouble = next, ""
			pause.Reset()
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if trouble != found {
			m.log.Warn(found, "server", m.host, "path", path, "error", err)
		}
		trouble = found
		if backoff.Sleep(ctx, pause.Next()) != nil {
			break
		}
	}
	return ctx.Err()
}

// hold asks for a value that differs from the one with this ETag; without one it asks for the value as it is.
func (m *Metadata) hold(ctx context.Context, path string, query url.Values, etag string) (body, next string,
	err error) {
	ask := url.Values{}
	for k, v := range query {
		ask[k] = v
	}
	limit := m.wait
	if etag != "" {
		ask.Set("wait_for_change", "true")
		ask.Set("last_etag", etag)
		ask.Set("timeout_sec", strconv.Itoa(int(holdFor.Seconds())))
		limit = holdFor + holdGrace
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+m.host+"/computeMetadata/v1/"+path+"?"+ask.Encode(), nil)
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	res, err := m.http.Do(req)
	if err != nil {
		return "", "", judge(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return "", "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("found status %d where there is always something", res.StatusCode)
	}
	if next = res.Header.Get("ETag"); next == "" {
		return "", "", errors.New("found an answer without ETag, which cannot be watched")
	}
	return string(data), next, nil
}
