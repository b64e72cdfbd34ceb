package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/durable"
)

// sharedNames are the files that follow from the bundle, in the order in which they must be written.
var sharedNames = []string{"binding", "kubernetes-ca", "front-proxy-ca", "etcd-peer-ca", "etcd-client-ca",
	"service-account.pub",
	"service-account.key", "encryption-config", "kubernetes-ca-signer", "kubernetes-ca-signer-key"}

func leafNames() []string {
	var out []string
	for _, r := range table {
		out = append(out, string(r.leaf))
	}
	return out
}

func kubeconfigNames() []string {
	var out []string
	for _, l := range Kubeconfigs() {
		out = append(out, string(l)+".kubeconfig")
	}
	return out
}

func names(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Name)
	}
	return out
}

func TestEnsureWritesEverythingInOrderAndThenNothing(t *testing.T) {
	r := testRequest(t, testBundle(t))
	first, err := Ensure(r) // with the real disk
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Concat(sharedNames, leafNames(), kubeconfigNames()), names(first.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	before := contents(t, r.Files)
	if len(before) != len(first.Changes) {
		t.Errorf("%d files, %d changes", len(before), len(first.Changes))
	}
	r.Now = t0.Add(time.Hour)
	second, err := Ensure(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Changes)+len(second.Pending) != 0 {
		t.Errorf("again: %+v", second)
	}
	if d := cmp.Diff(before, contents(t, r.Files)); d != "" {
		t.Error("files changed")
	}
	if d := cmp.Diff(first.Expiries, second.Expiries); d != "" || len(first.Expiries) != 20 || first.Generation != 1 {
		t.Errorf("expiries: %s", d)
	}
}

func TestFilesAndFoldersAreTheirOwnersAlone(t *testing.T) {
	r := testRequest(t, testBundle(t))
	if err := os.MkdirAll(r.Files.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(r); err != nil {
		t.Fatal(err)
	}
	public := map[string]bool{r.Files.ServiceAccountPublicKeys(): true, r.Files.CASigner(Kubernetes): true}
	for _, a := range Authorities() {
		public[r.Files.CA(a)] = true
	}
	for path, data := range contents(t, r.Files) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		want := fs.FileMode(0o600)
		if public[path] {
			want = 0o644
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %#o", path, info.Mode().Perm())
		}
		if public[path] && strings.Contains(data, "PRIVATE") {
			t.Errorf("%s holds a key", path)
		}
	}
	for _, dir := range []string{r.Files.Dir, r.Files.Volatile} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}

// Of the four CA keys one may be on disk, and only in the volatile folder.
func TestCAKeysStayOffTheDataDisk(t *testing.T) {
	b := testBundle(t)
	r := testRequest(t, b)
	mustEnsure(t, r)
	for path, data := range contents(t, r.Files) {
		for _, name := range Authorities() {
			key, err := encodeKey(b.authorities[name].key)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Split(string(key), "\n")[2] // the scalar is in the second line of base64
			if strings.Contains(data, body) != (name == Kubernetes && path == r.Files.CASignerKey(Kubernetes)) {
				t.Errorf("%s and the %s CA's key", path, name)
			}
		}
	}
}

func TestAReplicaWhoseLeavesAllExpiredHealsItself(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	r.Now = t0.Add(400 * 24 * time.Hour)
	report := mustEnsure(t, r)
	if d := cmp.Diff(leafNames(), names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, l := range leafNames() {
		if c := loadLeaf(t, r.Files, Leaf(l)); !c.NotAfter.Equal(r.Now.Add(LeafLifetime)) {
			t.Errorf("%s ends %s", l, c.NotAfter)
		}
	}
}

func TestReportSaysWhenToCallAgain(t *testing.T) {
	r := testRequest(t, testBundle(t))
	due := mustEnsure(t, r).NextRenewal
	if due.Before(t0.Add(50*24*time.Hour)) || due.After(t0.Add(60*24*time.Hour)) {
		t.Fatalf("due at %s", due)
	}
	r.Now = due.Add(-time.Second)
	if report := mustEnsure(t, r); len(report.Changes) != 0 {
		t.Errorf("too early: %v", report.Changes)
	}
	r.Now = due
	report := mustEnsure(t, r)
	if d := cmp.Diff(leafNames(), names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !report.NextRenewal.After(due.Add(50 * 24 * time.Hour)) {
		t.Errorf("next %s", report.NextRenewal)
	}
}

func TestANewAddressIssuesTheServersLeavesAgain(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	before := contents(t, r.Files)
	r.Identity.Addresses = []netip.Addr{netip.MustParseAddr("10.128.0.9")}
	report := mustEnsure(t, r)
	want := []string{string(EtcdServer), string(EtcdPeerLeaf), string(APIServer), string(KubeletServing),
		string(ControllerManagerServing), string(SchedulerServing)}
	if d := cmp.Diff(want, names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if err := loadLeaf(t, r.Files, APIServer).VerifyHostname("10.128.0.9"); err != nil {
		t.Error(err)
	}
	if err := loadLeaf(t, r.Files, APIServer).VerifyHostname("10.128.0.2"); err == nil {
		t.Error("the former address is still vouched for")
	}
	if before[r.Files.Leaf(Agent)] != contents(t, r.Files)[r.Files.Leaf(Agent)] {
		t.Error("a client's leaf was issued again")
	}
}

func TestGarbageIsKeptAsideAndReplaced(t *testing.T) {
	for name, data := range map[string]string{"empty": "", "binary": "\x00\x01\x02",
		"half": "-----BEGIN PRIVATE KEY-----\nMIG", "html": "<html>"} {
		t.Run(name, func(t *testing.T) {
			r := testRequest(t, testBundle(t))
			mustEnsure(t, r)
			paths := []string{r.Files.Leaf(APIServer), r.Files.CA(EtcdPeer), r.Files.ServiceAccountKey(),
				r.Files.ServiceAccountPublicKeys(),
				r.Files.CASignerKey(Kubernetes), r.Files.Binding()}
			before := contents(t, r.Files)
			for _, p := range paths {
				if err := os.WriteFile(p, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			mustEnsure(t, r)
			after := contents(t, r.Files)
			for _, p := range paths {
				if after[p+".bad"] != data {
					t.Errorf("%s.bad holds %q", filepath.Base(p), after[p+".bad"])
				}
				if p != r.Files.Leaf(APIServer) && after[p] != before[p] {
					t.Errorf("%s is not what it was", filepath.Base(p))
				}
			}
			loadLeaf(t, r.Files, APIServer)
			if report := mustEnsure(t, r); len(report.Changes) != 0 {
				t.Errorf("again: %v", report.Changes)
			}
		})
	}
}

func TestAKeyThatDoesNotFitItsCertificateIsGarbage(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	a, b := mustIssue(t, r.Bundle, Agent, t0), mustIssue(t, r.Bundle, Agent, t0)
	data, err := pair{key: a.key, cert: b.cert}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Files.Leaf(Agent), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if report := mustEnsure(t, r); len(report.Changes) != 1 || !strings.Contains(report.Changes[0].Reason,
		"does not fit") {
		t.Errorf("changes %v", report.Changes)
	}
}

func TestALinkInALeafsPlaceIsReplacedNotFollowed(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(r.Files.Leaf(Agent), target); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, r.Files.Leaf(Agent)); err != nil {
		t.Fatal(err)
	}
	mustEnsure(t, r)
	if info, err := os.Lstat(r.Files.Leaf(Agent)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v %v", info, err)
	}
	if after, err := os.ReadFile(target); err != nil || string(after) != string(before) {
		t.Error("what the link pointed to was changed")
	}
}

// What was put aside stays, whatever comes after it: it may be all that is left of a key.
func TestWhatIsPutAsideNeverTakesThePlaceOfAnEarlierOne(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	for _, path := range []string{r.Files.Leaf(APIServer), r.Files.CA(EtcdPeer), r.Files.Binding()} {
		spoil := []func() error{
			func() error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
			func() error { return os.WriteFile(path, []byte("first"), 0o600) },
			func() error { return os.WriteFile(path, []byte("second"), 0o600) },
			func() error { return os.Mkdir(path, 0o700) },
			func() error { return syscall.Mkfifo(path, 0o600) }, // reading it would wait for a writer
			func() error { return os.WriteFile(path, []byte("third"), 0o600) },
		}
		for _, do := range spoil {
			if err := errors.Join(os.Remove(path), do()); err != nil {
				t.Fatal(err)
			}
			mustEnsure(t, r)
		}
		for name, want := range map[string]string{".bad/x": "", ".bad.2": "first", ".bad.3": "second", ".bad.4": "",
			".bad.5": "", ".bad.6": "third"} {
			info, err := os.Lstat(path + name)
			if err != nil {
				t.Error(err)
				continue
			}
			if !info.Mode().IsRegular() {
				continue
			}
			if data, err := os.ReadFile(path + name); err != nil || string(data) != want {
				t.Errorf("%s%s holds %q, %v, want %q", filepath.Base(path), name, data, err, want)
			}
		}
		if _, err := os.Lstat(path + ".bad.7"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: more was put aside than was bad: %v", filepath.Base(path), err)
		}
	}
}

// A full disk is known by the error, and nothing is lost by it.
func TestAFullDiskIsInTheErrorAndLosesNothing(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	full := fastDisk()
	full.write = func(files ...durable.File) (int, error) {
		if len(files) == 0 {
			return 0, nil
		}
		return 0, &fs.PathError{Op: "write", Path: files[0].Path, Err: syscall.ENOSPC}
	}
	before := contents(t, r.Files)
	r.Now = t0.Add(70 * 24 * time.Hour)
	for _, path := range []string{"", r.Files.Binding(), r.Files.CA(Kubernetes), r.Files.Kubeconfig(Agent)} {
		if path != "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			delete(before, path)
		}
		if _, err := ensure(r, full); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("without %s: %v", path, err)
		}
		if d := cmp.Diff(before, contents(t, r.Files)); d != "" {
			t.Errorf("without %s: files changed\n%s", path, d)
		}
	}
}

func TestAReadableKeyIsIssuedAgain(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	if err := errors.Join(os.Chmod(r.Files.Leaf(Agent), 0o644), os.Chmod(r.Files.ServiceAccountKey(),
		0o644)); err != nil {
		t.Fatal(err)
	}
	report := mustEnsure(t, r)
	if d := cmp.Diff([]string{"service-account.key", "agent"}, names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if info, err := os.Stat(r.Files.Leaf(Agent)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// Without a bundle a secret that others could read is asked for, as a leaf is, and the replica serves with it.
func TestWithoutABundleAFileWithOtherPermissionsIsPending(t *testing.T) {
	with := testRequest(t, testBundle(t))
	mustEnsure(t, with)
	for _, m := range sharedFiles(with.Files) {
		for _, mode := range []fs.FileMode{0o600, 0o640, 0o604, 0o644, 0o666} {
			if err := os.Chmod(m.path, mode); err != nil {
				t.Fatal(err)
			}
			r := with
			r.Bundle = nil
			var want []Change
			if mode != m.mode {
				want = []Change{{m.name, fmt.Sprintf("mode %#o, not %#o", mode, m.mode)}}
			}
			if report := mustEnsure(t, r); !slices.Equal(report.Pending, want) {
				t.Errorf("%s with mode %#o: pending %v, want %v", m.name, mode, report.Pending, want)
			}
			mustEnsure(t, with)
			if info, err := os.Stat(m.path); err != nil || info.Mode().Perm() != m.mode {
				t.Errorf("%s: %v, %v", m.name, info.Mode(), err)
			}
		}
	}
}

func TestAFolderIsItsOwnersAloneAndNoFile(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		for _, mode := range []fs.FileMode{0o755, 0o750, 0o705, 0o710} {
			r := testRequest(t, testBundle(t))
			dir := map[bool]string{false: r.Files.Dir, true: r.Files.Volatile}[volatile]
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode)); err != nil {
				t.Fatal(err)
			}
			mustEnsure(t, r)
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%#o became %v, %v", mode, info.Mode(), err)
			}
		}
		r := testRequest(t, testBundle(t))
		dir := map[bool]string{false: r.Files.Dir, true: r.Files.Volatile}[volatile]
		if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink(t.TempDir(), dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := ensure(r, fastDisk()); err == nil || !strings.Contains(err.Error(), dir+" is not a folder") {
			t.Errorf("a link: %v", err)
		}
		if err := errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := ensure(r, fastDisk()); err == nil || !strings.Contains(err.Error(), "not a ") {
			t.Errorf("a file: %v", err)
		}
	}
}

func TestBundlesThatMustNotBeTakenTouchNothing(t *testing.T) {
	b := testBundle(t)
	second := rotated(t, b, t0)
	foreign, err := NewBundle("uid-2", t0)
	if err != nil {
		t.Fatal(err)
	}
	twin := testBundle(t)
	twin.Generation = 2
	unrelated := testBundle(t)
	unrelated.Generation = 3
	_, skips := inTwo(t, second, t0)
	skips.encryption[0].name = "g4"
	ended := testBundle(t)
	ended.Generation = 3
	ended.authorities[EtcdPeer] = remade(t, ended.authorities[EtcdPeer], endsAt(t0))
	for _, tc := range []struct {
		name   string
		former []*Bundle
		bundle *Bundle
		uid    string
		want   error
	}{
		{"an older generation", nil, b, "", ErrRollback},
		{"another cluster's bundle", nil, foreign, "", ErrOtherCluster},
		{"another cluster's bundle, by the record", nil, foreign, "uid-1", ErrOtherCluster},
		{"another cluster's folder, by the record", nil, nil, "uid-2", ErrOtherCluster},
		{"other CAs in the same generation", nil, twin, "", ErrOtherAuthorities},
		{"an expired CA", nil, ended, "", ErrAuthorityExpired},
		{"an unrelated newer generation", []*Bundle{second}, unrelated, "", ErrNotContinued},
		{"a newer generation without what it is to continue", nil, unrelated, "", ErrNotContinued},
		{"a newer generation without the one between", []*Bundle{second}, skips, "", ErrNotContinued},
		{"a newer generation beside another former one", []*Bundle{twin}, unrelated, "", ErrOtherAuthorities},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := testRequest(t, second)
			mustEnsure(t, r)
			before := contents(t, r.Files)
			r.Former, r.Bundle, r.ClusterUID, r.Now = tc.former, tc.bundle, tc.uid, t0.Add(time.Hour)
			if _, err := ensure(r, fastDisk()); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if d := cmp.Diff(before, contents(t, r.Files)); d != "" {
				t.Errorf("files changed\n%s", d)
			}
		})
	}
}

func TestABundleOfAnotherClusterIsNotTakenByAnEmptyFolderEither(t *testing.T) {
	r := testRequest(t, testBundle(t))
	r.ClusterUID = "uid-2"
	if _, err := ensure(r, fastDisk()); !errors.Is(err, ErrOtherCluster) {
		t.Error(err)
	}
	if _, err := os.Lstat(r.Files.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}

// The power went when the new trust bundles were written and the leaves were not: they serve until a bundle is at hand.
func TestWithoutABundleLeavesOfAFormerCAServe(t *testing.T) {
	first := testBundle(t)
	knows, works := inTwo(t, first, t0)
	r := testRequest(t, knows)
	mustEnsure(t, r)
	r.Bundle, r.Former = works, []*Bundle{knows}
	cut := cutDisk(len(sharedNames)-1, false) // the signer's key was the same
	if _, err := ensure(r, cut); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	r.Bundle = nil
	report := mustEnsure(t, r)
	var due []string
	for _, c := range report.Pending {
		if c.Reason == "issued by a former CA" {
			due = append(due, c.Name)
		}
	}
	if d := cmp.Diff(leafNames(), due); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if want := len(Authorities()) + len(leafNames()); len(report.Expiries) != want {
		t.Errorf("%d certificates expire, want %d: %v", len(report.Expiries), want, report.Expiries)
	}
}

func TestNextRenewalIsTheFirstOfAllLeaves(t *testing.T) {
	r := testRequest(t, testBundle(t))
	due := mustEnsure(t, r).NextRenewal
	r.Now = t0.Add(10 * 24 * time.Hour)
	for _, l := range []Leaf{table[0].leaf, table[len(table)-1].leaf} { // of the first and the last the end is later
		if err := os.Remove(r.Files.Leaf(l)); err != nil {
			t.Fatal(err)
		}
	}
	if next := mustEnsure(t, r).NextRenewal; !next.Equal(due) {
		t.Errorf("the next renewal is at %s, the first is due at %s", next, due)
	}
	for _, row := range table[1 : len(table)-1] {
		if err := os.Remove(r.Files.Leaf(row.leaf)); err != nil {
			t.Fatal(err)
		}
	}
	if next := mustEnsure(t, r).NextRenewal; !next.Equal(due.Add(10 * 24 * time.Hour)) {
		t.Errorf("the next renewal is at %s, all are due at %s", next, due.Add(10*24*time.Hour))
	}
}

func TestARotationKeepsTheFormerTrustAndIssuesAnew(t *testing.T) {
	b := testBundle(t)
	r := testRequest(t, b)
	mustEnsure(t, r)
	trusts, issues := inTwo(t, b, t0.Add(time.Hour)) // it was off while the others took up the first of them
	r.Bundle, r.Former = issues, []*Bundle{b, trusts}
	r.Now = t0.Add(time.Hour)
	report := mustEnsure(t, r)
	if d := cmp.Diff(slices.Concat(sharedNames, leafNames()), names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if last := report.Changes[len(report.Changes)-1]; last.Reason != "issued by a former CA" {
		t.Errorf("%s: %s", last.Name, last.Reason)
	}
	if report.Generation != 3 {
		t.Errorf("generation %d", report.Generation)
	}
	files := contents(t, r.Files)
	for path, want := range map[string]int{r.Files.CA(EtcdPeer): 2, r.Files.CASigner(Kubernetes): 1,
		r.Files.ServiceAccountPublicKeys(): 2, r.Files.ServiceAccountKey(): 1} {
		if got := strings.Count(files[path], "-----BEGIN"); got != want {
			t.Errorf("%s: %d blocks, want %d", filepath.Base(path), got, want)
		}
	}
	if err := verify(loadLeaf(t, r.Files, EtcdPeerLeaf), r.Now, r.Bundle.authorities[EtcdPeer].cert); err != nil {
		t.Error(err)
	}
}

func TestWithoutABundleWhatIsThereServes(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	before := contents(t, r.Files)
	r.Bundle, r.ClusterUID, r.Now = nil, "uid-1", t0.Add(24*time.Hour)
	report := mustEnsure(t, r)
	if len(report.Changes)+len(report.Pending) != 0 || len(report.Expiries) != 20 || report.Generation != 1 {
		t.Errorf("report %+v", report)
	}
	if err := os.RemoveAll(r.Files.Volatile); err != nil { // as a reboot does
		t.Fatal(err)
	}
	r.Now = t0.Add(70 * 24 * time.Hour) // renewal is due
	r.Cluster.Endpoint.Port = 6443      // and a kubeconfig out of date
	report = mustEnsure(t, r)
	want := append([]string{"kubernetes-ca-signer", "kubernetes-ca-signer-key"}, leafNames()...)
	if d := cmp.Diff(want, names(report.Pending)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if last := report.Pending[len(report.Pending)-1]; report.Pending[0].Reason != "missing" ||
		!strings.HasPrefix(last.Reason, "renewal was due at ") {
		t.Errorf("pending %v", report.Pending)
	}
	if d := cmp.Diff(kubeconfigNames(), names(report.Changes)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if before[r.Files.Leaf(Agent)] != contents(t, r.Files)[r.Files.Leaf(Agent)] {
		t.Error("a leaf changed")
	}
}

func TestWithoutABundleWhatCannotServeIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, r *Request)
		want   []string
	}{
		{"an empty folder", func(t *testing.T, r *Request) { *r = testRequest(t, nil) },
			slices.Concat([]string{"binding: missing", "etcd-peer-ca: missing", "apiserver: its CA"})},
		{"expired leaves", func(_ *testing.T, r *Request) { r.Now = t0.Add(400 * 24 * time.Hour) },
			[]string{"apiserver: expired at 2027-04-15"}},
		{"a damaged leaf", func(t *testing.T, r *Request) {
			if err := os.WriteFile(r.Files.Leaf(Agent), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"agent: not a leaf"}},
		{"a missing service-account key", func(t *testing.T, r *Request) {
			if err := os.Remove(r.Files.ServiceAccountKey()); err != nil {
				t.Fatal(err)
			}
		}, []string{"service-account.key: missing"}},
		{"another replica's disk", func(_ *testing.T, r *Request) { r.Identity.Name = "master-2" },
			[]string{"kubelet: subject"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := testRequest(t, testBundle(t))
			mustEnsure(t, r)
			tc.damage(t, &r)
			r.Bundle = nil
			_, err := ensure(r, fastDisk())
			if !errors.Is(err, ErrBundleNeeded) {
				t.Fatalf("error %v", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %v, want %s", err, w)
				}
			}
		})
	}
}

func TestDamagedLeafWithoutABundleStaysWhereItIs(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	if err := os.WriteFile(r.Files.Leaf(Agent), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Bundle = nil
	if _, err := ensure(r, fastDisk()); err == nil {
		t.Fatal("no error")
	}
	if got := contents(t, r.Files)[r.Files.Leaf(Agent)]; got != "x" {
		t.Errorf("the leaf's file holds %q", got)
	}
}

func TestTheReportListsTheRestWhenOneIsDamaged(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	if err := os.WriteFile(r.Files.Leaf(Agent), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Bundle = nil
	report, err := ensure(r, fastDisk())
	if !errors.Is(err, ErrBundleNeeded) || len(report.Expiries) != 19 {
		t.Errorf("%d listed, error %v", len(report.Expiries), err)
	}
}
