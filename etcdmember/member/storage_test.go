package member

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A status must not wait for a storage that commits to a slow disk, and a member must not be ended for it.
func TestASlowDiskIsNoReasonToEndAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revision, questions atomic.Int64
		commit := make(chan struct{}) // closed: no commit goes on
		close(commit)
		w := &storageWatch{rev: func() int64 { questions.Add(1); <-commit; return revision.Load() }}
		want := func(revision int64, open time.Duration) {
			t.Helper()
			begin := time.Now()
			if r, o := w.ask(); r != revision || o != open {
				t.Errorf("revision %d, open for %s; want %d, %s", r, o, revision, open)
			}
			if took := time.Since(begin); took > storageAnswers {
				t.Errorf("it took %s", took)
			}
		}
		alive := func() (int, string) {
			rec := httptest.NewRecorder()
			w.serveAlive(rec, nil)
			return rec.Code, rec.Body.String()
		}
		revision.Store(7)
		want(7, 0)
		commit = make(chan struct{})
		want(7, storageAnswers)
		time.Sleep(time.Minute)
		want(7, time.Minute+2*storageAnswers)
		if n := questions.Load(); n != 2 {
			t.Errorf("%d questions, want one more while it is open", n)
		}
		if code, text := alive(); code != http.StatusOK {
			t.Errorf("not alive after a minute: %d %s", code, text)
		}
		time.Sleep(storagePatience)
		if code, text := alive(); code != http.StatusServiceUnavailable ||
			!strings.Contains(text, "the storage has not answered for 3m0s") {
			t.Errorf("alive although it is stuck: %d %s", code, text)
		}
		revision.Store(9)
		close(commit)
		synctest.Wait()
		want(9, 0)
		if code, text := alive(); code != http.StatusOK {
			t.Errorf("not alive although it answers: %d %s", code, text)
		}
	})
}
