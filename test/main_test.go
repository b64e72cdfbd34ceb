// Package test holds what spans packages: scenarios with several replicas on a local GCE project. The rules of the tree
// are in test/house; tests of one package stand in its folder.
package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// chaos lets the scenarios take the many rounds that find rare faults: QUORATE_CHAOS=1, which `make chaos` and `make
// rounds` set. Without it each takes as few rounds as show that the scenario works at all.
var chaos = os.Getenv("QUORATE_CHAOS") == "1"

// likeGoogle says that the Compute API and the bucket take the time that Google's take: QUORATE_TIMES=google. Else they
// answer at once.
func likeGoogle() bool { return os.Getenv("QUORATE_TIMES") == "google" }

// onlyInChaos skips what takes too long for every change.
func onlyInChaos(t *testing.T, takes string) {
	t.Helper()
	if !chaos {
		t.Skip(takes + "; with QUORATE_CHAOS=1")
	}
}

// onlyInCases skips a case of masters in `make test`.
func onlyInCases(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a case of masters: make cases, or go test without -short")
	}
}

// TestMain is also the pid 1 of the scenarios' VMs, the apiserver of the cases, and a machine's relay.
func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	standInIfAsked()
	workIfAsked()
	relayIfAsked()
	code := m.Run()
	for _, b := range []*builtFolder{&built, &builtForCases} {
		if b.dir != "" {
			os.RemoveAll(b.dir)
		}
	}
	os.Exit(code)
}

// kubernetes and tools are what `make build kubernetes etcd` leaves in bin/.
var (
	kubernetes = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	tools      = []string{"etcdctl", "kubectl", "kubelet"}
)

// builtFolder is a folder with programs under test, made once a run.
type builtFolder struct {
	once sync.Once
	dir  string
	err  error
}

// built holds quorate from the tree as it is, so that no old one is tested, and the Kubernetes programs from bin/.
// builtForCases holds a quorate that can be made to end at a step, and this program as the apiserver.
var built, builtForCases builtFolder

// quorate builds it into a new folder.
func (b *builtFolder) quorate(flags ...string) error {
	b.dir, b.err = os.MkdirTemp("", "quorate-programs-")
	if b.err == nil {
		b.err = os.Chmod(b.dir, 0o755) // as /usr/local/bin is: programs in VMs may run as other users
	}
	if b.err != nil {
		return b.err
	}
	if len(flags) == 0 {
		// One that `make build` has made of the same tree is left as it is: linking takes a core many seconds.
		_ = copyFile(filepath.Join("..", "bin", "quorate"), filepath.Join(b.dir, "quorate")) // none: go makes it
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o",
		filepath.Join(b.dir, "quorate")}, flags...)
	cmd := exec.Command("go", append(args, "../cmd/quorate")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("build quorate: %w\n%s", err, out)
	}
	return b.err
}

// programs makes, or finds made, the folder with the programs. It skips where a scenario cannot run.
func programs(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a VM is a set of namespaces with a disk of its own")
	}
	for _, name := range append(kubernetes, tools...) {
		if _, err := os.Stat(filepath.Join("..", "bin", name)); err != nil {
			t.Skipf("needs bin/%s: run `make build kubernetes etcd` first", name)
		}
	}
	built.once.Do(func() {
		if built.quorate() == nil {
			built.err = share(filepath.Join("..", "bin"), built.dir, append(kubernetes, tools...)...)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// casePrograms is the folder with the programs of a cluster that is about its members alone. It needs nothing but root.
func casePrograms(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a VM is a set of namespaces with a disk of its own")
	}
	b := &builtForCases
	b.once.Do(func() {
		self, err := os.Executable()
		if err == nil {
			err = b.quorate("-tags", "atstep")
		}
		if err == nil {
			err = copyFile(self, filepath.Join(b.dir, replica.APIServer))
		}
		b.err = err
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.dir
}

// share shows programs of one folder in another, without a copy where the file system allows.
func share(from, to string, names ...string) error {
	for _, name := range names {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w\n%s", from, err, out)
	}
	return nil
}
