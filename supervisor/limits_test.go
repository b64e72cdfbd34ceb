package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLimitsAreFilesOfTheCgroup(t *testing.T) {
	for _, c := range []struct {
		name        string
		limits      Limits
		controllers string
		nice        int
		want        []string
		unlimited   string
	}{
		{"none are asked for", Limits{}, "cpuset cpu io memory pids", -5, []string{"cpu.weight.nice -5",
			"memory.oom.group 1"}, ""},
		{"all are", Limits{MemoryMax: 4 << 30, MemoryHigh: 3 << 30, CPUWeight: 50}, "cpu memory", 0,
			[]string{"cpu.weight 50", "memory.high 3221225472", "memory.max 4294967296", "memory.oom.group 1"}, ""},
		{"a kernel with the controllers in version 1", Limits{MemoryMax: 4 << 30, CPUWeight: 50}, "", 0, nil,
			"memory max not in force: the kernel's memory controller is not delegated to this unit; " +
				"CPU weight not in force: the kernel's cpu controller is not delegated to this unit"},
		{"memory alone", Limits{MemoryHigh: 1 << 30, CPUWeight: 50}, "memory pids", 0, []string{"memory.high 1073741824",
			"memory.oom.group 1"}, "CPU weight not in force: the kernel's cpu controller is not delegated to this unit"},
		{"no controllers, and none are asked for", Limits{}, "", 0, nil, ""},
	} {
		g := &cgroup{dir: folder(t, map[string]string{"cgroup.controllers": c.controllers + "\n"})}
		if got := g.limit(c.limits, c.nice); got != c.unlimited {
			t.Errorf("%s: unlimited %q, want %q", c.name, got, c.unlimited)
		}
		if got := written(t, g.dir); !slices.Equal(got, c.want) {
			t.Errorf("%s: wrote %q, want %q", c.name, got, c.want)
		}
	}
}

// written are the files of a folder in place of a cgroup, but for the kernel's list.
func written(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != "cgroup.controllers" {
			out = append(out, fmt.Sprintf("%s %s", f.Name(), text))
		}
	}
	return out
}

// A file that the kernel refuses is said, and the other limits are in force.
func TestALimitThatCannotBeSetIsSaid(t *testing.T) {
	for _, refused := range [][]string{{"memory.max"}, {"memory.oom.group"}, {"memory.max", "memory.oom.group"}} {
		g := &cgroup{dir: folder(t, map[string]string{"cgroup.controllers": "memory cpu"})}
		for _, file := range refused {
			if err := os.Mkdir(filepath.Join(g.dir, file), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got := g.limit(Limits{MemoryMax: 1 << 30, CPUWeight: 7}, 0)
		if !strings.HasPrefix(got, "memory max not in force: open ") || strings.Contains(got, "CPU") ||
			strings.Count(got, "memory max") != 1 {
			t.Errorf("%s: said %q", refused, got)
		}
		if b, err := os.ReadFile(filepath.Join(g.dir, "cpu.weight")); string(b) != "7" {
			t.Errorf("%s: the weight: %q, %v", refused, b, err)
		}
	}
}

// Where limits cannot be in force the process runs without them, and the status says so.
func TestAProcessRunsWithoutLimitsWhereThereAreNone(t *testing.T) {
	inGroups(t, func(t *testing.T, cfg Config) {
		if cfg.Cgroup != "" {
			if b, err := os.ReadFile(filepath.Join(cfg.Cgroup, "cgroup.controllers")); err != nil ||
				strings.Contains(string(b), "memory") {
				t.Skipf("this machine limits memory: %s, %v", b, err)
			}
		}
		s := begin(t, cfg)
		spec := childSpec(t, "limited", "sleep")
		spec.Limits = Limits{MemoryMax: 1 << 30}
		start(t, s, spec, childSpec(t, "free", "sleep"))
		ready(t, s, "limited", "free")
		if got := status(t, s, "limited").Unlimited; !strings.HasPrefix(got, "memory max not in force: ") {
			t.Errorf("the status says %q", got)
		}
		if got := status(t, s, "free").Unlimited; got != "" {
			t.Errorf("of a process without limits the status says %q", got)
		}
	})
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	err := Spec{Name: "a", Path: "/a", Limits: Limits{MemoryMax: -1, CPUWeight: 10001}}.Validate()
	expectError(t, "both", err, "memory max -1, high 0, neither may be negative", "CPU weight 10001, must be 1 to 10000")
}
