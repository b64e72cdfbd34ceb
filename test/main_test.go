package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// chaos lets the scenarios take the many rounds that find rare faults: QUORATE_CHAOS=1, which `make chaos` sets. Without it each takes as
// few rounds as show that the scenario works at all.
var chaos = os.Getenv("QUORATE_CHAOS") == "1"

// TestMain is also the pid 1 of the scenarios' VMs.
func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// kubernetes and tools are what `make build kubernetes etcd` leaves in bin/.
var (
	kubernetes = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	tools      = []string{"etcdctl", "kubectl"}
)

// built is the folder with the programs under test, made once a run: quorate from the tree as it is, so that no old one is
// tested, and the Kubernetes programs from bin/.
var built struct {
	once sync.Once
	dir  string
	err  error
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
	built.once.Do(func() { built.dir, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "quorate-programs-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "quorate"), "../cmd/quorate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build quorate: %w\n%s", err, out)
	}
	return dir, share(filepath.Join("..", "bin"), dir, append(kubernetes, tools...)...)
}

// share shows programs of one folder in another, without a copy where the file system allows.
func share(from, to string, names ...string) error {
	for _, name := range names {
		if os.Link(filepath.Join(from, name), filepath.Join(to, name)) == nil {
			continue
		}
		if out, err := exec.Command("cp", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w\n%s", name, err, out)
		}
	}
	return nil
}
