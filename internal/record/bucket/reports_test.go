package bucket

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/report"
)

// reportsAndRecord opens both in a bucket that is served over HTTP; dir is its folder.
func reportsAndRecord(t *testing.T) (r *Reports, s *Store, dir string) {
	t.Helper()
	folder := t.TempDir()
	url, stop, err := buckets.Serve(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if r, err = OpenReports(url, "c1", nil); err != nil {
		t.Fatal(err)
	}
	return r, openStore(t, url), filepath.Join(folder, instance.BucketName)
}

func TestAReportIsReadBackWithItsAge(t *testing.T) {
	r, _, dir := reportsAndRecord(t)
	if s, err := r.Of(t.Context(), placeA); s != nil || err != nil {
		t.Fatalf("before the first: %+v, %v", s, err)
	}
	for _, ready := range []bool{false, true} { // the second overwrites the first
		if err := r.WriteReport(t.Context(), report.Report{Place: placeA, BootID: "b", Ready: ready}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "c1.reports", report.Key(placeA))
	ago := time.Now().Add(-time.Minute)
	if err := os.Chtimes(path, ago, ago); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"us-central1-a.x.json", "readme.txt", "us-central1-b.master-b.json"} { // of nobody
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), other), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.All(t.Context())
	if err != nil || len(all) != 1 || !all[0].Ready {
		t.Fatalf("%+v, %v", all, err)
	}
	if age := all[0].Age; age < 58*time.Second || age > 70*time.Second {
		t.Errorf("its age is %s, want a minute by the store's clock", age)
	}
	if s, err := r.Of(t.Context(), placeA); err != nil || s == nil || s.Place != placeA {
		t.Errorf("of one: %+v, %v", s, err)
	}
}

func TestEventsAreWrittenOnceAndDeletedAfterAMonth(t *testing.T) {
	r, _, dir := reportsAndRecord(t)
	now := time.Now().UTC()
	for _, ago := range []time.Duration{31 * 24 * time.Hour, 29 * 24 * time.Hour, time.Hour, time.Minute} {
		b := report.Batch{Place: placeA, BootID: "boot", Number: 1, At: now.Add(-ago),
			Events: []report.Event{{At: now.Add(-ago), Kind: report.Ready, Text: ago.String()}}}
		if err := r.WriteBatch(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "c1.reports", b.Key())
		if err := os.Chtimes(path, b.At, b.At); err != nil {
			t.Fatal(err)
		}
		b.Events = nil // an earlier try has written it: this one changes nothing
		if err := r.WriteBatch(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	// One whose name is old and whose object is young was written by a clock that was wrong.
	wrong := report.Batch{Place: placeA, BootID: "boot", Number: 2, At: now.AddDate(-1, 0, 0)}
	if err := r.WriteBatch(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	texts := func(since time.Duration) (out []string) {
		all, err := r.Events(t.Context(), now.Add(-since))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range all {
			for _, e := range b.Events {
				out = append(out, e.Text)
			}
		}
		return out
	}
	if got, want := texts(2*time.Hour), []string{"1h0m0s", "1m0s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n, err := r.DropOldEvents(t.Context()); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if got := texts(40 * 24 * time.Hour); len(got) != 3 {
		t.Errorf("left: %q", got)
	}
	if n, err := r.DropOldEvents(t.Context()); n != 0 || err != nil {
		t.Errorf("again: deleted %d, %v", n, err)
	}
}

// A cluster that flaps writes thousands of batches a day: deletion must keep up with it.
func TestHundredsOfOldBatchesAreDeletedAtOnce(t *testing.T) {
	r, _, dir := reportsAndRecord(t)
	old := time.Now().UTC().Add(-31 * 24 * time.Hour)
	for n := range 300 {
		path := filepath.Join(dir, "c1.reports", report.Batch{Place: placeA, Number: uint64(n), At: old}.Key())
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := r.DropOldEvents(t.Context()); n != 300 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
}

// The right to delete events must not reach anything else, whatever the code above asks for.
func TestReportsDeleteNothingButEvents(t *testing.T) {
	r, s, _ := reportsAndRecord(t)
	if _, _, err := s.CreateInception(t.Context(), record.Inception{UID: "u", Name: "c1"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "../c1/inception.json", "events/../../c1/inception.json", report.Key(placeA),
		"events/", "inception.json"} {
		if err := r.gcs.deleteEvents(t.Context(), key); err == nil || !strings.Contains(err.Error(), "only events") {
			t.Errorf("deletes %q: %v", key, err)
		}
	}
	if v, err := s.View(t.Context()); err != nil || v.Inception == nil {
		t.Errorf("%+v, %v", v.Inception, err)
	}
}

// A cluster's reports are in no other cluster's record, whatever its name is.
func TestReportsLieInNoRecord(t *testing.T) {
	r, s, _ := reportsAndRecord(t)
	if r.String() != "gs://record/c1.reports/" || s.String() != "gs://record/c1/" {
		t.Fatalf("%s, %s", r, s)
	}
	if err := r.WriteReport(t.Context(), report.Report{Place: placeA}); err != nil {
		t.Fatal(err)
	}
	if entries, err := s.list(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("the record lists %+v, %v", entries, err)
	}
	if findings := s.Check(t.Context(), ""); slices.ContainsFunc(findings,
		func(f record.Finding) bool { return f.Subject == "extra" }) {
		t.Errorf("%+v", findings)
	}
}

// Whatever the agents report, a boot reads the record: events and reports without a pause, up to a hundred of each a
// second, leave each View stable.
func TestEventsWithoutAPauseLeaveAViewStable(t *testing.T) {
	r, s, _ := reportsAndRecord(t)
	if _, _, err := s.CreateInception(t.Context(), record.Inception{UID: "u", Name: "c1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var wrote int
	writing.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ctx.Err() == nil; n++ {
			b := report.Batch{Place: placeA, BootID: "boot", Number: n, At: time.Now()}
			if r.WriteBatch(ctx, b) == nil && r.WriteReport(ctx, report.Report{Place: placeA}) == nil {
				wrote++
			}
			<-tick.C
		}
	})
	var slowest time.Duration
	for begin := time.Now(); time.Since(begin) < 3*time.Second; {
		at := time.Now()
		v, err := s.View(t.Context())
		if err != nil || v.Inception == nil {
			t.Fatalf("%+v, %v", v.Inception, err)
		}
		slowest = max(slowest, time.Since(at))
		if keys := fmt.Sprint(s.seen); strings.Contains(keys, "events") {
			t.Fatalf("the record's listing has events: %s", keys)
		}
	}
	cancel()
	writing.Wait()
	t.Logf("%d batches and reports were written; the slowest View took %s", wrote, slowest)
	if wrote < 30 {
		t.Errorf("only %d batches were written: that is no load", wrote)
	}
}
