package agent

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/agent/telling"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/supervisor"
)

func TestTheWaitForRoomStandsFirst(t *testing.T) {
	waits := []replica.Wait{{Name: "snapshot-overdue"}, {Name: "paused"}, {Name: table.WaitNoRoom},
		{Name: "corrupt"}}
	roomFirst(waits)
	got := ""
	for _, b := range waits {
		got += b.Name + " "
	}
	if got != "no-room snapshot-overdue paused corrupt " {
		t.Error(got)
	}
}

// TestWhatAReplicaTells compares all that an agent answers about one state with the golden files: a leader among three
// members, by whose disk a half-made directory lay, and whose quorum its agent does not reach.
func TestWhatAReplicaTells(t *testing.T) {
	a, dir := tellsAll(t)
	for path, golden := range map[string]string{
		"/status": "tells-status.json", "/metrics": "tells-metrics.txt",
	} {
		w := httptest.NewRecorder()
		a.answers().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		text := strings.ReplaceAll(w.Body.String(), dir, "DIR")
		for pattern, constant := range map[string]string{
			`\d{4}-\d\d-\d\dT[0-9:.]+Z`: "2026-11-20T12:00:00Z", `("pid":)\d+`: "${1}7", `ready \d+m?s`: "ready 1ms",
			`(?m)^(quorate_\w+_seconds(?:\{.*\})?) .*$`: "$1 1",
			`(outcome="failed"\}) \d+`:                  "$1 1",
			`("outcome":"failed","count":)\d+`:          "${1}1",
			`go="go[^"]+"`:                              `go="go1"`,
			// of the process, which is the test's
			`(?m)^(# (HELP|TYPE) )?(go|process)_.*\n`: "",
		} {
			text = regexp.MustCompile(pattern).ReplaceAllString(text, constant)
		}
		if strings.HasSuffix(golden, ".json") {
			text = indented(t, text)
		}
		compareGolden(t, golden, text)
	}
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var v json.RawMessage = []byte(text)
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(b) + "\n"
}

// goldens are embedded: go test keeps no result of a test that opens a file which is newer, as all are in a new clone.
//
//go:embed testdata
var goldens embed.FS

// compareGolden compares a text with the file in testdata.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := goldens.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("%s: %v: got\n%s\nwant\n%s", file, err, got, want)
	}
}

// tellsAll is an agent of which each part has something to report.
func tellsAll(t *testing.T) (a *Agent, dir string) {
	v := newVM(t)
	a, in := v.identified()
	formed(v)
	v.record.view.Replicas = map[replica.Place][]record.Incarnation{v.self.Place: {{Place: v.self.Place, Number: 1,
		InstanceID: "101", BootID: "boot1", Epoch: 1, Addresses: v.self.Addresses}}}
	v.established(v.self.Place, "archiving")
	if err := os.MkdirAll(filepath.Join(v.data(), "etcd", "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	newMember(t, a, in, threeOf(func(s *table.MemberStatus) {
		s.Leader, s.ClusterID = own, 1
		s.Progress = map[record.MemberID]table.PeerProgress{
			own: {Match: 700}, leading: {Match: 640}, following: {Match: 700}}
	}))
	a.progress.enter(PhaseEtcd)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	claimed := make(chan error, 1)
	go func() { _, err := a.membership.Claim(ctx); claimed <- err }()
	eventually(t, "the half-made directory is archived, and it waits", func() bool {
		e := a.status(t.Context()).Etcd.Explanation
		return e != nil && e.Waits != nil && e.Waits.Name == "step-failed"
	})
	cancel()
	<-claimed
	a.openCertificates(in, a.membership)
	certified, err := a.certify(t.Context(), recorded{identified: in, membership: a.membership, makeBundle: true})
	if err != nil || certified.issued.Bundle == nil {
		t.Fatalf("%v %+v", err, certified.issued.Report)
	}
	a.waits.HoldFor(documentRefused, errBroken, "Correct it.")
	newest, archives := time.Now(), etcdmember.ArchivesHeld{Count: 1, Bytes: 300 << 20, Kept: "it is the last one"}
	saving := snapshotDuty{saving: newest}
	a.snapshots.show(saving.shown(snapshot.Turn{Why: snapshot.WhySchedule, Due: newest, At: newest,
		Newest: record.Taken{Name: "1/5-6", Time: newest}}), nil)
	a.archives.show(archives, nil, "")
	a.cfg.LogLoss = func() status.LogLoss { return status.LogLoss{Lines: 17, Error: "broken pipe"} }
	begin := make(chan error, 1)
	running, stop := context.WithCancel(t.Context())
	go func() { begin <- a.supervisor.Run(running) }()
	t.Cleanup(func() { stop(); <-begin })
	if err := a.supervisor.Start(supervisor.Spec{Name: "talks", Path: "/bin/sleep", Args: []string{"60"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return a.supervisor.Status()[0].State == supervisor.Ready })
	return a, v.dir
}

// hangingStore answers nobody until who asks gives up.
type hangingStore struct{ telling.Store }

func (hangingStore) Of(ctx context.Context, _ replica.Place) (*report.Sighting, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (hangingStore) WriteBatch(ctx context.Context, _ report.Batch) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAStoreThatHangsHoldsNoStatusUp(t *testing.T) {
	a, _ := newVM(t).identified()
	a.reporter.Open(hangingStore{})
	defer a.reporter.Keep()()
	time.Sleep(2 * time.Second)
	begin := time.Now()
	a.status(t.Context())
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("a status took %s", took)
	}
}
