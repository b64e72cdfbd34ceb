// Package fault makes a service of Google's fail, or lie, before it answers: for one caller, or for everybody. What a
// lie is, is for the service itself: Of tells it.
package fault

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
)

// Service is one of Google's that can fail.
type Service string

// The services.
const (
	Metadata Service = "metadata"
	Compute  Service = "compute"
	Storage  Service = "storage"
)

// Fault is a way for a service to fail.
type Fault struct {
	// Who meets it: a VM's name, or empty for everybody who has no fault of their own.
	Who string
	// Kind is slow (nothing but Delay), silent (no answer), away (the connection breaks instead), html (200 and a page
	// of HTML, as a captive portal answers), forbidden (403), notfound (404), unavailable (503) or readonly (403 to all
	// that writes). Storage and the Compute API also lie: empty (lists have no items, while each is still found by its
	// name); and the latter: stale (answers as of the moment at which the fault was set), and of VMs, whatever they
	// really are, missing (they and their disks are in no answer), unlisted (they are in no list, as without their
	// labels, while each is still found by its name), absent (they are in no answer, while their data disks are),
	// terminated, stopped or another state of an instance that is not RUNNING (they are called so, and their disks are
	// attached to them), multiwriter (their data disks may be attached to several), shared (their data disks are
	// attached to the VM stranger, too), regional (their data disks are the region's, and in no zone); unreachable (a
	// Zone does not answer: a list that does not ask for partial success fails, one that does says so); and ratelimited
	// (403 until the minute ends, to all above the Quota). To what changes the project the Compute API also does this:
	// lost (the operation begins and the connection breaks), late (the operation begins, and is carried out after
	// Delay), failed (the operation begins, and after Delay ends with the error Code and without an effect). Empty: the
	// service is well.
	Kind string
	// Delay comes before the answer of every kind, and of late and failed after it.
	Delay time.Duration
	// Code is such as QUOTA_EXCEEDED, for failed.
	Code string
	// Call limits the fault to some requests: a method and the path's last parts, as path.Match knows patterns, such as
	// "POST disks", "DELETE instances/*" or "GET operations/*".
	Call string
	// Skip is how many of these requests pass before, and Times how many are met; 0: all. Of ratelimited, Quota is how
	// many pass in each minute of the clock.
	Skip, Times, Quota int
	// For is how long the fault lasts, from when it is set; 0: until another takes its place.
	For time.Duration
	// VMs are those that a lie is about.
	VMs []string
	// Zone is the one that is unreachable; it needs no VM, and may be of another region.
	Zone string
	// LastStop is when those that are terminated or stopped were stopped: the moment at which the fault was set where
	// it is zero.
	LastStop time.Time
	// Detached: the disks of those that are absent are attached to nobody.
	Detached bool

	// Then is what the service keeps of the moment at which the fault was set; the service alone reads it.
	Then any
}

var (
	faultKinds = []string{"slow", "silent", "away", "html", "forbidden", "notfound", "unavailable", "readonly"}
	lies       = map[Service][]string{Metadata: nil, Compute: append([]string{"empty", "stale", "unreachable",
		"ratelimited"}, slices.Concat(vmLies, operations)...),
		Storage: {"empty"}}
	operations = []string{"lost", "late", "failed"}
	vmLies     = slices.Concat([]string{"missing", "unlisted", "absent", "multiwriter", "shared", "regional"}, states)
	// states are those of an instance in the Compute API that is not RUNNING, in small letters.
	states = []string{"provisioning", "staging", "stopping", "pending_stop", "stopped", "terminated", "suspending",
		"suspended", "repairing", "deprovisioning"}
)

// Kinds are the kinds of every service, and liesOf those that a service has besides.
func Kinds() []string { return slices.Clone(faultKinds) }

// Lies are those that a service has besides.
func Lies(s Service) []string { return slices.Clone(lies[s]) }

// AboutVMs says whether a fault is a lie about VMs.
func (f Fault) AboutVMs() bool { return slices.Contains(vmLies, f.Kind) }

// AboutOperations says whether a fault is one of the operations that a request begins.
func (f Fault) AboutOperations() bool { return slices.Contains(operations, f.Kind) }

// validate says what a fault lacks, or has too much.
func (f Fault) validate(s Service) error {
	own, ok := lies[s]
	known := slices.Concat(faultKinds, own)
	stops := f.Kind == "terminated" || f.Kind == "stopped"
	switch {
	case !ok:
		return fmt.Errorf("service %q: %s, %s and %s are known", s, Metadata, Compute, Storage)
	case f.Kind != "" && !slices.Contains(known, f.Kind):
		return fmt.Errorf("%s fault %q: %s or none are known", s, f.Kind, strings.Join(known, ", "))
	case f.Delay < 0 || (f.Kind == "slow" || f.Kind == "late") && f.Delay == 0:
		return fmt.Errorf("%s fault %q: a delay of %s makes nothing slow", s, f.Kind, f.Delay)
	case f.AboutVMs() != (len(f.VMs) > 0):
		return fmt.Errorf("%s fault %q with %d vms: %s need some, and nothing else does", s, f.Kind, len(f.VMs),
			strings.Join(vmLies, ", "))
	case (f.Kind == "unreachable") != (f.Zone != ""):
		return fmt.Errorf("%s fault %q of zone %q: unreachable needs one, and nothing else does", s, f.Kind, f.Zone)
	case f.Detached && f.Kind != "absent" || !f.LastStop.IsZero() && !stops:
		return fmt.Errorf("%s fault %q: detached is for absent, a last stop for terminated and stopped", s, f.Kind)
	case (f.Kind == "failed") != (f.Code != ""):
		return fmt.Errorf("%s fault %q with code %q: failed needs one, such as QUOTA_EXCEEDED, and nothing else does", s,
			f.Kind, f.Code)
	case f.Skip < 0 || f.Times < 0 || f.Quota < 0 || f.For < 0:
		return fmt.Errorf("%s fault %q: skip %d, times %d, quota %d and for %s must not be negative", s, f.Kind, f.Skip,
			f.Times, f.Quota, f.For)
	case f.Quota > 0 && f.Kind != "ratelimited":
		return fmt.Errorf("%s fault %q: a quota is for ratelimited", s, f.Kind)
	case f.For > 0 && f.Kind == "":
		return fmt.Errorf("%s: a service that is well is so for longer than %s", s, f.For)
	case f.Call != "" && !isCall(f.Call):
		return fmt.Errorf("%s fault %q: call %q: a method and the last parts of a path are needed, such as %q", s, f.Kind,
			f.Call, "POST zones/*/disks")
	}
	return nil
}

// isCall says whether a pattern of requests can be understood.
func isCall(pattern string) bool {
	method, parts, ok := strings.Cut(pattern, " ")
	_, err := path.Match(parts, "")
	return ok && err == nil && parts != "" && !strings.ContainsAny(parts, " ") && method == strings.ToUpper(method)
}

// concerns says whether the fault is about a request.
func (f Fault) concerns(r *http.Request) bool {
	if f.Call == "" {
		return true
	}
	method, pattern, _ := strings.Cut(f.Call, " ")
	parts, n := strings.Split(strings.Trim(r.URL.Path, "/"), "/"), strings.Count(pattern, "/")+1
	if method != r.Method || len(parts) < n {
		return false
	}
	ok, err := path.Match(pattern, strings.Join(parts[len(parts)-n:], "/"))
	return ok && err == nil
}

// armed is a fault that is set, with how many requests it has been about and how many it has met.
type armed struct {
	Fault
	seen, met int
	since     time.Time
	// minute is the one in which passed requests were within the quota.
	minute time.Time
	passed int
}

// over says whether the fault has ended.
func (a *armed) over(now time.Time) bool { return a.For > 0 && now.Sub(a.since) >= a.For }

// meets says whether the fault meets one more request.
func (a *armed) meets(r *http.Request, now time.Time) bool {
	if !a.concerns(r) || a.withinQuota(now) {
		return false
	}
	a.seen++
	met := a.seen > a.Skip && (a.Times == 0 || a.seen <= a.Skip+a.Times)
	if met {
		a.met++
	}
	return met
}

// withinQuota counts one more request, and says whether it is one of those that this minute has for all.
func (a *armed) withinQuota(now time.Time) bool {
	if minute := now.Truncate(time.Minute); minute != a.minute {
		a.minute, a.passed = minute, 0
	}
	a.passed++
	return a.passed <= a.Quota
}

// Set are those that are set, by service and by who meets them. Safe for concurrent use.
type Set struct {
	mu  sync.Mutex
	set map[Service]map[string]*armed
}

// Put sets a fault, or heals the one that somebody has; for nobody in particular it heals the service for all.
func (s *Set) Put(service Service, f Fault) error {
	if err := f.validate(service); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[Service]map[string]*armed{}
	}
	switch {
	case f.Kind == "" && f.Who == "":
		delete(s.set, service)
	case f.Kind == "":
		delete(s.set[service], f.Who)
	default:
		if s.set[service] == nil {
			s.set[service] = map[string]*armed{}
		}
		s.set[service][f.Who] = &armed{Fault: f, since: time.Now()}
	}
	return nil
}

// Met is how many requests have met the faults of a service that are set.
func (s *Set) Met(service Service) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.set[service] {
		n += a.met
	}
	return n
}

// of is the fault that somebody's request meets.
func (s *Set) of(service Service, who string, r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, w := range []string{who, ""} {
		if a, ok := s.set[service][w]; ok && !a.over(now) {
			if a.meets(r, now) {
				return a.Fault
			}
			break
		}
	}
	return Fault{}
}

// Before puts the faults in front of a service. Its lies it finds with faultOf.
func (s *Set) Before(service Service, who func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.of(service, who(r), r)
		if f.Delay > 0 && !f.AboutOperations() || f.Kind == "silent" {
			f.stall(r)
		}
		if !f.strike(w, r) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), faultKey{}, f)))
		}
	})
}

type faultKey struct{}

// Of is the fault that a request has met on its way here.
func Of(r *http.Request) Fault {
	f, _ := r.Context().Value(faultKey{}).(Fault)
	return f
}

// stall lets the caller wait. Who gives up is noticed only once all that was sent has been read.
func (f Fault) stall(r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing, the service misses
	r.Body = io.NopCloser(bytes.NewReader(body))
	var over <-chan time.Time // never
	if f.Kind != "silent" {
		over = time.After(f.Delay)
	}
	select {
	case <-over:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// strike answers in the service's place, and says whether it did.
func (f Fault) strike(w http.ResponseWriter, r *http.Request) bool {
	switch f.Kind {
	case "away":
		panic(http.ErrAbortHandler) // net/http breaks the connection
	case "html":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html>\n<html><title>Welcome</title><p>Please log in to the network.</html>\n")
	case "forbidden":
		answer.Error(w, http.StatusForbidden, "forbidden", "The caller does not have permission")
	case "readonly":
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return false
		}
		answer.Error(w, http.StatusForbidden, "forbidden", "The caller does not have permission to write")
	case "ratelimited":
		answer.Error(w, http.StatusForbidden, "rateLimitExceeded", "Quota exceeded for quota metric 'Queries' and limit "+
			"'Queries per minute' of service 'compute.googleapis.com'")
	case "notfound":
		answer.Error(w, http.StatusNotFound, "notFound", "The resource was not found")
	case "unavailable":
		answer.Error(w, http.StatusServiceUnavailable, "backendError", "The service is currently unavailable.")
	default:
		return false
	}
	return true
}
